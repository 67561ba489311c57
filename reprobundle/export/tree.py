"""Every file of a bundle as a plain file: what is sealed, and what is attached."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from reprobundle.export.verified import Verified
from reprobundle.format.manifest import MANIFEST_PATH, Member

REPORT_NAME = "reprobundle-report.json"
BUNDLE_NAME = "bundle.rpb.zip"


class Item(NamedTuple):
    """One file to write.

    Attributes:
        name: Its path, as in the bundle.
        size_bytes: Its size.
        role: Its role in the manifest, or ``manifest``, ``replay``, ``signature``,
            ``acceptance`` or ``bundle``.
        open: Opens its content.
        blake3: The digest it must have; empty where nothing states one.
        executable: Whether it is written with the execute bit.
    """

    name: str
    size_bytes: int
    role: str
    open: Callable[[], BinaryIO]
    blake3: str = ""
    executable: bool = False


def items(what: Verified, *, with_bundle: bool = False) -> Iterator[Item]:
    """Yield every file, in the order of the bundle.

    Args:
        what: The verified bundle.
        with_bundle: Also the bundle file itself, so that `verify` can be run on it.
    """
    for member in what.bundle.members.values():
        yield _member(what, member)
    anchor = what.bundle.anchor
    yield Item(
        MANIFEST_PATH,
        anchor.size_bytes,
        "manifest",
        lambda: what.bundle.open(MANIFEST_PATH),
        anchor.digest,
    )
    digests = dict(_replay_digests(what))
    for name, content in what.bundle.unsealed_contents().items():
        yield Item(
            name,
            content.size_bytes,
            _unsealed_role(name),
            _opener(what, name),
            digests.get(name, ""),
        )
    if with_bundle:
        yield Item(
            BUNDLE_NAME, what.bundle.size_bytes, "bundle", lambda: what.path.open("rb")
        )


def _member(what: Verified, member: Member) -> Item:
    return Item(
        member.path,
        member.size_bytes,
        member.role,
        lambda: what.bundle.open(member.path),
        member.blake3,
        member.executable,
    )


def _opener(what: Verified, name: str) -> Callable[[], BinaryIO]:
    return lambda: what.bundle.open_unsealed(name)


def _replay_digests(what: Verified) -> Iterator[tuple[str, str]]:
    for replay_id, record in what.replays.items():
        yield f"replays/{replay_id}/record.json", replay_id
        for member in record.members:
            yield f"replays/{replay_id}/{member.name}", member.blake3
    for acceptance_id in what.bundle.acceptance_ids:
        yield f"acceptance/{acceptance_id}.json", acceptance_id


def _unsealed_role(name: str) -> str:
    top = name.split("/")[0]
    return {"signatures": "signature", "replays": "replay"}.get(top, top)
