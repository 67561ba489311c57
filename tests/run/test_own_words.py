"""Command lines name no account or machine, and mean the reader's own on another."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobundle.run.command import replace_paths, replace_words, runnable_argv
from reprobundle.run.own_words import hidden_argv, own_path, own_words
from reprobundle.run.placeholders import Names

ALICE = Names(user="alice", host="lab-gpu7.corp.net", home="/home/alice")
BOB = Names(user="bob", host="mac.local", home="/Users/bob")


@pytest.mark.parametrize(
    ("typed", "recorded", "elsewhere"),
    [
        ("/home/alice/x.csv", "{home}/x.csv", "/Users/bob/x.csv"),
        ("--data=/home/alice", "--data={home}", "--data=/Users/bob"),
        ("-I/home/alice/inc", "-I{home}/inc", "-I/Users/bob/inc"),
        (
            "python a.py </home/alice/x | tee /home/alice/y",
            "python a.py <{home}/x | tee {home}/y",
            "python a.py </Users/bob/x | tee /Users/bob/y",
        ),
        ("/scratch/alice/x", "/scratch/{user}/x", "/scratch/bob/x"),
        (
            "--master=lab-gpu7:29500",
            "--master={host}:29500",
            "--master=mac.local:29500",
        ),
        ("/home/alicent/x", "/home/alicent/x", "/home/alicent/x"),
        ("--author=alice", "--author=alice", "--author=alice"),
    ],
)
def test_an_argument_means_the_same_for_another_account(typed, recorded, elsewhere):
    argv, placeholders = hidden_argv((typed,), ALICE)
    assert argv == (recorded,)
    assert replace_words(argv[0], own_words(placeholders, BOB)) == elsewhere


def test_what_is_run_here_is_what_was_typed():
    typed = ("tool", "/home/alice/x", "cat /scratch/alice/y", "{nothing}")
    argv, placeholders = hidden_argv(typed, ALICE)
    own = own_words(placeholders, ALICE)
    assert runnable_argv(argv, Path("/s"), Path("/p"), words=own) == typed


def test_a_text_of_the_commands_own_is_never_a_placeholder():
    typed = ("bash", "-c", "user=3; echo ${user} {home} /home/alice/x /scratch/alice/y")
    argv, placeholders = hidden_argv(typed, ALICE)
    assert argv == typed
    assert placeholders == ()
    words = own_words(placeholders, BOB)
    assert runnable_argv(argv, Path("/s"), Path("/p"), words=words) == typed


def test_the_first_word_may_lie_below_home_too():
    argv, placeholders = hidden_argv(("/home/alice/bin/tool", "x"), ALICE)
    words = own_words(placeholders, BOB)
    assert runnable_argv(argv, Path("/s"), Path("/p"), words=words) == (
        "/Users/bob/bin/tool",
        "x",
    )


def test_a_place_outside_the_project_is_read_back():
    assert own_path("~/store/x", BOB) == Path("/Users/bob/store/x")
    assert own_path("/scratch/{user}/x", BOB) == Path("/scratch/bob/x")
    assert own_path("/data/x", BOB) == Path("/data/x")


def test_a_file_is_taken_from_where_it_lies_in_a_shell_line_too():
    placed = {"/d/x": "/b/1/x", "/d/x/y": "/b/2/y"}
    line = "cat /d/x /d/x/y /d/xx | sort --of=/d/x"
    assert replace_paths(line, placed) == "cat /b/1/x /b/2/y /d/xx | sort --of=/b/1/x"
