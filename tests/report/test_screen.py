import io
import os
import re
import subprocess
import sys

import pytest

from reprobundle.report.screen import PLAIN_WIDTH, WIDEST, Screen, Span
from tests.report.terminals import ROOT, run_on_terminal

PROGRAM = """
import sys
import click
from reprobundle.report.terminal import render_report
from tests.report.reports import NOT_REPRODUCED
click.echo(render_report(NOT_REPRODUCED))
"""
COLOUR = re.compile(r"\x1b\[[\d;]+m")


def test_a_terminal_gets_colour_and_its_own_width():
    shown = run_on_terminal(PROGRAM, columns=60).terminal
    assert "\x1b[1;31mNOT REPRODUCED\x1b[0m" in shown
    assert max(len(COLOUR.sub("", line)) for line in shown.split("\n")) in range(50, 60)


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colour_can_be_refused(environment):
    shown = run_on_terminal(PROGRAM, columns=60, **environment).terminal
    assert "NOT REPRODUCED" in shown
    assert "\x1b" not in shown


def test_without_a_terminal_there_is_no_colour_and_a_fixed_width():
    screen = Screen.of(io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert screen == Screen(width=PLAIN_WIDTH, colour=False, encoding="utf-8")


def on_pipe(program: str, **environment: str) -> bytes:
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, **environment},
    ).stdout


def test_a_pipe_gets_plain_text_and_no_console_library_is_loaded():
    text = on_pipe(PROGRAM + "print('rich' in sys.modules)").decode()
    assert "\x1b" not in text
    assert text.endswith("VERDICT  NOT REPRODUCED (exit 10)\nFalse\n")


def test_a_stream_that_carries_only_ascii_gets_only_ascii():
    shown = on_pipe(PROGRAM, PYTHONIOENCODING="ascii")
    assert b"X outside-tolerance" in shown
    assert shown.isascii()


def test_a_very_wide_terminal_is_not_filled():
    shown = run_on_terminal(PROGRAM, columns=400, NO_COLOR="1").terminal
    assert max(map(len, shown.split("\n"))) in range(PLAIN_WIDTH, WIDEST + 1)


def test_styles_never_cover_blanks_at_the_end_of_a_line():
    line = (Span("a", "bad"), Span("  "), Span("b   ", "good"), Span("   "))
    assert Screen(colour=True).text([line]) == "\x1b[31ma\x1b[0m  \x1b[32mb\x1b[0m"
