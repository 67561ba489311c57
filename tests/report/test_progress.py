import inspect
import io

import pytest

from reprobundle.report.progress import SHOW_AFTER_S, progress
from tests.report.terminals import run_on_terminal

PROGRAM = """
import sys
from reprobundle.report.progress import progress
with progress({arguments}) as advance:
    {body}
print("rich" in sys.modules)
"""


def run(
    arguments: str, body: str = "advance(1)", *, term: str = "xterm", status: int = 0
) -> tuple[str, str]:
    """Run a block under `progress` with a terminal as standard error."""
    ran = run_on_terminal(
        PROGRAM.format(arguments=arguments, body=body), stream="stderr", TERM=term
    )
    assert ran.status == status
    return ran.terminal, ran.pipe.strip()


def test_a_terminal_shows_what_is_done_and_how_much_there_is():
    shown, loaded = run(
        "'checking digests', 2 << 20, after_s=0", "advance(1 << 20); advance(0)"
    )
    assert "checking digests" in shown
    assert "1.0/2.0 MiB" in shown
    assert loaded == "True"


def test_steps_are_counted_as_steps():
    shown, _ = run("'runs', total_steps=3, after_s=0", "advance(2)")
    assert "2/3" in shown


def test_work_of_unknown_size_shows_that_it_goes_on():
    shown, _ = run("'building the environment', after_s=0")
    assert "building the environment" in shown
    assert "%" not in shown


def test_the_bar_is_taken_away_in_the_end():
    shown, _ = run("'checking', 4, after_s=0")
    assert "\x1b[2K" in shown.rsplit("checking", 1)[1]


def test_short_work_writes_nothing_and_loads_no_console_library():
    assert run("'checking digests', 4") == ("", "False")


def test_nothing_is_drawn_before_the_first_step():
    assert run("'writing', 4, after_s=0", "pass") == ("", "False")


def test_a_terminal_that_cannot_erase_gets_nothing():
    assert run("'checking', 4, after_s=0", term="dumb") == ("", "False")


def test_a_description_can_neither_steer_the_terminal_nor_be_markup():
    shown, _ = run(r"'[bold]a\x1b[2J\nb', 4, after_s=0")
    assert "[bold]a\\x1b[2J\\nb" in shown


def test_an_error_inside_takes_the_bar_away_and_goes_on():
    shown, stdout = run(
        "'checking', 4, after_s=0",
        "sys.excepthook = lambda *_: print('raised'); advance(1); 1 / 0",
        status=1,
    )
    assert "\x1b[2K" in shown.rsplit("checking", 1)[1]
    assert stdout == "raised"


def test_standard_output_stays_standard_output_beside_a_bar():
    shown, stdout = run("'checking', 4, after_s=0", "advance(1); print('result')")
    assert "result" not in shown
    assert stdout == "result\nTrue"


def test_without_a_terminal_nothing_is_written():
    stream = io.StringIO()
    with progress("checking", 4, stream=stream, after_s=0) as advance:
        advance(4)
    assert stream.getvalue() == ""


def test_the_bar_waits_one_second_unless_told_otherwise():
    assert SHOW_AFTER_S == 1.0
    assert inspect.signature(progress).parameters["after_s"].default == SHOW_AFTER_S


def test_an_error_without_a_terminal_goes_through():
    with pytest.raises(ZeroDivisionError), progress("checking", stream=io.StringIO()):
        raise ZeroDivisionError
