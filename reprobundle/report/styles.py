"""Markdown in the forms that committees, data editors and reviewers ask for.

Sources of the forms: the artifact appendix of ACM and cTuning
(https://ctuning.org/ae/submission_extra.html: check-list of meta information, what it
needs, what is expected and how it is evaluated); the AEA Data Editor's report
(classification of the reproduction and reasons for an incomplete one) with the README
template of the social science data editors (https://doi.org/10.5281/zenodo.7293838);
the acceptance list of spec.md (V10). The sentences are ours. A style arranges findings,
it never judges: the verdict stands in each as `verify` gave it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reprobundle.format.findings import CheckOutcome, Finding, Verdict
from reprobundle.report import artifact
from reprobundle.report.accepted_markdown import (
    accepted_block,
    assessment_block,
    checklist_blocks,
)
from reprobundle.report.concluded import failure_words
from reprobundle.report.markdown import limited, render_markdown
from reprobundle.report.markdown_text import address, code, table, words
from reprobundle.report.page import Page
from reprobundle.report.vouched import signed_rows

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
    alone = failure_words(report)
    compared = f"\n- compared: {alone}" if alone else ""
    return f"**{report.verdict}** (exit {report.exit_status}){compared}{why}"


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
    """Yield an artifact appendix, its sections in the order of the template."""
    report = page.report
    yield f"# Artifact appendix: {code(report.file)}"
    purpose = page.policy.intent.purpose if page.policy is not None else ""
    yield f"## Abstract\n\n{words(purpose) or 'The author stated no purpose.'}"
    yield artifact.cited(page)
    yield "## Check-list\n\n" + table(("item", "value"), artifact.check_list(page))
    yield from _description(page)
    yield "## Installation and experiment workflow\n\n" + artifact.steps(page)
    claims = artifact.claims_table(page) or "No claims."
    yield f"## Evaluation and expected results\n\n{claims}\n\n{_EXPECTED}"
    yield f"## Outcome of the evaluation\n\n{_verdict(page)}"
    yield from _vouched(page)
    yield f"## Experiment customization\n\n{_CUSTOM}"
    yield from _acceptance(page)
    yield _unchecked(page)


_EXPECTED = (
    "The evaluator's outputs are compared with the author's under the tolerances and "
    "bands that were frozen before; a number without a band is shown and not judged."
)
_CUSTOM = (
    "`reprobundle replay --set NAME=VALUE` changes one thing and records that it did; "
    "such a run is an experiment and decides nothing. `reprobundle extract` gives the "
    "program as plain files."
)


def _description(page: Page) -> Iterator[str]:
    """Yield what the artifact needs: access, hardware, software, data."""
    if page.reference is None:
        return
    record = page.reference.record
    cited = page.citation
    places = filter(None, (cited.doi_url, cited.repository or cited.url))
    access = ", ".join(map(address, places))
    yield "## Description"
    yield f"**How to access.** {access or artifact.NOT_STATED}"
    yield f"**Hardware dependencies.** {words(artifact.hardware(record))}"
    software = table(("software", "version"), artifact.software_rows(record))
    lock = "Every package with its digest: `lock/` in the bundle."
    yield f"**Software dependencies.** {lock}\n\n{software}"
    data = table(("data", "size", "availability"), artifact.data_rows(record))
    yield "**Data sets.**" if data else "**Data sets.** None read."
    yield data


def _vouched(page: Page) -> Iterator[str]:
    rows = signed_rows(page.report)
    if rows:
        yield table(("", ""), [(name, words(said)) for name, said in rows])


def _unchecked(page: Page) -> str:
    names = ", ".join(map(code, page.report.not_checked))
    return f"Not checked: {names}" if names else ""


def _aea(page: Page) -> Iterator[str]:
    """Yield a data editor's report: what was given, what came out, and why."""
    report = page.report
    yield f"# Reproduction report: {code(report.file)}"
    yield artifact.cited(page)
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
    yield from _replication_package(page)
    yield from _vouched(page)
    yield from _acceptance(page)
    yield _unchecked(page)


def _replication_package(page: Page) -> Iterator[str]:
    """Yield what the data editors' README template asks about data and computing."""
    items = table(("item", "value"), artifact.check_list(page))
    if page.reference is None:
        yield f"## Computing requirements\n\n{items}"
        return
    record = page.reference.record
    data = table(("data", "size", "availability"), artifact.data_rows(record))
    yield f"## Data availability\n\n{data or 'No input was read.'}"
    software = table(("software", "version"), artifact.software_rows(record))
    yield f"## Computing requirements\n\n{items}\n\n{software}"
    programs = artifact.programs(record)
    sources = ", ".join(map(code, programs[:20])) or "none seen"
    more = len(programs) - 20
    told = f"{sources}{f' and {more} more' if more > 0 else ''}"
    yield f"## Programs\n\n{told}"
    yield f"## Instructions to replicators\n\n{artifact.steps(page)}"
    claims = artifact.claims_table(page)
    yield f"## Tables, figures and claims\n\n{claims or 'No claims.'}"


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
