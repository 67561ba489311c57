"""What `pack` says after it wrote a bundle."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from reprobundle.format.record import Fact, Output, Record, Remark, WithheldFile
from reprobundle.pack.options import Packed
from reprobundle.report import text
from reprobundle.report.layout import paragraph, unbroken
from reprobundle.report.screen import Line, Screen, Style
from reprobundle.report.unread import left_out_words, unread_words
from reprobundle.run.data_rules import encryption_hint, told
from reprobundle.verify.ending import check_ending
from reprobundle.verify.restart import Resumed

LISTED = 12
# Gaps about inputs: whoever packs can still do something about them.
_TOLD_GAPS = frozenset({"programs-not-seen", "tool-files-left-out"})


def render_packed(packed: Packed, screen: Screen | None = None) -> str:
    """Return a few lines: inputs, outputs, what is known, what is missing, the file."""
    screen = screen or Screen()
    lines: list[Line] = []
    for label, words, style in _told(packed):
        lines.extend(paragraph(screen, label, words, style=style, whole=True))
    command = f"reprobundle verify {shlex.quote(str(packed.path))}"
    lines.extend(unbroken(screen, "next", command))
    return screen.text(lines)


def _told(packed: Packed) -> Iterator[tuple[str, str, Style]]:
    record = packed.reference
    yield "command", _ending(record), ""
    yield from _listed("input", list(_inputs(record)))
    yield from _listed("output", [_output(output) for output in record.outputs])
    yield "seeds", _seeds(record), ""
    yield "environment", _environment(record), ""
    yield from _passes(packed)
    for one in packed.counterparts:
        yield "beside", f"the same on {one.devices.requested}: {_ending(one)}", ""
    yield from _remarks(record)
    for words in packed.unmet:
        yield "claim", words, "warn"
    if packed.unread:
        yield "unread", unread_words(packed.unread), "dim"
    if record.left_out:
        yield "left out", left_out_words(record.left_out), "dim"
    yield from _listed("excluded", list(packed.excluded))
    yield from _listed("withheld", [_withheld(one) for one in record.withheld])
    if packed.data is not None:
        yield "data", told(packed.data), "warn"
        hint = encryption_hint(packed.data, packed.path.name)
        if hint:
            yield "", f"encrypt it before it travels: {hint}", "warn"
    size = text.size(packed.sealed.size_bytes)
    members = text.plural(len(packed.sealed.members), "member")
    yield "wrote", f"{packed.path}  {size}, {members}", "strong"
    yield "id", packed.sealed.id, ""


def _remarks(record: Record) -> Iterator[tuple[str, str, Style]]:
    styles: dict[str, Style] = {"failure": "bad", "warning": "warn"}
    for remark in record.remarks:
        if remark.severity in styles or remark.id in _TOLD_GAPS:
            yield remark.severity, _remark(remark), styles.get(remark.severity, "dim")


def _passes(packed: Packed) -> Iterator[tuple[str, str, Style]]:
    """Yield what the passes after the measured one showed."""
    is_good = packed.repeatable and not _other_failure(packed)
    yield "repeat", _repeat(packed), "good" if is_good else "warn"
    if packed.resumed is not None:
        words, style = _restart(packed.resumed)
        yield "restart", words, style
    if packed.truth is not None:
        words, style = _truth(packed.truth)
        yield "truth", words, style


def _ending(record: Record) -> str:
    took = text.duration(record.elapsed_ns)
    error = record.outcome.error
    failed = f" with the expected {error.type}" if error else ""
    return (
        f"exit {record.outcome.exit_status}{failed} after {took}, peak {_peak(record)}"
    )


def _peak(record: Record) -> str:
    peak = record.memory.peak_rss_bytes.value
    return text.size(peak) if isinstance(peak, int) else "unknown"


def _listed(label: str, entries: list[str]) -> Iterator[tuple[str, str, Style]]:
    for entry in entries[:LISTED]:
        yield label, entry, ""
    if len(entries) > LISTED:
        yield label, f"and {len(entries) - LISTED} more", "dim"


def _inputs(record: Record) -> Iterator[str]:
    for read in record.reads:
        if read.member.startswith(("inputs/", "external/")) or not read.member:
            kept = "" if read.member else ", pinned by digest only"
            size, digest = text.size(read.size_bytes), text.digest(read.blake3)
            yield f"{read.path}  {size}, blake3 {digest}{kept}"


def _withheld(one: WithheldFile) -> str:
    size, digest = text.size(one.size_bytes), text.digest(one.blake3)
    return f"{one.name}  {size}, blake3 {digest}; a replay needs --data {one.name}=FILE"


def _output(output: Output) -> str:
    shapes = ", ".join(
        f"{array.dtype} {list(array.shape)}" for array in output.arrays[:2]
    )
    more = len(output.arrays) - 2
    rest = f" and {text.plural(more, 'more array')}" if more > 0 else ""
    inner = f"  {shapes}{rest}" if shapes else ""
    role = f", {output.role}" if output.role not in ("", output.format) else ""
    size = text.size(output.size_bytes)
    kept = ""
    if output.stored == "withheld":
        kept = f", blake3 {text.digest(output.blake3)}; its content stays here"
    return f"{output.name}  {output.format}, {size}{role}{inner}{kept}"


def _seeds(record: Record) -> str:
    calls = record.randomness.calls
    given = record.randomness.seed
    parts = [] if given is None else [f"--seed {given}"]
    parts.extend(f"{call.function}({call.value})" for call in calls[:3])
    if len(calls) > 3:
        parts.append(f"and {text.plural(len(calls) - 3, 'more call')}")
    return ", ".join(parts) or "none set"


def _environment(record: Record) -> str:
    names = ("python.version", "torch.version", "os.name", "cpu.model")
    return ", ".join(
        f"{name.partition('.')[0]} {_known(record.environment.get(name))}"
        for name in names
    )


def _known(fact: Fact | None) -> str:
    return "unknown" if fact is None or fact.value is None else str(fact.value)


def _repeat(packed: Packed) -> str:
    if not packed.repeats:
        return "not checked: the repeat pass was left out"
    if not packed.repeatable:
        return "NOT REPEATABLE on this machine: two runs differ beyond the tolerance"
    if packed.reference.outcome.expected_failure:
        other = _other_failure(packed)
        if other:
            return f"NOT THE SAME FAILURE in a second run: {other}"
        if not packed.reference.outputs:
            return "same failure; there is no output to compare"
    same = {output.name: output.blake3 for output in packed.reference.outputs}
    outputs = packed.repeats[0].outputs
    equal = sum(
        all(_digest(repeat, name) == digest for repeat in packed.repeats)
        for name, digest in same.items()
    )
    rest = "" if equal == len(same) else ", the others within tolerance"
    times = len(packed.repeats)
    among = f" in {times} repeat passes" if times > 1 else ""
    return (
        f"{equal} of {text.plural(len(outputs), 'output')} bit-identical{among}{rest}"
    )


def _other_failure(packed: Packed) -> str:
    """Return in what a repeat did not end as the reference did; nothing if it did."""
    found = (
        one
        for repeat in packed.repeats
        for one in check_ending(packed.reference, repeat)
        if one.outcome != "pass"
    )
    return next((one.reason for one in found), "")


def _restart(done: Resumed) -> tuple[str, Style]:
    """Return what came of the stop and the resume."""
    if done.unmade:
        return f"not checked: {done.unmade}", "warn"
    if done.failed:
        return f"DIFFERS from the straight run: {done.failed}", "warn"
    count = text.plural(len(done.outputs), "output")
    if done.differing:
        names = ", ".join(one.name for one in done.differing[:LISTED])
        share = f"{len(done.differing)} of {count}"
        return f"DIFFERS from the straight run in {share}: {names}", "warn"
    exact = all(one.result == "bit-identical" for one in done.outputs)
    how = "bit-identical" if exact else "within tolerance"
    return f"agrees with the straight run: {count} {how}", "good"


def _digest(record: Record, name: str) -> str:
    return next((one.blake3 for one in record.outputs if one.name == name), "")


def _truth(record: Record) -> tuple[str, Style]:
    """Return how the float64 run went, and whether it can serve as a truth."""
    if record.outcome.exit_status or record.promotion is None:
        return f"none: the float64 run ended with {record.outcome.exit_status}", "warn"
    left = record.promotion.left
    if left:
        first = left[0]
        what = f"{first.operator} was not promoted, " if first.operator else ""
        return f"not usable: {what}{first.why}", "warn"
    count = text.count(record.promotion.operators)
    return f"{count} operators ran in float64, none in less", "good"


def _remark(remark: Remark) -> str:
    where = f" {remark.where}" if remark.where else ""
    return f"{remark.id}{where}: {remark.text}"
