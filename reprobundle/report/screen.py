"""Where a report is shown: how wide, in which characters, with or without colour.

Colour is a few SGR codes written here. A full console library takes longer to import
than `verify` takes to prove a small bundle.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal, NamedTuple, TextIO

import msgspec

from reprobundle.format.findings import CheckOutcome
from reprobundle.report.text import safe

PLAIN_WIDTH = 100
NARROWEST = 32
WIDEST = 120

Style = Literal[
    "",
    "good",
    "warn",
    "bad",
    "dim",
    "strong",
    "strong good",
    "strong warn",
    "strong bad",
]

_CODES: dict[Style, str] = {
    "good": "32",
    "warn": "33",
    "bad": "31",
    "dim": "2",
    "strong": "1",
    "strong good": "1;32",
    "strong warn": "1;33",
    "strong bad": "1;31",
}


class Span(NamedTuple):
    """A piece of one line in one style."""

    text: str
    style: Style = ""


Line = tuple[Span, ...]


class Marks(NamedTuple):
    """The signs that stand beside words; they never stand alone."""

    passed: str
    warned: str
    failed: str
    not_checked: str
    not_applicable: str
    ellipsis: str


UNICODE = Marks("✔", "⚠", "✘", "?", "–", "…")
ASCII = Marks("ok", "!", "X", "?", "-", "...")

_STYLES: dict[CheckOutcome, Style] = {
    "pass": "good",
    "warn": "warn",
    "fail": "bad",
    "not-checked": "warn",
    "not-applicable": "dim",
}


class Screen(msgspec.Struct, frozen=True):
    """What the place of a report can show.

    Attributes:
        width: Cells in a line.
        colour: Whether styles are written as SGR codes.
        encoding: What all characters have to fit into.
    """

    width: int = PLAIN_WIDTH
    colour: bool = False
    encoding: str = "utf-8"

    @classmethod
    def of(cls, stream: TextIO) -> Screen:
        """Return the screen that `stream` offers.

        Without a terminal: 100 cells, no colour. ``NO_COLOR`` and ``TERM=dumb`` are
        obeyed.
        """
        terminal = stream.isatty()
        return cls(
            width=_terminal_width(stream) if terminal else PLAIN_WIDTH,
            colour=terminal
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM", "") not in {"", "dumb"},
            encoding=stream.encoding or "ascii",
        )

    @property
    def marks(self) -> Marks:
        """The signs this screen can show."""
        try:
            "".join(UNICODE).encode(self.encoding)
        except UnicodeEncodeError:
            return ASCII
        return UNICODE

    def mark(self, outcome: CheckOutcome) -> Span:
        """Return the sign for the outcome of a check."""
        signs: dict[CheckOutcome, str] = {
            "pass": self.marks.passed,
            "warn": self.marks.warned,
            "fail": self.marks.failed,
            "not-checked": self.marks.not_checked,
            "not-applicable": self.marks.not_applicable,
        }
        return Span(signs[outcome], _STYLES[outcome])

    def safe(self, foreign: str) -> str:
        """Return `foreign` as it may be shown here, see `reprobundle.report.text`."""
        return safe(foreign, self.encoding)

    def text(self, lines: Iterable[Line]) -> str:
        """Return `lines` as one text that cannot steer a terminal."""
        return "\n".join(self._painted(line) for line in lines)

    def _painted(self, line: Line) -> str:
        spans = [Span(self.safe(span.text), span.style) for span in line]
        while spans and not spans[-1].text.strip():
            spans.pop()
        if spans:
            spans[-1] = Span(spans[-1].text.rstrip(), spans[-1].style)
        return "".join(self._paint(span.text, span.style) for span in spans)

    def _paint(self, shown: str, style: Style) -> str:
        code = _CODES.get(style)
        if not (self.colour and code and shown.strip()):
            return shown
        return f"\x1b[{code}m{shown}\x1b[0m"


def _terminal_width(stream: TextIO) -> int:
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return PLAIN_WIDTH
    # A terminal without a size says 0; some emulators wrap a line that is exactly
    # as wide as they are.
    return min(max(columns - 1, NARROWEST), WIDEST) if columns else PLAIN_WIDTH
