"""Files that a run read, was kept from, or left behind."""

from typing import Literal

import msgspec

from reprobundle.format.record.values import Count, Digest


class FileRead(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file the run read.

    Attributes:
        path: ``project:<path>``, ``external:<n>/<name>`` or ``missing:<path>``.
        member: Where its content lies in the bundle; empty if it is not included.
        origin: For external files, where the content lay, links followed; home folder
            as ``~``.
        opened_as: For external files, the path by which the program opened it, if that
            is another one: a cache of models has its names in links, and the revision
            with them.
        size_bytes: Its size when the run started.
        blake3: Its digest then; empty when it could not be read.
        how: ``observed`` (an open was seen), ``declared`` (given with ``--input``).
    """

    path: str
    member: str = ""
    origin: str = ""
    opened_as: str = ""
    size_bytes: Count
    blake3: str
    how: Literal["observed", "declared"] = "observed"


class WithheldFile(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A file that the run needs and whose content the bundle does not hold.

    Attributes:
        name: Path below the project, or the ``origin`` of a file from elsewhere.
        size_bytes: Its size when the run started.
        blake3: Its digest then: a replay takes no file of another content.
    """

    name: str
    size_bytes: Count
    blake3: Digest


class LeftOutFile(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A file of the project that no run read and the bundle does not hold.

    Attributes:
        name: Path below the project.
        size_bytes: Its size when the run started; only large files are left out.
    """

    name: str
    size_bytes: Count


class ContentMember(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A member that belongs to a record, by its name relative to the record.

    Attributes:
        name: Its name beside the record.
        size_bytes: Size of its content.
        blake3: Digest of its content.
        sealed: Of a replay whose content equals it, the full path of a sealed member;
            then it does not lie beside the record. Empty where it does.
    """

    name: str
    size_bytes: Count
    blake3: Digest
    sealed: str = ""
