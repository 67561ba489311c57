"""An assessment and the acceptance records say the same in every format."""

from __future__ import annotations

import html
import json
import re
from xml.etree import ElementTree as ET

import pytest

from reprobundle.format.attach import attach_acceptance
from reprobundle.format.canonical import encode
from reprobundle.report.accepted import (
    GROUPS,
    STATES,
    advice_words,
    counted,
    of_group,
    result_words,
)
from reprobundle.report.html import render_html
from reprobundle.report.json import report_json
from reprobundle.report.junit import render_junit
from reprobundle.report.markdown import render_markdown
from reprobundle.report.page import build_page
from reprobundle.report.screen import Screen
from reprobundle.report.styles import render_style
from reprobundle.report.terminal import render_report
from tests.verify.accepted_mac import FACTS, Mac, fact, scan
from tests.verify.test_acceptance_records import accept, made

WIDE = Screen(width=4000)


def chosen(folder):
    bench = Mac().made(folder)
    accept(bench)
    return bench


def stale(folder):
    bench = chosen(folder)
    Mac(facts={**FACTS, "os.build": fact("26A1")}).replayed(bench, "c" * 16)
    return bench


def undecided(folder):
    return Mac(calls=0, scan=None, doctor=None).made(folder)


def kept_on_linux(folder):
    mac = Mac(scan=scan("keep-linux-gpu", status=10))
    bench = mac.made(folder)
    attach_acceptance(bench.path, encode(made(bench, mac)))
    return bench


CASES = {
    "chosen": (chosen, "choose-mac", ("holds",)),
    "stale": (stale, "undecided", ("stale",)),
    "undecided": (undecided, "undecided", ()),
    "linux": (kept_on_linux, "keep-linux", ("holds",)),
}


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Case → its page."""
    found = {}
    for name, (make, _, _) in CASES.items():
        bench = make(tmp_path_factory.mktemp(name))
        found[name] = build_page(bench.path, bench.verify(acceptance=True))
    return found


def plain(text):
    """Return text as a person reads it: no markup, no line breaks."""
    text = re.sub(r"\\([\\`*_{}\[\]<>#|!@&~$])", r"\1", text)
    return " ".join(text.replace("`", "").replace("**", "").split())


def renderings(page):
    """Return every rendering as plain text, by name."""
    body = render_html(page)
    body = html.unescape(re.sub(r"<[^>]+>", " ", body[body.index("<body>") :]))
    found = {
        "terminal": plain(render_report(page.report, WIDE, verbose=True)),
        "html": plain(body),
        "markdown": plain(render_markdown(page)),
    }
    for style in ("aec", "aea", "checklist"):
        found[style] = plain(render_style(page, style))
    return found


@pytest.mark.parametrize("case", CASES)
def test_the_recommendation_is_the_same_everywhere(shown, case):
    report = shown[case].report
    assessment = report.assessment
    assert assessment.recommendation.choice == CASES[case][1]
    words = plain(advice_words(assessment))
    for name, text in renderings(shown[case]).items():
        assert words in text, name
    decoded = json.loads(report_json(report))["assessment"]["recommendation"]
    assert (decoded["choice"], decoded["rule"]) == (
        assessment.recommendation.choice,
        assessment.recommendation.rule,
    )
    properties = dict(_properties(report))
    assert properties["recommendation"] == advice_words(assessment)
    assert properties["acceptance"] == result_words(assessment)


def _properties(report):
    for one in ET.fromstring(render_junit(report)).iter("property"):
        yield one.get("name"), one.get("value")


@pytest.mark.parametrize("case", CASES)
def test_every_point_has_one_state_everywhere(shown, case):
    page = shown[case]
    assessment = page.report.assessment
    texts = renderings(page)
    ticks = page.report.assessment.points
    decoded = json.loads(report_json(page.report))["assessment"]["points"]
    assert [(one["id"], one["state"]) for one in decoded] == [
        (one.id, one.state) for one in ticks
    ]
    for group in GROUPS:
        for name in ("terminal", "html", "markdown", "aec", "aea"):
            assert counted(assessment, group) in texts[name], (name, group)
        for point in of_group(assessment, group):
            title, state = plain(point.title), point.state
            words = state.replace("-", " ")
            if state == "met":
                assert f"✔ {title}" in texts["terminal"]
            else:
                assert f"{title} {words}:" in texts["terminal"]
            sign = {"met": "✔", "not-met": "✘"}.get(state)
            assert re.search(rf"{re.escape(title)} \S+ {state}", texts["html"])
            assert sign is None or f"{title} {sign} {state}" in texts["html"]
            assert f"| {title} | {state} |" in texts["markdown"]
            if group != "list":
                box = "[x]" if state == "met" else "[ ]"
                mark = "" if state == "met" else f" {state}"
                assert f"- {box} {title}{mark}" in texts["checklist"]


@pytest.mark.parametrize("case", CASES)
def test_an_acceptance_record_has_one_state_everywhere(shown, case):
    report = shown[case].report
    expected = CASES[case][2]
    assert tuple(one.state for one in report.acceptances) == expected
    texts = renderings(shown[case])
    properties = dict(_properties(report))
    for one in report.acceptances:
        short, state = one.id[:12], STATES[one.state]
        assert f"{short} {state}:" in texts["terminal"]
        assert re.search(rf"\| {short} \| [^|]+ \| {state} \|", texts["markdown"])
        assert re.search(rf"{short} A\. Tester.{{0,160}}? {state}", texts["html"])
        assert properties[f"acceptance {short}"] == one.state
        for reason in one.reasons[:2]:
            for name in ("terminal", "html", "markdown", "aec", "aea", "checklist"):
                assert plain(reason) in texts[name], name


def test_nothing_is_said_of_acceptance_where_nobody_asked(shown, tmp_path):
    bench = Mac(calls=0).made(tmp_path)
    page = build_page(bench.path, bench.verify())
    assert "recommended" not in render_report(page.report, WIDE)
    assert "Acceptance" not in render_html(page).replace("Acceptance records", "")
    assert "point by point" not in render_markdown(page)
