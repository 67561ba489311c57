"""Whether an attached replay is what it says (V6)."""

from __future__ import annotations

from collections.abc import Iterator

from reprobundle.errors import BundleError, DigestError
from reprobundle.format.canonical import decode
from reprobundle.format.digests import digest_bytes, digest_stream
from reprobundle.format.findings import Finding
from reprobundle.format.reader import Bundle, ReplayFile
from reprobundle.format.record import Record
from reprobundle.verify.checks import finding
from reprobundle.verify.integrity import bare_message
from reprobundle.verify.membership import (
    check_presence,
    check_references,
    check_series,
    check_shared,
)


def read_replay(
    bundle: Bundle, source: ReplayFile, replay_id: str
) -> tuple[Record | None, list[Finding]]:
    """Return a replay's record if all of V6 holds, and the findings.

    Args:
        bundle: The bundle it must be a replay of.
        source: Where the replay lies: that bundle, or a replay file.
        replay_id: Name of its folder below ``replays/``.
    """
    where = f"replays/{replay_id}/record.json"
    try:
        data = source.read_unsealed(where)
        if digest_bytes(data) != replay_id:
            return None, [_renamed(where, replay_id, digest_bytes(data))]
        record = decode(data, Record, where=where, rule="R-7.2")
    except DigestError as error:
        return None, [_renamed(where, error.expected, error.got)]
    except BundleError as error:
        return None, [
            finding("replay-record", "fail", bare_message(error), where=where)
        ]
    bad = [
        *_names_bundle(bundle, record, where),
        *_content(bundle, source, replay_id, record),
    ]
    if bad:
        return None, bad
    return record, [
        finding("replay-record", "pass", where=where),
        finding("replay-name", "pass", where=where),
        finding("replay-bundle", "pass", where=where),
        finding(
            "replay-members",
            "pass",
            f"{len(record.members):,} members",
            where=where,
        ),
    ]


def _renamed(where: str, expected: str, got: str) -> Finding:
    return finding(
        "replay-name",
        "fail",
        "the record was altered after the replay: its digest is not its name",
        where=where,
        expected=expected,
        got=got,
    )


def _names_bundle(bundle: Bundle, record: Record, where: str) -> Iterator[Finding]:
    if record.bundle != bundle.id:
        yield finding(
            "replay-bundle",
            "fail",
            "it is a replay of another bundle",
            where=where,
            expected=bundle.id,
            got=record.bundle or "no bundle",
        )
    if record.role != "replay":
        yield finding(
            "replay-record",
            "fail",
            "an attached record must be a replay",
            where=where,
            expected="replay",
            got=record.role,
        )


def _content(
    bundle: Bundle, source: ReplayFile, replay_id: str, record: Record
) -> Iterator[Finding]:
    top = f"replays/{replay_id}/"
    there = {
        name.removeprefix(top)
        for name in source.replay_entries(replay_id)
        if name != f"{top}record.json"
    }
    yield from check_presence("replay-members", top, record, there)
    for stated in record.members:
        if stated.name not in there:
            continue
        got = _digest_of(source, top + stated.name)
        if got != stated.blake3:
            yield finding(
                "replay-members",
                "fail",
                "it was altered after the replay",
                where=top + stated.name,
                expected=stated.blake3,
                got=got,
            )
    yield from check_shared("replay-members", bundle, top, record)
    yield from check_references("replay-members", bundle, top, record)
    if record.memory.series in there:
        where = top + record.memory.series
        data = source.read_unsealed(where)
        yield from check_series("replay-members", where, data, record)


def _digest_of(source: ReplayFile, name: str) -> str:
    try:
        with source.open_unsealed(name) as stream:
            return digest_stream(stream)
    except BundleError as error:
        return error.message
