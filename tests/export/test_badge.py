"""The badge: its claim, its colour, and what a reader without eyes gets."""

from __future__ import annotations

import datetime
import re
from xml.etree import ElementTree

import msgspec
import pytest

from reprobundle.export.badge import colour, render_badge
from reprobundle.format.findings import EXIT_STATUS, Verdict
from reprobundle.format.signed import Assurance
from reprobundle.sign.sign import sign
from reprobundle.sign.signers import stated_signers
from reprobundle.verify.checks import finding
from tests.verify.builder import Bench

AT = datetime.datetime(2026, 12, 3, 5, 6, 7, tzinfo=datetime.timezone.utc)
GREEN = "#1a6b33"
SVG = "{http://www.w3.org/2000/svg}"


def as_told(report, verdict):
    return msgspec.structs.replace(
        report, verdict=verdict.value, exit_status=EXIT_STATUS[verdict]
    )


def text_of(root, name):
    return "".join(one.text or "" for one in root.iter(f"{SVG}{name}"))


@pytest.fixture(scope="module")
def report(benches):
    return benches["reproduced"].verify()


@pytest.mark.parametrize("verdict", Verdict)
def test_green_is_a_plain_reproduced_and_nothing_else(verdict, report):
    plain = {Verdict.BIT_IDENTICAL, Verdict.WITHIN_TOLERANCE}
    drawn = render_badge(as_told(report, verdict), AT)
    assert (GREEN in drawn) is (verdict in plain)
    assert verdict.value in drawn


@pytest.mark.parametrize(
    ("kind", "is_green"),
    [
        ("reproduced", True),
        ("failing", True),
        ("not reproduced", False),
        ("not replayed", False),
        ("incomplete", False),
    ],
)
def test_the_colour_follows_what_verify_says_of_a_bundle(kind, is_green, benches):
    told = benches[kind].verify()
    assert (GREEN in render_badge(told, AT)) is is_green


def test_an_integrity_check_alone_is_never_green(benches):
    told = benches["reproduced"].verify(integrity_only=True)
    assert told.exit_status == 0
    assert GREEN not in render_badge(told, AT)


def test_a_warning_that_was_allowed_away_is_not_green(report):
    allowed = finding("vacuous-tolerance", "warn", "it admits all")
    allowed = msgspec.structs.replace(allowed, allowed=True)
    told = msgspec.structs.replace(report, findings=(*report.findings, allowed))
    assert colour(told) != GREEN


def test_a_warning_of_a_replay_that_was_allowed_away_is_not_green(report):
    allowed = finding("large-error", "warn", "as large as the values")
    allowed = msgspec.structs.replace(allowed, allowed=True)
    (judged,) = report.judgements
    judged = msgspec.structs.replace(judged, findings=(*judged.findings, allowed))
    assert colour(report) == GREEN
    assert colour(msgspec.structs.replace(report, judgements=(judged,))) != GREEN


def test_words_and_status_that_contradict_are_not_green(report):
    assert colour(msgspec.structs.replace(report, exit_status=11)) != GREEN
    assert colour(msgspec.structs.replace(report, bundle="")) != GREEN


def test_the_line_holds_id_day_device_and_who(report, benches):
    root = ElementTree.fromstring(render_badge(report, AT))
    words = [one.text for one in root.iter(f"{SVG}text")]
    bundle = benches["reproduced"].id
    assert words == [
        "reprobundle",
        "REPRODUCED, bit-identical",
        f"cpu · {bundle[:12]} · 2026-12-03 · not signed",
    ]


@pytest.mark.parametrize(
    ("level", "words"),
    [
        ("self-attested", "self-attested"),
        ("reproduced-by-second", "by a second person"),
        ("reproduced-by-several", "by several people"),
        ("unsigned", "not signed"),
    ],
)
def test_who_vouches_is_told(level, words, report):
    assurance = Assurance(level=level, authors=("ada",), reproduced_by=("bob",))
    told = msgspec.structs.replace(report, assurance=assurance)
    assert text_of(ElementTree.fromstring(render_badge(told, AT)), "title").endswith(
        f"· {words})"
    )


def test_a_second_person_is_told_by_their_keys(tmp_path, keys, listed):
    bench = Bench(tmp_path).pack()
    replay = bench.replay()
    sign(bench.path, keys["alice"])
    signers = stated_signers((listed(alice="", bob=""),), revoked=None, at="")
    drawn = render_badge(bench.verify(signers=signers), AT)
    assert "· self-attested</text>" in drawn
    assert "self-attested: signed by alice@lab" in drawn
    sign(bench.path, keys["bob"], replays=(replay,))
    drawn = render_badge(bench.verify(signers=signers), AT)
    assert "· by a second person</text>" in drawn
    assert "reproduced and signed by bob@lab" in drawn


def test_it_can_be_read_aloud(report, benches):
    root = ElementTree.fromstring(render_badge(report, AT))
    assert root.get("role") == "img"
    names = str(root.get("aria-labelledby")).split()
    parts = {one.get("id"): one.tag for one in root.iter()}
    assert [parts[name] for name in names] == [f"{SVG}title", f"{SVG}desc"]
    said = text_of(root, "desc")
    assert benches["reproduced"].id in said
    assert "2026-12-03T05:06:07Z" in said
    assert "not checked: " in said


def test_text_has_enough_contrast(report):
    for verdict in Verdict:
        drawn = render_badge(as_told(report, verdict), AT)
        for fill in re.findall(r'<rect [^>]*fill="#([0-9a-f]{6})"', drawn):
            assert contrast_with_white(fill) >= 4.5, verdict


def contrast_with_white(fill):
    """Return the ratio of WCAG 2.2, 1.4.3."""
    linear = []
    for at in (0, 2, 4):
        part = int(fill[at : at + 2], 16) / 255
        linear.append(
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        )
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return 1.05 / (luminance + 0.05)


def test_foreign_words_cannot_leave_their_place(report):
    reasons = ("</desc><script>x</script>", "a\x1b[2J\x00\udcff\n&")
    told = msgspec.structs.replace(report, reasons=reasons)
    root = ElementTree.fromstring(render_badge(told, AT))
    assert not list(root.iter(f"{SVG}script"))


def test_where_it_ran_is_told_and_not_where_it_should_have(report):
    judged = tuple(
        msgspec.structs.replace(one, device="mps-standin", requested="mps")
        for one in report.judgements
    )
    told = msgspec.structs.replace(report, judgements=judged)
    assert "mps-standin · " in render_badge(told, AT)
