"""What can be signed: a manifest, the record of a replay, an acceptance record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from reprobundle.errors import BadCallError, DigestError
from reprobundle.format.canonical import decode
from reprobundle.format.digests import digest_bytes
from reprobundle.format.manifest import MANIFEST_PATH
from reprobundle.format.pairing import RECORD_NAME, acceptance_name
from reprobundle.format.reader import Bundle, ReplayFile
from reprobundle.format.record import Record

Kind = Literal["bundle", "replay", "acceptance"]

_SHORTEST_ID = 8


class Subject(NamedTuple):
    """One document that can be signed.

    Attributes:
        kind: What the document speaks for.
        id: BLAKE3 of its bytes.
        document: The bytes themselves.
    """

    kind: Kind
    id: str
    document: bytes


def bundle_subject(bundle: Bundle) -> Subject:
    """Return what stands for all that is sealed: the manifest."""
    return Subject("bundle", bundle.id, bundle.read(MANIFEST_PATH))


def replay_subject(file: ReplayFile, replay_id: str) -> Subject:
    """Return what stands for a whole replay: its record, which lists its members.

    Raises:
        DigestError: The record is not what it is named by.
    """
    record = file.read_unsealed(f"replays/{replay_id}/{RECORD_NAME}")
    return Subject("replay", replay_id, record)


def acceptance_subject(bundle: Bundle, acceptance_id: str) -> Subject:
    """Return an attached acceptance record.

    Raises:
        DigestError: It is not what it is named by.
    """
    name = acceptance_name(acceptance_id)
    document = bundle.read_unsealed(name)
    got = digest_bytes(document)
    if got != acceptance_id:
        raise DigestError(name, expected=acceptance_id, got=got, rule="R-4.28")
    return Subject("acceptance", acceptance_id, document)


def find_subject(file: ReplayFile, subject: str) -> Subject | None:
    """Return what has the id `subject` in `file`, or None."""
    if isinstance(file, Bundle) and subject == file.id:
        return bundle_subject(file)
    if subject in file.replay_ids:
        return replay_subject(file, subject)
    if isinstance(file, Bundle) and subject in file.acceptance_ids:
        return acceptance_subject(file, subject)
    return None


def choose_replays(file: ReplayFile, wanted: str) -> list[Subject]:
    """Return the replays that `wanted` names.

    ``newest`` is all that the newest call of ``replay`` recorded: its passes, claims
    and devices. First digits name one record.

    Raises:
        BadCallError: None or several match.
        DocumentError: A record breaks its schema.
    """
    chosen = replay_subject(file, _choose("replays", file.replay_ids, wanted))
    occasion = _occasion(chosen)
    if wanted != "newest" or not occasion:
        return [chosen]
    every = [replay_subject(file, one) for one in file.replay_ids]
    return [one for one in every if _occasion(one) == occasion]


def _occasion(subject: Subject) -> str:
    where = f"replays/{subject.id}/{RECORD_NAME}"
    return decode(subject.document, Record, where=where, rule="R-7.2").occasion


def choose_acceptance(file: ReplayFile, wanted: str) -> Subject:
    """Return the acceptance record that `wanted` names, as for a replay.

    Raises:
        BadCallError: None or several match, or the file is no bundle.
    """
    if not isinstance(file, Bundle):
        raise BadCallError("a file of replays holds no acceptance record")
    return acceptance_subject(
        file, _choose("acceptance records", file.acceptance_ids, wanted)
    )


def _choose(what: str, ids: Sequence[str], wanted: str) -> str:
    if wanted == "newest" and ids:
        return ids[-1]
    found = [one for one in ids if one.startswith(wanted.lower())]
    if len(wanted) < _SHORTEST_ID or len(found) != 1:
        known = ", ".join(one[:12] for one in ids) or "none"
        raise BadCallError(
            f"{len(found)} {what} match {wanted!r}",
            advice=f"say newest, or at least {_SHORTEST_ID} digits of one of: {known}",
        )
    return found[0]
