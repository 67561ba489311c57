"""Show replays that travel without their bundle, and what of them lies only there."""

from __future__ import annotations

import msgspec

from reprobundle.format.canonical import decode
from reprobundle.format.pairing import RECORD_NAME
from reprobundle.format.reader import ReplayFile
from reprobundle.format.record import Record
from reprobundle.report import text
from reprobundle.report.layout import BLANK, Column, Row, more, paragraph, table
from reprobundle.report.screen import Line, Screen, Span
from reprobundle.verify.devices import device_of
from reprobundle.verify.lacking import Lacking, lacking

MOST_LACKING = 10


class AloneView(msgspec.Struct, frozen=True, kw_only=True):
    """One replay of a replay file.

    Attributes:
        id: Its id.
        record: Its record.
        lacking: What is in the bundle and not in the file.
    """

    id: str
    record: Record
    lacking: tuple[Lacking, ...]


class ReplayFileView(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay file holds.

    Attributes:
        path: Name of the file.
        size_bytes: Its size.
        replays: Its replays.
        signatures: Names of the signatures over them.
    """

    path: str
    size_bytes: int
    replays: tuple[AloneView, ...]
    signatures: tuple[str, ...]


def view_alone(replays: ReplayFile) -> ReplayFileView:
    """Return what a replay file holds.

    Raises:
        BundleError: A record is not as it must be.
    """
    found = []
    for replay_id in replays.replay_ids:
        name = f"replays/{replay_id}/{RECORD_NAME}"
        data = replays.read_unsealed(name)
        record = decode(data, Record, where=name, rule="R-7.2")
        found.append(
            AloneView(id=replay_id, record=record, lacking=tuple(lacking(record)))
        )
    return ReplayFileView(
        path=replays.path.name,
        size_bytes=replays.size_bytes,
        replays=tuple(found),
        signatures=replays.signatures,
    )


def render_alone(view: ReplayFileView, screen: Screen, *, verbose: bool) -> str:
    """Return a replay file for people.

    Args:
        view: From `view_alone`.
        screen: Where it will be shown.
        verbose: Show all that lies in the bundle only.
    """
    held = text.plural(len(view.replays), "replay")
    signed = text.plural(len(view.signatures), "signature")
    words = f"{view.path}, {text.size(view.size_bytes)}, {held}, {signed}"
    lines = [*paragraph(screen, "replay file", words)]
    for one in view.replays:
        lines += [BLANK, *_replay(one, screen, verbose=verbose)]
    return screen.text(lines)


def _replay(one: AloneView, screen: Screen, *, verbose: bool) -> list[Line]:
    record = one.record
    what = f"{record.pass_name} pass of claim {record.claim!r}, {device_of(record)}"
    lines = [
        *paragraph(screen, "replay", one.id),
        *paragraph(screen, "of bundle", record.bundle or "none"),
        *paragraph(screen, "run", f"{what}, {record.started}"),
    ]
    if not one.lacking:
        return [*lines, *paragraph(screen, "content", "all of it is in this file")]
    total = text.size(sum(part.size_bytes for part in one.lacking))
    words = (
        f"{text.plural(len(one.lacking), 'content')} ({total}) in the bundle only, "
        "equal to what is sealed there; whole again when it is attached"
    )
    shown = one.lacking if verbose else one.lacking[:MOST_LACKING]
    columns = (
        Column("in the bundle only", least=16),
        Column("sealed as", least=16),
        Column("size", align="right"),
        Column("blake3"),
    )
    return [
        *lines,
        *paragraph(screen, "content", words),
        *table(screen, columns, [_row(part) for part in shown]),
        *more(screen, len(one.lacking) - len(shown), "content"),
    ]


def _row(part: Lacking) -> Row:
    return (
        Span(part.name),
        Span(part.sealed),
        Span(text.size(part.size_bytes)),
        Span(text.digest(part.blake3), "dim"),
    )
