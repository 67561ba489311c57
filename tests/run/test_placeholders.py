"""Account and machine names do not stand in what we write."""

from __future__ import annotations

import pytest

from reprobundle.run.placeholders import Names

ALICE = Names(user="alice", host="lab-gpu7.corp.net", home="/home/alice")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("open /home/alice/x.csv failed", "open ~/x.csv failed"),
        ("/scratch/alice/run: no space", "/scratch/{user}/run: no space"),
        ("/tmp/pytest-of-alice/x", "/tmp/pytest-of-{user}/x"),
        ("alice@lab-gpu7:/data", "{user}@{host}:/data"),
        ("connect to lab-gpu7.corp.net:29500", "connect to {host}:29500"),
        ("[lab-gpu7]:29500 refused", "[{host}]:29500 refused"),
    ],
)
def test_a_name_is_replaced_where_it_stands_as_one(text, expected):
    assert ALICE.hidden(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'alice'",
        "src/alice/loader.py:12",
        "/home/alicent/x",
        "{project}/alice/x.py",
        "my-lab-gpu70",
    ],
)
def test_the_same_letters_elsewhere_stay(text):
    assert ALICE.hidden(text) == text


def test_names_that_everybody_has_stay():
    names = Names(user="root", host="localhost", home="/root")
    assert names.hidden("root@localhost:/data/root/x") == "root@localhost:/data/root/x"


def test_a_host_that_is_a_word_is_replaced_only_in_an_address():
    names = Names(user="bob", host="model", home="/home/bob")
    assert names.hidden("the model failed on bob@model") == (
        "the model failed on {user}@{host}"
    )


def test_both_sides_of_a_replay_read_alike():
    bob = Names(user="bob", host="mac.local", home="/Users/bob")
    assert bob.hidden("no file /Users/bob/x.csv on mac.local") == ALICE.hidden(
        "no file /home/alice/x.csv on lab-gpu7.corp.net"
    )
