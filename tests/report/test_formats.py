"""One report in every format: the same verdict, nothing hidden, nothing foreign."""

from __future__ import annotations

import html
import json
import re
from xml.etree import ElementTree as ET

import msgspec
import pytest

from reprobundle.cli import run
from reprobundle.format.findings import EXIT_STATUS, Finding, Report, Verdict
from reprobundle.format.reader import open_bundle
from reprobundle.report.concluded import told_claims
from reprobundle.report.html import render_html
from reprobundle.report.json import report_json
from reprobundle.report.junit import render_junit
from reprobundle.report.markdown import MOST_CHARACTERS, render_markdown
from reprobundle.report.page import Page, build_page
from reprobundle.report.screen import Screen
from reprobundle.report.styles import render_style
from reprobundle.report.terminal import render_report
from reprobundle.report.view import view
from tests.report import pages, reports
from tests.report.test_hostile import HOSTILE, hostile_report
from tests.verify.builder import Run

WIDE = Screen(width=400)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Case → its page and all renderings."""
    found = {}
    for name, (make, _) in pages.CASES.items():
        page = pages.page_of(make(tmp_path_factory.mktemp(name)), name)
        found[name] = page
    return found


def text_of(page: str) -> str:
    """What a person reads of an HTML page."""
    body = page[page.index("<body>") :]
    return html.unescape(re.sub(r"<[^>]+>", " ", body))


@pytest.mark.parametrize("case", pages.CASES)
def test_no_format_has_a_verdict_of_its_own(shown, case):
    page, expected = shown[case], pages.CASES[case][1]
    report = page.report
    status = report.exit_status
    assert report.verdict == expected
    assert render_report(report, WIDE).endswith(f"{expected} (exit {status})")
    decoded = json.loads(report_json(report))
    assert (decoded["verdict"], decoded["exit_status"]) == (expected, status)
    assert render_markdown(page).startswith(f"**{expected}** (exit {status})")
    words = " ".join(text_of(render_html(page)).split())
    assert f"{expected} exit status {status}" in words
    suites = ET.fromstring(render_junit(report))
    (last,) = suites[-1].iter("testcase")
    assert last.get("name") == expected
    assert (last.find("failure") is None) == (status == 0)
    for style in ("aec", "aea", "checklist"):
        assert f"**{expected}** (exit {status})" in render_style(page, style)


def test_every_verdict_there_is_has_a_case():
    shown = {expected for _, expected in pages.CASES.values()}
    assert shown == {verdict.value for verdict in EXIT_STATUS}


@pytest.mark.parametrize("case", pages.CASES)
def test_no_format_has_a_verdict_of_its_own_on_a_replay(shown, case):
    page = shown[case]
    terminal = render_report(page.report, WIDE).splitlines()
    markdown = render_markdown(page).splitlines()
    text = " ".join(text_of(render_html(page)).split())
    suites = [one.get("name") for one in ET.fromstring(render_junit(page.report))]
    for judgement in page.report.judgements:
        short, verdict = judgement.replay[:12], judgement.verdict
        # What the last line says of a single replay is not said twice.
        is_last = len(page.report.judgements) == 1 and verdict == page.report.verdict
        assert is_last or any(short in line and verdict in line for line in terminal)
        assert any(short in line and verdict in line for line in markdown)
        assert re.search(f"{short}[^.]{{0,200}}{re.escape(verdict)}", text)
        assert f"replay {short}: {verdict}" in suites


@pytest.mark.parametrize("case", pages.CASES)
def test_no_format_has_a_result_of_its_own_on_a_claim(shown, case):
    page = shown[case]
    told = told_claims(page.report)
    rendered = [
        " ".join(one.split())
        for one in (
            render_report(page.report, WIDE).replace(": ", " "),
            render_markdown(page).replace("|", " ").replace("`", ""),
            text_of(render_html(page)),
        )
    ]
    for claim in told:
        words = f"{claim.name} no statement {claim.result}"
        assert all(words in one for one in rendered)
        name, value = f"claim {claim.name}", claim.result
        properties = ET.fromstring(render_junit(page.report)).iter("property")
        assert (name, value) in [
            (one.get("name"), one.get("value")) for one in properties
        ]
    assert bool(told) == (case == "one_claim_of_two")


def test_an_experiment_is_in_every_format_and_decides_in_none(shown):
    page = shown["experiments"]
    assert page.report.judgements == ()
    junit = html.unescape(render_junit(page.report))
    for rendered in (
        render_report(page.report, WIDE),
        render_markdown(page),
        text_of(render_html(page)),
        report_json(page.report).decode(),
        junit,
    ):
        assert "threads=1" in rendered
        assert "threads=2" in rendered
        assert "NOT REPRODUCED" not in rendered


def test_a_second_opinion_stands_beside_the_verdict_in_every_format(shown):
    page = shown["own_policy"]
    opinion = page.report.second_opinion
    assert opinion is not None
    assert opinion.verdict != page.report.verdict
    for rendered in (
        render_report(page.report, WIDE),
        render_markdown(page),
        text_of(render_html(page)),
        report_json(page.report).decode(),
        html.unescape(render_junit(page.report)),
    ):
        assert "mine.json" in rendered
        assert opinion.verdict in rendered
        assert page.report.verdict in rendered


@pytest.mark.parametrize("case", pages.CASES)
def test_every_reason_is_in_every_format(shown, case):
    page = shown[case]
    text = " ".join(text_of(render_html(page)).split())
    markdown = render_markdown(page).replace("\\", "")
    junit = html.unescape(render_junit(page.report))
    for reason in page.report.reasons:
        words = " ".join(reason.split())
        assert words in text
        assert reason in markdown
        assert reason in junit


@pytest.mark.parametrize("case", pages.CASES)
def test_every_format_names_what_was_not_checked(shown, case):
    page = shown[case]
    text, markdown = text_of(render_html(page)), render_markdown(page)
    for name in page.report.not_checked:
        assert name in text
        assert f"`{name}`" in markdown


def test_junit_never_passes_what_was_not_checked(shown):
    for page in shown.values():
        suites = ET.fromstring(render_junit(page.report))
        cases = [case for suite in suites[:-1] for case in suite]
        findings = [
            *page.report.findings,
            *(found for one in page.report.judgements for found in one.findings),
        ]
        assert len(cases) == len(findings)
        for case, found in zip(cases, findings, strict=True):
            assert (len(case) == 0) == (found.outcome == "pass"), found


def test_junit_calls_a_needed_but_unmade_check_an_error(shown):
    suites = ET.fromstring(render_junit(shown["not_replayed"].report))
    (error,) = suites.iter("error")
    assert "nobody has replayed it" in str(error.get("message"))
    assert suites[0].get("errors") == "1"


def test_an_allowed_warning_is_skipped_and_not_passed(tmp_path):
    bench = pages.different(tmp_path)
    report = bench.verify(allow=("environment-drift",))
    xml = render_junit(report)
    assert '<skipped type="warn" message="allowed by the caller: ' in xml


# --- HTML


def test_a_page_loads_nothing(shown):
    for page in shown.values():
        text = render_html(page)
        assert not re.search(r"https?:|src=|href=|<script|url\(|@import", text)
        assert "default-src 'none'" in text


def test_a_page_draws_curves_errors_phases_and_memory(shown):
    text = render_html(shown["different"])
    for title in (
        "loss in out/curve.csv",
        "absolute error of the replay",
        "median time by phase",
        "memory: rss",
    ):
        assert f'aria-label="{title}.' in text
    assert "reference: 12 points from 0.08333 to 1, the last 0.08333" in text
    assert "replay: 12 points from 0.09167 to 1.1, the last 0.09167" in text


def test_a_page_without_a_difference_has_no_error_figure(shown):
    assert "absolute error" not in render_html(shown["same"])


def test_a_page_shows_devices_and_environment(shown):
    text = " ".join(text_of(render_html(shown["fell_back"])).split())
    assert "replay mps cpu, mps seen aten::linalg_svd" in text
    drifted = " ".join(text_of(render_html(shown["different"])).split())
    assert "torch.num_threads 2 8 yes" in drifted


def test_a_time_without_synchronisation_has_no_bar(tmp_path):
    bench = pages.bench_in(tmp_path)
    reference = bench.reference.build(tmp_path)[0].phases
    wild = tuple(
        msgspec.structs.replace(phase, synchronized="none", median_ns=777_000)
        for phase in reference
    )
    bench.replay(Run(dict(pages.REFERENCE)), phases=wild)
    text = render_html(pages.page_of(bench))
    assert "replay: not synchronised" in text
    assert "777 us" not in text


def test_the_document_of_a_bundle_names_the_times_that_are_none(tmp_path):
    bench = pages.bench_in(tmp_path)
    phase = bench.reference.build(tmp_path)[0].phases[0]
    wild = msgspec.structs.replace(phase, name="step", synchronized="none", count=1)
    bench.reference = Run(dict(pages.REFERENCE), changes={"phases": (phase, wild)})
    bench.pack()
    with open_bundle(bench.path) as bundle:
        assert view(bundle).runs[0].no_durations == ("step",)


def test_the_share_that_a_clock_without_waits_sees_stands_by_the_bar(tmp_path):
    bench = pages.bench_in(tmp_path)
    phase = bench.reference.build(tmp_path)[0].phases[0]
    checked = msgspec.structs.replace(
        phase, median_ns=1000, unwaited_median_ns=125, unwaited_ratio=0.125, count=30
    )
    bench.replay(Run(dict(pages.REFERENCE)), phases=(checked,))
    text = render_html(pages.page_of(bench))
    assert "replay 1.00 us × 30, 12.5 % unwaited" in text


def hostile_pages() -> list[Page]:
    markup = [
        "<script>alert(1)</script>",
        "</details>\n\n# x @octocat `` ` | a",
        "&lt;b",
    ]
    # The check of a finding is ours; all else comes from strangers.
    return [
        Page(_with_known_checks(hostile_report(text))) for text in [*HOSTILE, *markup]
    ]


def _with_known_checks(report: Report) -> Report:
    known = tuple(
        msgspec.structs.replace(found, check="V4", id="member-digest")
        for found in report.findings
    )
    judgements = tuple(
        msgspec.structs.replace(
            one,
            findings=tuple(
                msgspec.structs.replace(found, check="V4", id="member-digest")
                for found in one.findings
            ),
        )
        for one in report.judgements
    )
    return msgspec.structs.replace(report, findings=known, judgements=judgements)


@pytest.mark.parametrize("page", hostile_pages(), ids=range(len(HOSTILE) + 3))
def test_foreign_text_cannot_become_markup(page):
    with_replays = build_page_of(page.report)
    text = render_html(with_replays)
    assert "<script" not in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\x9b\u202e]", text)
    markdown = render_markdown(with_replays)
    assert len(markdown) <= MOST_CHARACTERS
    outside = re.sub(r"(`+) ?.*? ?\1", "", markdown)
    assert not re.search(r"(?<!\\)<script", outside)
    assert not re.search(r"(?<!\\)@", outside)
    assert outside.count("<details>") == outside.count("</details>")
    ET.fromstring(render_junit(page.report))


def build_page_of(report: Report) -> Page:
    from reprobundle.report.page import ReplayPage

    return Page(report, replays=tuple(map(ReplayPage, report.judgements)))


# --- Markdown and its styles


def test_a_report_of_thousands_of_findings_fits_an_issue():
    finding = Finding(
        check="V4", id="member-digest", outcome="fail", where="a/b.py", reason="x" * 99
    )
    report = reports.report(Verdict.TAMPERED, findings=(finding,) * 5_000)
    text = render_markdown(Page(report))
    assert MOST_CHARACTERS - 400 < len(text) <= MOST_CHARACTERS
    assert "cut here: the report is longer than an issue may be" in text
    assert text.count("<details>") == text.count("</details>")


def test_the_first_screen_of_an_issue_holds_the_answer(shown):
    head = render_markdown(shown["different"]).split("<details>")[0].splitlines()
    assert len(head) < 40
    assert "output-differs" in head[2]
    assert any(line.startswith("| `out/logits.npy` |") for line in head)


def test_the_checklist_ticks_only_what_passed(shown):
    page = shown["same"]
    text = render_style(page, "checklist")
    outcomes = {
        found.id: found.outcome
        for found in page.report.findings
        if found.check in ("V9", "V10")
    }
    assert "not-checked" in outcomes.values()
    for name, outcome in outcomes.items():
        box = "[x]" if outcome == "pass" else "[ ]"
        assert f"- {box} `{name}`" in text


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("same", "full reproduction"),
        ("fell_back", "full reproduction with minor issues"),
        ("different", "not able to reproduce the results"),
        ("not_replayed", "no reproduction was attempted or finished"),
        ("cut_off", "no reproduction was attempted or finished"),
    ],
)
def test_a_data_editor_gets_a_class_and_its_reasons(shown, case, expected):
    text = render_style(shown[case], "aea")
    assert f"Classification: **{expected}" in text
    assert ("- [x] discrepancy in output: `output-differs`" in text) == (
        case == "different"
    )


def test_a_committee_gets_the_check_list(shown):
    text = render_style(shown["same"], "aec")
    assert "| program | `python train.py` |" in text
    assert "| run-time environment | `linux-cpu, torch 2.13.0+cpu" in text
    assert "reprobundle replay digits.rpb.zip" in text


# --- the command


def test_the_command_writes_a_page_and_ends_like_verify(tmp_path, capsys):
    bench = pages.different(tmp_path)
    page = tmp_path / "page.html"
    assert run(["report", str(bench.path), "-o", str(page)]) == 10
    assert page.read_text().startswith("<!doctype html>")
    assert "NOT REPRODUCED (exit 10); wrote" in capsys.readouterr().err


def test_a_style_is_a_form_of_markdown(tmp_path, capsys):
    bench = pages.same(tmp_path)
    assert run(["report", str(bench.path), "--style", "aea"]) == 0
    assert "full reproduction" in capsys.readouterr().out
    arguments = ["report", str(bench.path), "--style", "aea", "--format", "html"]
    assert run(arguments) == 20
    assert "a form of --format markdown" in capsys.readouterr().err


def test_a_replay_that_travels_alone_can_be_reported(tmp_path, capsys):
    bench = pages.bench_in(tmp_path)
    alone = bench.replay_alone(Run(dict(pages.OTHER)))
    arguments = ["report", str(bench.path), "--replay-file", str(alone)]
    assert run([*arguments, "--format", "markdown"]) == 10
    assert "`out/curve.csv`" in capsys.readouterr().out
    page = build_page(bench.path, bench.verify(replay_file=alone), alone)
    assert page.replays[0].curves[0].column == "loss"


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path, capsys):
    bench = pages.same(tmp_path)
    target = tmp_path / "no" / "page.html"
    assert run(["report", str(bench.path), "-o", str(target)]) == 20
    assert capsys.readouterr().err.count("\n") == 1
    assert not target.parent.exists()
