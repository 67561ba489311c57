"""A badge: one line of SVG whose claim is the verdict of this moment, and no more.

It is made from a report that was just computed, never from words. Green means one
thing: `verify` gave REPRODUCED, without a warning and without an allowance. The line
names the bundle, the device, the day and who vouches for it, for a badge is copied
without its page.
"""

from __future__ import annotations

import datetime
from html import escape
from typing import NamedTuple

from reprobundle.export.verified import rfc3339
from reprobundle.format.findings import Report, Verdict
from reprobundle.format.signed import AssuranceLevel
from reprobundle.outputs.text import printable
from reprobundle.report.vouched import assurance_words

_GREEN, _AMBER, _RED, _GREY = "#1a6b33", "#8a5000", "#a01f1f", "#4a4f55"
_LABEL = "#24292f"
_COLOURS: dict[str, str] = {
    Verdict.BIT_IDENTICAL.value: _GREEN,
    Verdict.WITHIN_TOLERANCE.value: _GREEN,
    Verdict.WITH_WARNINGS.value: _AMBER,
    Verdict.NOT_REPRODUCED.value: _RED,
    Verdict.DIFFERENT_FAILURE.value: _RED,
    Verdict.TAMPERED.value: _RED,
    Verdict.UNREADABLE.value: _RED,
}
_VOUCHED: dict[AssuranceLevel, str] = {
    "not-checked": "signatures not checked",
    "unsigned": "not signed",
    "self-attested": "self-attested",
    "reproduced-by-second": "by a second person",
    "reproduced-by-several": "by several people",
}
_SHORT_ID = 12
# Width of a character of the usual sans-serif fonts at 11 px; each text is stretched
# to its box, so another font looks a little wider and never overflows.
_CHARACTER_PX = 6.4
_CAPITAL_PX = 8.2
_PADDING_PX = 8
_HEIGHT_PX = 20
_SVG = "http://www.w3.org/2000/svg"
_LABELLED = 'aria-labelledby="title desc"'
_FONTS = "Verdana, DejaVu Sans, Helvetica, Arial, sans-serif"


class _Box(NamedTuple):
    text: str
    fill: str

    @property
    def width(self) -> float:
        capitals = sum(character.isupper() for character in self.text)
        others = len(self.text) - capitals
        text = capitals * _CAPITAL_PX + others * _CHARACTER_PX
        return round(text + 2 * _PADDING_PX, 1)


def render_badge(report: Report, at: datetime.datetime) -> str:
    """Return the badge about a report as SVG.

    Args:
        report: What `verify` said, just now.
        at: When it said so, UTC.
    """
    boxes = (
        _Box("reprobundle", _LABEL),
        _Box(report.verdict, colour(report)),
        _Box(_facts(report, at), _LABEL),
    )
    width = round(sum(box.width for box in boxes), 1)
    parts = [
        f'<svg xmlns="{_SVG}" {_size(width)} role="img" {_LABELLED}>',
        f'<title id="title">{_text(_title(report, at))}</title>',
        f'<desc id="desc">{_text(_description(report, at))}</desc>',
        f'<g font-family="{_FONTS}" font-size="11" fill="#ffffff">',
    ]
    left = 0.0
    for box in boxes:
        parts.append(_drawn(box, left))
        left += box.width
    return "\n".join([*parts, "</g>", "</svg>", ""])


def colour(report: Report) -> str:
    """Return the colour of a verdict; green for a plain REPRODUCED and nothing else."""
    found = _COLOURS.get(report.verdict, _GREY)
    allowed = any(one.allowed for one in report.findings) or any(
        one.allowed for judged in report.judgements for one in judged.findings
    )
    is_plain = report.exit_status == 0 and not allowed and bool(report.bundle)
    return _AMBER if found == _GREEN and not is_plain else found


def _size(width: float) -> str:
    return (
        f'width="{width:g}" height="{_HEIGHT_PX}" viewBox="0 0 {width:g} {_HEIGHT_PX}"'
    )


def _drawn(box: _Box, left: float) -> str:
    inner = round(box.width - 2 * _PADDING_PX, 1)
    return (
        f'<rect x="{left:g}" width="{box.width:g}" height="{_HEIGHT_PX}" '
        f'fill="{box.fill}"/>'
        f'<text x="{left + _PADDING_PX:g}" y="14" textLength="{inner:g}" '
        f'lengthAdjust="spacingAndGlyphs">{_text(box.text)}</text>'
    )


def _text(foreign: str) -> str:
    """Return text that XML can hold: no control character, no lone surrogate."""
    return escape(printable(foreign, longest=4000))


def _facts(report: Report, at: datetime.datetime) -> str:
    return " · ".join(
        (
            _devices(report),
            report.bundle[:_SHORT_ID] or "no bundle id",
            rfc3339(at)[:10],
            _vouched(report),
        )
    )


def _vouched(report: Report) -> str:
    level = report.assurance.level
    is_unsigned = level == "not-checked" and not report.signatures
    return _VOUCHED["unsigned" if is_unsigned else level]


def _devices(report: Report) -> str:
    """Return where the judged replays ran; not what they were asked for."""
    devices = dict.fromkeys(one.device for one in report.judgements if one.device)
    if devices:
        return "+".join(devices)
    return "no device" if report.judgements else "not replayed"


def _title(report: Report, at: datetime.datetime) -> str:
    return f"reprobundle: {report.verdict} ({_facts(report, at)})"


def _description(report: Report, at: datetime.datetime) -> str:
    reasons = "; ".join(report.reasons[:3])
    missing = ", ".join(report.not_checked)
    sentences = (
        f"Verified on {rfc3339(at)}",
        f"bundle {report.bundle or 'without a readable id'}",
        f"verdict {report.verdict}, exit status {report.exit_status}",
        f"reasons: {reasons}" if reasons else "",
        f"who vouches: {assurance_words(report.assurance)}",
        f"not checked: {missing}" if missing else "",
        "a picture proves nothing: run reprobundle verify",
    )
    return ". ".join(one for one in sentences if one) + "."
