"""Markdown in the forms that committees, data editors and reviewers ask for.

Sources of the forms: the artifact appendix of ACM and cTuning (check-list of meta
information; what is expected and how it is evaluated); the AEA Data Editor's report
(classification of the reproduction and reasons for an incomplete one); the acceptance
list of spec.md (V10). The sentences are ours. A style arranges findings, it never
judges: the verdict stands in each as `verify` gave it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence

from reprobundle.format.findings import CheckOutcome, Finding, Verdict
from reprobundle.report import text
from reprobundle.report.accepted_markdown import (
    accepted_block,
    assessment_block,
    checklist_blocks,
)
from reprobundle.report.markdown import limited, machine, render_markdown
from reprobundle.report.markdown_text import code, table, words
from reprobundle.report.page import Page

_BOXES: dict[CheckOutcome, str] = {
    "pass": "[x]",
    "warn": "[ ]",
    "fail": "[ ]",
    "not-checked": "[ ]",
    "not-applicable": "[ ]",
}

_FULL = "full reproduction"
_MINOR = "full reproduction with minor issues"
_PARTIAL = "partial reproduction"
_NONE = "not able to reproduce the results"
_UNDECIDED = "no reproduction was attempted or finished; nothing is classified"
_CLASSES: dict[str, str] = {
    Verdict.BIT_IDENTICAL.value: _FULL,
    Verdict.WITHIN_TOLERANCE.value: _FULL,
    Verdict.WITH_WARNINGS.value: _MINOR,
    Verdict.PARTIAL.value: _PARTIAL,
    Verdict.NOT_REPRODUCED.value: _NONE,
    Verdict.DIFFERENT_FAILURE.value: _NONE,
}
# Reasons for an incomplete reproduction, and the findings that stand for each.
_REASONS: tuple[tuple[str, frozenset[str]], ...] = (
    (
        "discrepancy in output",
        frozenset({"output-differs", "output-missing", "output-unexpected"}),
    ),
    (
        "code did not run to its end",
        frozenset({"exit-status", "run-completed", "masked-failure", "stopped"}),
    ),
    ("code missing", frozenset({"has-script", "same-files"})),
    (
        "data missing or other data",
        frozenset({"has-input-sample", "same-inputs", "reduced-input", "standin-data"}),
    ),
    (
        "software or hardware not the same",
        frozenset(
            {
                "environment-drift",
                "device-asked",
                "standin-device",
                "cpu-fallback",
                "accepting-platform",
            }
        ),
    ),
    (
        "bundle incomplete or altered",
        frozenset({"container", "member-digest", "membership", "sealed-document"}),
    ),
)


def render_style(page: Page, style: str) -> str:
    """Return the Markdown report in one of the styles.

    Args:
        page: What to show.
        style: ``plain``, ``aec``, ``aea`` or ``checklist``.
    """
    if style == "plain":
        return render_markdown(page)
    blocks = _STYLES[style](page)
    return limited("\n\n".join(block for block in blocks if block) + "\n")


def _verdict(page: Page) -> str:
    report = page.report
    why = "".join(f"\n- {words(reason)}" for reason in report.reasons[:12])
    return f"**{report.verdict}** (exit {report.exit_status}){why}"


def _checklist(page: Page) -> Iterator[str]:
    """Yield the acceptance list: ticked only where evidence was found."""
    yield f"# Acceptance list: {code(page.report.file)}"
    yield _verdict(page)
    if page.report.assessment is not None:
        yield from checklist_blocks(page.report.assessment)
    yield accepted_block(page.report)
    for check, title in (("V10", "Acceptance"), ("V9", "Required members")):
        found = [one for one in page.report.findings if one.check == check]
        yield f"## {title}\n\n" + "\n".join(map(_ticked, found))


def _ticked(found: Finding) -> str:
    source = f" ({code(found.where)})" if found.where else ""
    why = f": {words(found.reason)}" if found.reason else ""
    state = "" if found.outcome == "pass" else f" **{found.outcome}**"
    return f"- {_BOXES[found.outcome]} {code(found.id)}{state}{why}{source}"


def _acceptance(page: Page) -> Iterator[str]:
    """Yield the attached acceptance records and the assessment, if there are any."""
    report = page.report
    told = [accepted_block(report), assessment_block(report.assessment)]
    shown = "\n\n".join(block for block in told if block)
    if shown:
        yield f"## Acceptance\n\n{shown}"


def _aec(page: Page) -> Iterator[str]:
    """Yield an artifact appendix."""
    report = page.report
    yield f"# Artifact appendix: {code(report.file)}"
    purpose = page.policy.intent.purpose if page.policy is not None else ""
    yield f"## Abstract\n\n{words(purpose) or 'The author stated no purpose.'}"
    yield "## Check-list\n\n" + table(("item", "value"), _meta(page))
    yield "## Evaluation and expected results\n\n" + (_claims(page) or "No claims.")
    commands = [
        f"reprobundle verify {shlex.quote(report.file)}",
        f"reprobundle replay {shlex.quote(report.file)}",
    ]
    yield "## How to evaluate\n\n" + "\n".join(f"    {line}" for line in commands)
    yield f"## Outcome of the evaluation\n\n{_verdict(page)}"
    yield from _acceptance(page)
    yield _unchecked(page)


def _meta(page: Page) -> list[tuple[str, str]]:
    if page.reference is None:
        return [("bundle", "cannot be read")]
    record = page.reference.record
    inputs = [read for read in record.reads if read.member.startswith("inputs/")]
    peak = record.memory.peak_rss_bytes.value
    outputs = ", ".join(code(one.name) for one in record.outputs[:12])
    return [
        ("program", code(" ".join(record.command.argv))),
        ("data set", ", ".join(code(read.path) for read in inputs[:12]) or "none"),
        ("run-time environment", code(machine(record))),
        ("hardware", code(_hardware(page))),
        ("output", outputs or "none"),
        ("time needed", text.duration(record.elapsed_ns)),
        ("memory needed", text.size(peak) if isinstance(peak, int) else "unknown"),
        ("disk needed", text.size(page.size_bytes)),
        ("seed", code(str(record.command.seed)) if record.command.seed else "see V9"),
        ("bundle id", code(page.report.bundle)),
    ]


def _hardware(page: Page) -> str:
    if page.reference is None:
        return "unknown"
    facts = page.reference.record.environment
    names = ("cpu.model", "gpu.name", "torch.cuda.device_name", "machine.model")
    known = [facts[name].value for name in names if name in facts]
    return ", ".join(str(value) for value in known if value is not None) or "unknown"


def _claims(page: Page) -> str:
    if page.policy is None:
        return ""
    rows = [
        (
            code(claim.name),
            words(claim.statement) or "over all outputs",
            code(" ".join(claim.command)) or "the main command",
            f"{claim.minutes:g}" if claim.minutes is not None else "unknown",
        )
        for claim in page.policy.claims
    ]
    return table(("claim", "statement", "command", "minutes"), rows)


def _unchecked(page: Page) -> str:
    names = ", ".join(map(code, page.report.not_checked))
    return f"Not checked: {names}" if names else ""


def _aea(page: Page) -> Iterator[str]:
    """Yield a data editor's classification with its reasons."""
    report = page.report
    yield f"# Reproduction report: {code(report.file)}"
    yield f"Classification: **{_CLASSES.get(report.verdict, _UNDECIDED)}**"
    yield _verdict(page)
    found = list(_all_problems(page))
    rows = []
    for reason, ids in _REASONS:
        because = [one for one in found if one.id in ids]
        box = "[x]" if because else "[ ]"
        names = ", ".join(dict.fromkeys(code(one.id) for one in because))
        rows.append(f"- {box} {reason}{f': {names}' if names else ''}")
    yield "## Reasons for incomplete reproduction\n\n" + "\n".join(rows)
    yield "## Computing requirements\n\n" + table(("item", "value"), _meta(page))
    yield from _acceptance(page)
    yield _unchecked(page)


def _all_problems(page: Page) -> Iterator[Finding]:
    report = page.report
    everything: Sequence[Finding] = [
        *report.findings,
        *(one for judgement in report.judgements for one in judgement.findings),
    ]
    for one in everything:
        if one.outcome in ("fail", "warn", "not-checked"):
            yield one


_STYLES: dict[str, Callable[[Page], Iterator[str]]] = {
    "aec": _aec,
    "aea": _aea,
    "checklist": _checklist,
}
