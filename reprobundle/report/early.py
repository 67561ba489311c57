"""Show the first lines of a report while the rest of it is still being found out.

What is shown early is the beginning of what `render_report` returns in the end, and
never a verdict. Nothing here judges, and nothing here is imported that compares
numbers: the first line of a small bundle is to stand there at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from reprobundle.report import text
from reprobundle.report.layout import flow
from reprobundle.report.screen import Line, Screen, Span

if TYPE_CHECKING:
    from reprobundle.format.findings import Report
    from reprobundle.verify.asked import SoFar


def heading_lines(report: Report | SoFar, screen: Screen) -> list[Line]:
    """Return which file and which bundle the report is about."""
    known = f"bundle {text.digest(report.bundle)}" if report.bundle else "no bundle id"
    items: list[Line] = [(Span(report.file, "strong"),), (Span(known),)]
    if report.format_version:
        items.append((Span(f"format {report.format_version}"),))
    return flow(screen, "file", items)


class EarlyLines:
    """The lines of one report, each of them shown once, as soon as it is certain."""

    def __init__(
        self, show: Callable[[str], None], screen: Screen, *, verbose: bool = False
    ) -> None:
        """Take where to show.

        Args:
            show: Puts a text where it is to be seen, at once; it is told whole lines.
            screen: What that place can show.
            verbose: As in `render_report`.
        """
        self._show = show
        self._screen = screen
        self._verbose = verbose
        self._shown = ""

    def tell(self, known: SoFar) -> None:
        """Show what is certain now.

        Where a check failed or warned, its words depend on the reasons of the verdict,
        so the integrity waits for them.
        """
        lines = heading_lines(known, self._screen)
        if known.findings:
            from reprobundle.report.checked import area_lines, is_settled

            if not is_settled(known.findings, "integrity"):
                return
            lines += area_lines(
                known.findings, "integrity", self._screen, verbose=self._verbose
            )
        self._advance(self._screen.text(lines) + "\n")

    def end(self, report: Report) -> None:
        """Show the rest, up to the verdict."""
        from reprobundle.report.terminal import render_report

        whole = render_report(report, self._screen, verbose=self._verbose)
        self._advance(whole + "\n")

    def _advance(self, text_now: str) -> None:
        """Show what is new in `text_now`; all of it if it begins otherwise."""
        is_longer = text_now.startswith(self._shown)
        self._show(text_now[len(self._shown) :] if is_longer else text_now)
        self._shown = text_now
