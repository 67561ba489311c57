"""The group's table of verbs and the modules that hold them."""

from __future__ import annotations

import click
import pytest

from reprobundle.cli.group import VERBS, cli, run
from reprobundle.cli.options import say


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_of_the_table_is_a_command_of_that_name(verb):
    command = cli.get_command(click.Context(cli), verb)
    assert command is not None
    assert command.name == verb


def test_an_unknown_verb_is_a_bad_call_in_one_line(capsys):
    assert run(["prove"]) == 20
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "prove" in error


def test_progress_cannot_steer_the_terminal(capsys):
    say("copying a\x1b]0;owned\x07b")
    assert capsys.readouterr().err == "copying a\\x1b]0;owned\\x07b\n"
