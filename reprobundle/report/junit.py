"""Write a report as JUnit XML, for a CI system.

JUnit knows no "not checked": such a finding is an error where the verdict needs it and
a skipped test elsewhere, never a passed one. A warning fails unless it was allowed.
The last test case is the verdict itself and passes only with exit status 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from reprobundle.format.findings import Finding, Report
from reprobundle.report.accepted import advice_words, result_words
from reprobundle.report.concluded import opinion_words
from reprobundle.report.text import safe
from reprobundle.verify.checks import BY_NUMBER
from reprobundle.verify.verdict import consequence


def render_junit(report: Report) -> str:
    """Return the XML document."""
    suites = ET.Element("testsuites", name=safe(report.file))
    _suite(suites, "bundle", report.findings)
    for judgement in report.judgements:
        _suite(
            suites,
            f"replay {judgement.replay[:12]}: {judgement.verdict}",
            judgement.findings,
        )
    verdict = ET.SubElement(suites, "testsuite", name="verdict", tests="1")
    case = ET.SubElement(
        verdict, "testcase", classname="verdict", name=safe(report.verdict)
    )
    _properties(verdict, report)
    red = report.exit_status != 0
    if red:
        _problem(case, "failure", report.verdict, "\n".join(report.reasons))
    verdict.set("failures", str(int(red)))
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _properties(verdict: ET.Element, report: Report) -> None:
    """State the results of claims and of the verifier's own policy, which fail nothing.

    The findings behind them are test cases of their own.
    """
    said = [(f"claim {one.name}", one.result) for one in report.claims]
    said += [(f"acceptance {one.id[:12]}", one.state) for one in report.acceptances]
    if report.assessment is not None:
        said.append(("acceptance", result_words(report.assessment)))
        said.append(("recommendation", advice_words(report.assessment)))
    if report.second_opinion is not None:
        said.append(("own policy", opinion_words(report.second_opinion)))
    if not said:
        return
    # It has to be the first child of a test suite.
    properties = ET.Element("properties")
    for name, value in said:
        ET.SubElement(properties, "property", name=safe(name), value=safe(value))
    verdict.insert(0, properties)


def _suite(suites: ET.Element, name: str, findings: Sequence[Finding]) -> None:
    suite = ET.SubElement(
        suites, "testsuite", name=safe(name), tests=str(len(findings))
    )
    counts = {"failure": 0, "error": 0, "skipped": 0}
    for found in findings:
        kind = _kind(found)
        check = BY_NUMBER[found.check]
        case = ET.SubElement(
            suite,
            "testcase",
            classname=f"{found.check} {check.title}",
            name=safe(f"{found.id} {found.where}".strip()),
        )
        if kind:
            counts[kind] += 1
            _problem(case, kind, found.outcome, _words(found))
    suite.set("failures", str(counts["failure"]))
    suite.set("errors", str(counts["error"]))
    suite.set("skipped", str(counts["skipped"]))


def _kind(found: Finding) -> str:
    if found.outcome in ("fail", "warn"):
        return "skipped" if found.allowed else "failure"
    if found.outcome == "not-checked" and consequence(found) is not None:
        return "error"
    return "" if found.outcome == "pass" else "skipped"


def _problem(case: ET.Element, kind: str, what: str, words: str) -> None:
    first = words.split("\n", 1)[0]
    element = ET.SubElement(case, kind, type=safe(what), message=safe(first))
    if kind != "skipped":
        element.text = "\n".join(map(safe, words.split("\n")))


def _words(found: Finding) -> str:
    allowed = "allowed by the caller: " if found.allowed else ""
    sides = [
        f"{word} {side}"
        for word, side in (("expected", found.expected), ("got", found.got))
        if side
    ]
    return "\n".join([f"{allowed}{found.reason}", *sides, found.advice]).strip()
