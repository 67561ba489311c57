"""One screen of Markdown that a maintainer will read: what, how, with what, since when.

Everything that comes out of the bundle stands in fences or code spans, where neither
markup nor HTML, mentions or links work. What is long is folded; what does not fit into
the body of an issue is cut in its middle, and the cut says where the whole is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from reprobundle.errors import LimitError
from reprobundle.format.destinations import ISSUE_CHARACTERS
from reprobundle.format.findings import ArrayComparison, Judgement, OutputComparison
from reprobundle.format.part import Part
from reprobundle.format.record import ArraySummary, Output, Record
from reprobundle.report import text
from reprobundle.report.issue_script import Snippet
from reprobundle.report.issue_versions import version_lines
from reprobundle.report.markdown_text import code, fenced, folded, shortened, table
from reprobundle.report.page import Page, ReplayPage, Side
from reprobundle.verify.devices import platform_label

MOST_OUTPUTS = 8
MOST_REASONS = 4
MOST_REPLAYS = 2
SCREEN_LINES = 40
# Where somebody's packages and copies lie is nobody's business, and long.
_PACKAGES = re.compile(r"(?<=File \")[^\"\n]*/site-packages/")
_WORD = re.compile(r"[^\s'\"]+")
_STAGE = re.compile(r"/reprobundle-(?:pack|replay)-[^/]+/[^/]+/project")
# As `split` calls the parts of a bundle.
_PART_NAME = re.compile(r"\.part[12](?=\.rpb\.zip$)")
# What is left for the script and the traceback must be worth reading.
LEAST_BYTES = 400


class Materials(NamedTuple):
    """What an issue shows besides the page.

    Attributes:
        snippet: The script; None where none is known.
        errors: What the reference wrote to its error stream.
        expected: What should happen, in the user's words.
        inline: The bundle as text; empty to attach the file.
        part: Which part of a bundle the file is; None for a whole one.
        values: What can be said of the values of documents and tables, by digest.
    """

    snippet: Snippet | None = None
    errors: str = ""
    expected: str = ""
    inline: str = ""
    part: Part | None = None
    values: Mapping[str, str] = MappingProxyType({})


def render_issue(page: Page, materials: Materials) -> str:
    """Return the issue: at most 65,536 bytes of UTF-8, so however they are counted.

    Raises:
        LimitError: The bundle as text leaves no room for the issue.
    """
    head = [_what(page), _reproduce_head(page, materials.snippet)]
    middle = [_compared(page, materials), _versions(page)]
    tail = [_check(page, materials)]
    if materials.inline:
        tail.append(folded("The bundle as text", fenced(materials.inline, "text")))
    fixed = "\n\n".join(block for block in [*head, *middle, *tail] if block)
    room = ISSUE_CHARACTERS - len(fixed.encode()) - LEAST_BYTES
    if room < 2 * LEAST_BYTES:
        raise LimitError(
            f"{len(fixed.encode()):,} bytes with the bundle as text, an issue takes "
            f"{ISSUE_CHARACTERS:,}",
            rule="R-4.40",
            advice="see reprobundle check BUNDLE --for pytorch-issue, or leave out "
            "--inline and attach the file",
        )
    script = _script(materials.snippet, page, room // 2)
    trace = _traceback(page, materials.errors, room - len(script.encode()))
    blocks = [*head, script, *middle, trace, *tail]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _what(page: Page) -> str:
    """Return what happened, in one or two lines."""
    reference = page.reference.record if page.reference else None
    lines = []
    if reference is not None:
        lines.append(f"**{_ending(reference)}**")
        command = code(shlex.join(reference.command.argv))
        lines.append(f"On {code(platform_label(reference))}, command {command}.")
    if page.replays:
        lines.append(f"Run again: **{page.report.verdict}**.")
        reasons = page.report.reasons[:MOST_REASONS]
        lines += [f"- {code(reason)}" for reason in reasons]
    return "\n".join(lines)


def _ending(record: Record) -> str:
    error = record.outcome.error
    if error is None:
        return code(f"exit status {record.outcome.exit_status}")
    where = f" at {error.where.removeprefix('{project}/')}" if error.where else ""
    steps = f" after {text.plural(error.steps, 'step')}" if error.steps else ""
    first = error.message.strip().partition("\n")[0]
    return code(text.shorten(f"{error.type}{where}{steps}: {first}", 200))


def _reproduce_head(page: Page, snippet: Snippet | None) -> str:
    if snippet is None:
        return "### Reproduce\n\nNo single script is known; the bundle has the project."
    name = code(snippet.name)
    if snippet.stated:
        return f"### Reproduce\n\n{name}, cut down by hand from what the bundle ran:"
    if not snippet.needs:
        return f"### Reproduce\n\n{name}, self-contained:"
    needs = ", ".join(code(need) for need in snippet.needs[:6])
    more = len(snippet.needs) - 6
    rest = f" and {more} more" if more > 0 else ""
    return f"### Reproduce\n\n{name} also needs {needs}{rest}, all named in the bundle:"


def _script(snippet: Snippet | None, page: Page, room: int) -> str:
    if snippet is None:
        return ""
    member = shlex.quote(f"project/{snippet.name}")
    whole = f"reprobundle cat {shlex.quote(page.report.file)} {member}"
    shown = shortened(snippet.text, room - 200, f"the whole: {whole}")
    block = fenced(shown, "python")
    if shown.count("\n") > SCREEN_LINES:
        return folded(f"Script, {shown.count(chr(10)):,} lines", block)
    return block


def _compared(page: Page, materials: Materials) -> str:
    """Return what was expected beside what was observed."""
    heading = "### Expected and observed"
    if not page.replays:
        return f"{heading}\n\n{_alone(page, materials)}"
    stated = f"Expected: {code(materials.expected)}" if materials.expected else ""
    runs = (_beside(one, materials.values) for one in _shown(page))
    parts = [heading, stated, *runs]
    return "\n\n".join(part for part in parts if part)


def _shown(page: Page) -> list[ReplayPage]:
    """Return the newest replays: of several passes of one call only the measured."""
    read = [one for one in page.replays if one.replay is not None]
    measured = [one for one in read if one.judgement.pass_name == "measured"]
    return (measured or read)[-MOST_REPLAYS:]


def _alone(page: Page, materials: Materials) -> str:
    """Return the one run that there is: nobody compared anything."""
    if page.reference is None:
        return "The run cannot be read."
    record = page.reference.record
    ends = "ends without an error" if record.outcome.error else "not stated"
    expected = code(materials.expected or ends)
    rows = [("the command", expected, _ending(record))]
    rows += [
        (code(one.name), "", code(_summary(one, materials.values)))
        for one in record.outputs[:MOST_OUTPUTS]
    ]
    note = "Nobody has run it again yet: nothing is compared."
    return f"{table(('', 'expected', 'observed'), rows)}\n\n{note}"


def _summary(output: Output | None, values: Mapping[str, str]) -> str:
    if output is None:
        return ""
    if output.blake3 in values:
        return f"{output.format}, {values[output.blake3]}"
    arrays = list(map(_array, output.arrays[:2]))
    bad = sum(array.nan for array in output.arrays)
    shown = ", ".join([output.format, *arrays])
    return f"{shown}, {bad:,} NaN" if bad else shown


def _array(array: ArraySummary) -> str:
    known = f"{array.dtype} {list(array.shape)}"
    if array.minimum is None:
        return known
    return f"{known}, {text.number(array.minimum)} … {text.number(array.maximum)}"


def _beside(one: ReplayPage, values: Mapping[str, str]) -> str:
    """Return the reference and one replay, row by row."""
    judgement = one.judgement
    columns = ("", _side(one, "expected"), _side(one, "observed"), "allowed", "result")
    shown = _worst_first(judgement)[:MOST_OUTPUTS]
    rows = [_ends(one)]
    rows += [_output(output, one, values) for output in shown]
    hidden = len(judgement.outputs) - MOST_OUTPUTS
    more = f"\n\nand {text.plural(hidden, 'more output')}" if hidden > 0 else ""
    return table(columns, rows) + more


def _side(one: ReplayPage, word: str) -> str:
    side = one.reference if word == "expected" else one.replay
    return f"{word}: {code(platform_label(side.record))}" if side else word


def _ends(one: ReplayPage) -> tuple[str, ...]:
    ends = [
        _ending(side.record) if side else "" for side in (one.reference, one.replay)
    ]
    return ("ended with", *ends, "", code(one.judgement.verdict))


def _worst_first(judgement: Judgement) -> Sequence[OutputComparison]:
    good = ("bit-identical", "within-tolerance")
    return sorted(judgement.outputs, key=lambda output: output.result in good)


def _output(
    output: OutputComparison, one: ReplayPage, values: Mapping[str, str]
) -> tuple[str, ...]:
    """Return one row: the worst place of an output, or what each side has."""
    worst = max(output.parts, key=_badness, default=None)
    if worst is None or not (worst.outside or worst.worst_index):
        expected = _summary(_of_name(one.reference, output.name), values)
        got = output.reason or _summary(_of_name(one.replay, output.name), values)
        return code(output.name), code(expected), code(got), "", code(output.result)
    inner = f"#{worst.name}" if worst.name else ""
    index = list(worst.worst_index) if worst.worst_index else ""
    outside = f"{worst.outside:,} of {worst.elements:,} outside"
    if not worst.outside and worst.max_abs is not None:
        # The place is the one nearest to its bound: others may lie farther apart.
        outside += f", at most {text.number(worst.max_abs)} apart"
    return (
        code(f"{output.name}{inner}{index}"),
        code(worst.expected),
        code(worst.got),
        code(_allowed(worst)),
        code(f"{output.result}: {outside}"),
    )


def _badness(part: ArrayComparison) -> tuple[int, float]:
    """Return by what the worst part of an output is found."""
    return part.outside, part.max_abs if isinstance(part.max_abs, float) else 0.0


def _of_name(side: Side | None, name: str) -> Output | None:
    outputs = side.record.outputs if side else ()
    return next((one for one in outputs if one.name == name), None)


def _allowed(part: ArrayComparison) -> str:
    if part.rtol is None or part.atol is None:
        return "equal"
    return f"rtol {part.rtol:g}, atol {part.atol:g}"


def _versions(page: Page) -> str:
    sides = [page.reference, *(one.replay for one in _shown(page))]
    blocks = []
    for side in sides:
        if side is not None:
            lines = version_lines(side.record)
            if lines not in blocks:
                blocks.append(lines)
    shown = "\n\n".join("\n".join(lines) for lines in blocks)
    return f"### Versions\n\n{fenced(shown, 'text')}"


def _traceback(page: Page, errors: str, room: int) -> str:
    """Return the whole traceback of the run that failed, folded."""
    told = "\n".join(_tracebacks(page)) or ("" if _succeeded(page) else errors)
    shown = _PACKAGES.sub("{site-packages}/", _WORD.sub(_without_stage, told))
    if not shown.strip() or room < LEAST_BYTES:
        return ""
    name = shlex.quote(page.report.file)
    whole = f"the whole: reprobundle cat {name} runs/1/record.json"
    return folded("Traceback", fenced(shortened(shown, room - 200, whole), "text"))


def _without_stage(word: re.Match[str]) -> str:
    """Return a path without the folder of the copy that was run.

    The folder's own name is looked for first: to try each slash of a long path would
    take minutes.
    """
    path = word[0]
    ends = [found.end() for found in _STAGE.finditer(path)]
    if not ends:
        return path
    return f"{path[: path.find('/')]}{{project}}{path[ends[-1] :]}"


def _tracebacks(page: Page) -> Iterator[str]:
    """Yield the traceback of the reference, and of replays that failed otherwise."""
    told = set()
    for side in (page.reference, *(one.replay for one in _shown(page))):
        error = side.record.outcome.error if side else None
        if error is None or (error.type, error.masked, error.where) in told:
            continue
        told.add((error.type, error.masked, error.where))
        yield error.traceback


def _succeeded(page: Page) -> bool:
    return page.reference is None or page.reference.record.outcome.exit_status == 0


def _check(page: Page, materials: Materials) -> str:
    """Return the bundle's name and id, and how somebody checks it."""
    report = page.report
    how = "paste the text below" if materials.inline else "attached"
    rows = [("bundle", f"{code(report.file)}, {page.size_bytes:,} bytes ({how})")]
    if materials.part is not None:
        rows.append(("part", _part_words(materials.part)))
    rows += [
        ("id", code(report.bundle)),
        ("verify says", f"{report.verdict} (exit {report.exit_status})"),
    ]
    rows += [("because", code(reason)) for reason in _gaps(page)]
    block = fenced("\n".join(_commands(page, materials)), "sh")
    return f"### Check it\n\n{table(('', ''), rows)}\n\n{block}"


def _part_words(part: Part) -> str:
    other = code(part.other.name) if part.other else "part 1"
    return f"{part.number} of 2; {other} has the rest, and a replay needs both"


def _commands(page: Page, materials: Materials) -> Iterator[str]:
    """Yield how it is checked and run again; of a part, once it was put together."""
    name = page.report.file
    source = "-" if materials.inline else shlex.quote(name)
    yield "pip install reprobundle"
    yield f"reprobundle verify {source} --expect-id {page.report.bundle}"
    whole, parts = name, [source]
    if materials.part is not None:
        other = materials.part.other
        whole = _PART_NAME.sub("", name) if _PART_NAME.search(name) else "whole.rpb.zip"
        parts.append(shlex.quote(other.name) if other else "PART1")
    if parts != [shlex.quote(name)]:
        yield f"reprobundle join {' '.join(parts)} -o {shlex.quote(whole)}"
    yield f"reprobundle replay {shlex.quote(whole)}"


def _gaps(page: Page) -> Sequence[str]:
    """Return why nothing is decided, where no replay says it already."""
    return () if page.replays else page.report.reasons[:MOST_REASONS]
