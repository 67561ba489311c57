"""Show a person what is in a bundle. Nothing is judged."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from reprobundle.format.citation import citation_of
from reprobundle.format.manifest import Member
from reprobundle.format.part import Part
from reprobundle.format.record import Record
from reprobundle.report import text
from reprobundle.report.cited import citation_rows
from reprobundle.report.files import input_lines, output_lines
from reprobundle.report.layout import BLANK, Column, Row, flow, more, paragraph, table
from reprobundle.report.measured import memory_lines, phase_lines
from reprobundle.report.ranked import FACTS, PHASES, rank_lines, whose
from reprobundle.report.recorded import (
    environment_lines,
    randomness_lines,
    remark_lines,
)
from reprobundle.report.screen import Line, Screen, Span, Style
from reprobundle.report.stated import policy_lines
from reprobundle.report.unread import unread_lines
from reprobundle.report.view import BundleView, RunView, view
from reprobundle.verify.devices import device_of, missing_mps
from reprobundle.verify.float64 import site_texts

__all__ = ["BundleView", "render_inspect", "view"]

# What one screen holds of each kind; all of it with ``verbose``.
MOST_MEMBERS = 5


def render_inspect(
    bundle: BundleView,
    screen: Screen | None = None,
    *,
    verbose: bool = False,
    elsewhere: bool = False,
) -> str:
    """Return what `bundle` holds, most important things first.

    Args:
        bundle: From `view`.
        screen: Where it will be shown; standard output if None.
        verbose: Show every member, file, array and fact.
        elsewhere: Whether it lies on a server, and was read in part only.
    """
    screen = screen or Screen.of(sys.stdout)
    sections = [_identity(bundle, screen), _members(bundle, screen, verbose=verbose)]
    if bundle.runs:
        sections += _reference(bundle.runs[0], screen, verbose=verbose)
        left_out = bundle.runs[0].record.left_out
        sections.append(unread_lines(bundle.unread, left_out, screen, verbose=verbose))
    sections += [
        policy_lines(bundle.policy, screen, verbose=verbose),
        _float64(bundle.runs, screen, verbose=verbose),
        _runs(bundle.runs, screen),
        _replays(bundle, screen),
    ]
    if elsewhere:
        sections.append(_not_checked(bundle, screen))
    return screen.text(_separated(sections))


def _not_checked(bundle: BundleView, screen: Screen) -> list[Line]:
    words = f"NOT CHECKED, because it was not read: {'; '.join(bundle.not_checked)}"
    advice = "reprobundle verify reads all of it"
    return [
        *paragraph(screen, "contents", words, style="warn"),
        *paragraph(screen, "", advice),
    ]


def _separated(sections: Sequence[list[Line]]) -> list[Line]:
    lines: list[Line] = []
    for section in sections:
        if section:
            lines += [*([BLANK] if lines else []), *section]
    return lines


def _identity(bundle: BundleView, screen: Screen) -> list[Line]:
    lines = paragraph(screen, "bundle", bundle.bundle, style="strong")
    version = f"format {bundle.manifest.version}"
    if bundle.newer_minor:
        version += ", newer than this reader: it may hold more than is shown"
    lines += flow(
        screen, "file", [(Span(text.size(bundle.size_bytes)),), (Span(version),)]
    )
    if bundle.part is not None:
        lines += paragraph(screen, "part", _part_words(bundle.part), style="warn")
    intent = bundle.policy.intent
    for label, words in (("purpose", intent.purpose), ("scenario", intent.scenario)):
        lines += paragraph(screen, label, words or "not stated")
    if bundle.runs:
        cited = citation_of(bundle.runs[0].record.environment)
        for label, words in citation_rows(cited):
            lines += paragraph(screen, label, words)
        lines += _made(bundle, bundle.runs[0].record, screen)
    return lines


def _part_words(part: Part) -> str:
    other = part.other
    where = f"{other.name}, blake3 {other.blake3}" if other else "part 1"
    named = ", ".join(part.absent[:4])
    more = f" and {len(part.absent) - 4:,} more" if len(part.absent) > 4 else ""
    count = text.plural(len(part.absent), "member")
    return f"{part.number} of 2: {count} in {where}: {named}{more}"


def _made(bundle: BundleView, record: Record, screen: Screen) -> list[Line]:
    how = (
        f"{record.started} by {record.tool} on {record.platform}; "
        f"ended with status {record.outcome.exit_status} "
        f"after {text.duration(record.elapsed_ns)}"
    )
    facts = list(_makers(record))
    if bundle.lock:
        locked = len(bundle.lock.distributions)
        facts.append(f"{text.plural(locked, 'package')} locked")
    return [
        *paragraph(screen, "command", _command(record)),
        *_placeholders(record, screen),
        *paragraph(screen, "made", how),
        *flow(screen, "with", [(Span(fact),) for fact in facts]),
        *_error(record, screen),
    ]


def _makers(record: Record) -> Iterator[str]:
    """Yield in a few words what made the run, where it is known."""
    known = {
        name: str(fact.value)
        for name, fact in record.environment.items()
        if fact.value is not None
    }
    for label, name in (("python", "python.version"), ("torch", "torch.version")):
        if name in known:
            yield f"{label} {known[name]}"
    # Linux names itself with its version, macOS without.
    system = known.get("os.name", known.get("os.system", ""))
    version = known.get("os.version", "")
    if system:
        yield system if version in system else f"{system} {version}"
    if "cpu.model" in known:
        yield known["cpu.model"]
    yield f"device {', '.join(record.devices.observed) or 'none seen'}"
    cause, remedy = missing_mps(record)
    if cause:
        yield f"no MPS: {cause} ({remedy})"
    if "git.commit" in known:
        dirty = ", changed since" if known.get("git.dirty") == "True" else ""
        yield f"git {text.digest(known['git.commit'])}{dirty}"


def _command(record: Record) -> str:
    words = " ".join(_quoted(word) for word in record.command.argv)
    where = record.command.working_directory
    return words if where == "." else f"{words} (in {where})"


_MEANING = {
    "home": "your home folder",
    "user": "your account",
    "host": "the name of your machine",
}


def _placeholders(record: Record, screen: Screen) -> list[Line]:
    words = ", ".join(
        f"{{{name}}} stands for {_MEANING[name]}"
        for name in record.command.placeholders
    )
    return paragraph(screen, "", words) if words else []


def _quoted(word: str) -> str:
    plain = word and not set(word) & set(" \t\n\"'\\$&|;<>()*?[]#~`!")
    escaped = word.replace("'", "'\"'\"'")
    return word if plain else f"'{escaped}'"


def _error(record: Record, screen: Screen) -> list[Line]:
    outcome = record.outcome
    lines: list[Line] = []
    if outcome.error:
        error = outcome.error
        expected = "expected " if outcome.expected_failure else ""
        place = error.where or "an unknown place"
        steps = text.plural(error.steps, "step")
        words = f"{expected}{error.type} at {place} after {steps}: {error.message}"
        lines += paragraph(screen, "error", words)
    if outcome.stop:
        lines += paragraph(screen, "stopped", f"{outcome.stop}: {outcome.stop_detail}")
    return lines


def _members(bundle: BundleView, screen: Screen, *, verbose: bool) -> list[Line]:
    members = bundle.manifest.members
    groups: dict[str, list[Member]] = {}
    for member in members:
        groups.setdefault(member.role, []).append(member)
    summary = f"{text.plural(len(members), 'member')}, {_total(members)}"
    items: list[Line] = [
        (Span(f"{role} {text.count(len(held))}"), Span(f" ({_total(held)})", "dim"))
        for role, held in groups.items()
    ]
    largest = sorted(members, key=lambda member: -member.size_bytes)
    shown = members if verbose else largest[:MOST_MEMBERS]
    columns = (
        Column("member" if verbose else "largest members", least=20),
        Column("role"),
        Column("size", align="right"),
        Column("blake3"),
    )
    return [
        *flow(screen, "members", [(Span(summary, "strong"),), *items]),
        *table(screen, columns, [_member_row(member) for member in shown]),
        *more(screen, len(members) - len(shown), "member"),
    ]


def _member_row(member: Member) -> Row:
    return (
        Span(member.path),
        Span(member.role),
        Span(text.size(member.size_bytes)),
        Span(text.digest(member.blake3), "dim"),
    )


def _total(members: Sequence[Member]) -> str:
    return text.size(sum(member.size_bytes for member in members))


def _reference(run: RunView, screen: Screen, *, verbose: bool) -> list[list[Line]]:
    record = run.record
    return [
        input_lines(record.reads, screen, verbose=verbose),
        output_lines(record.outputs, screen, verbose=verbose),
        rank_lines(record, screen),
        randomness_lines(record, screen, verbose=verbose),
        [*phase_lines(record, screen), *whose(record, screen, PHASES)],
        memory_lines(record.memory, run.memory_points, screen, verbose=verbose),
        [
            *environment_lines(record.environment, screen, verbose=verbose),
            *whose(record, screen, FACTS),
        ],
        remark_lines(record, screen, verbose=verbose),
    ]


def _float64(runs: Sequence[RunView], screen: Screen, *, verbose: bool) -> list[Line]:
    """Return where the traced runs met float64 on the device they were steered to."""
    lines: list[Line] = []
    for run in runs:
        search = run.record.devices.float64
        if run.record.role != "evidence":
            continue
        told = site_texts(search, most=len(search.sites) if verbose else MOST_MEMBERS)
        if told:
            words = f"on MPS these places would raise: {told}"
        elif search.operators:
            words = f"none at {text.count(search.operators)} operators on the device"
        else:
            words = "not known: no tensor was moved to or made on a device"
        words += f"; {search.reason}" if search.reason else ""
        label = "float64" if not lines else ""
        style: Style = "warn" if told else ""
        lines += paragraph(screen, label, words, style=style, whole=verbose)
    return lines


def _runs(runs: Sequence[RunView], screen: Screen) -> list[Line]:
    columns = (
        Column("run", align="right"),
        Column("role"),
        Column("pass"),
        Column("claim", least=8),
        Column("device"),
        Column("status", align="right"),
        Column("took", align="right"),
        Column("outputs", align="right"),
        Column("remarks", align="right"),
    )
    rows: list[Row] = [
        (
            Span(str(run.number)),
            Span(run.record.role),
            Span(run.record.pass_name),
            Span(run.record.claim),
            Span(device_of(run.record)),
            Span(str(run.record.outcome.exit_status)),
            Span(text.duration(run.record.elapsed_ns)),
            Span(text.count(len(run.record.outputs))),
            Span(text.count(len(run.record.remarks))),
        )
        for run in runs
    ]
    return table(screen, columns, rows)


def _replays(bundle: BundleView, screen: Screen) -> list[Line]:
    lines: list[Line] = []
    if not bundle.replays:
        lines += paragraph(screen, "replays", "none attached")
    rows = [
        _replay_row(replay.id, replay.record)
        for replay in bundle.replays
        if replay.record is not None
    ]
    if rows:
        lines += table(screen, _REPLAY_COLUMNS, rows)
    for replay in bundle.replays:
        if replay.record is None:
            words = f"{text.digest(replay.id)} cannot be read: {replay.problem}"
            lines += paragraph(screen, "replay", words, style="warn")
    signatures = ", ".join(bundle.signatures) or "none"
    lines += paragraph(screen, "signatures", signatures)
    if bundle.acceptances:
        named = ", ".join(map(text.digest, bundle.acceptances))
        words = f"{named} (not checked here: reprobundle verify)"
        lines += paragraph(screen, "acceptance", words)
    return lines


_REPLAY_COLUMNS = (
    Column("replay"),
    Column("platform"),
    Column("device"),
    Column("started"),
    Column("of run", align="right"),
    Column("status", align="right"),
    Column("stopped by", least=8),
    Column("reference by", least=8),
)


def _replay_row(replay_id: str, record: Record) -> Row:
    return (
        Span(text.digest(replay_id)),
        Span(record.platform),
        Span(", ".join(record.devices.observed) or record.devices.requested),
        Span(record.started),
        Span(str(record.runs)),
        Span(str(record.outcome.exit_status)),
        Span(record.outcome.stop),
        Span(record.reference_by),
    )
