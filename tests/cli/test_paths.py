"""What is given as a path and is none: standard input, standard output, an address."""

from __future__ import annotations

import io
import json
import sys

import pytest

from reprobundle.cli import run
from tests.verify.builder import Bench


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return Bench(tmp_path_factory.mktemp("bench")).pack().path


@pytest.mark.parametrize(
    "call",
    [
        ("replay", "-"),
        ("accept", "-"),
        ("diff", "-"),
        ("copies", "-"),
        ("sign", "-"),
        ("attach", "x.rpb.zip", "-"),
    ],
    ids=" ".join,
)
def test_who_does_not_read_standard_input_says_who_does(call, capsys):
    assert run([*call]) == 20
    assert capsys.readouterr().err == (
        "reprobundle: only inspect, verify, report, cat, extract, check, issue, "
        "export, split and join read - (standard input): make a file of it first, "
        "reprobundle join - -o BUNDLE\n"
    )


@pytest.mark.parametrize("call", [("sign",), ("attach", "x.rpb.zip")], ids=" ".join)
def test_what_changes_a_file_reads_no_address(call, capsys):
    assert run([*call, "http://host.example/x.rpb.zip"]) == 20
    assert "read a bundle at an address: fetch it first" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("call", "start"),
    [
        (("issue",), "**`exit status 0`**"),
        (("export", "inline"), "`digits.rpb.zip` as text"),
        (("export", "badge"), "<svg "),
        (("export", "in-toto"), "{"),
        (("report",), "<!doctype html>"),
        (("report", "--format", "markdown"), "**INTACT, NOT YET"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)
def test_an_output_called_minus_is_standard_output(
    call, start, path, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    run([*call, str(path), "-o", "-"])
    assert capsys.readouterr().out.startswith(start)
    assert list(tmp_path.iterdir()) == []


def test_a_policy_goes_to_standard_output_too(tmp_path, capsys, monkeypatch):
    (tmp_path / "bench").mkdir()
    bench = Bench(tmp_path / "bench").pack()
    bench.replay()
    monkeypatch.chdir(tmp_path)
    status = run(["policy", "suggest", str(bench.path), "-o", "-"])
    assert status == 0
    assert "reason" in json.loads(capsys.readouterr().out)
    assert [one.name for one in tmp_path.iterdir()] == ["bench"]


@pytest.fixture
def piped(path, monkeypatch):
    """Have standard input hold the bundle."""
    stream = io.TextIOWrapper(io.BytesIO(path.read_bytes()))
    monkeypatch.setattr(sys, "stdin", stream)
    return stream


@pytest.mark.parametrize(
    ("call", "start"),
    [
        (("issue", "-"), "**`exit status 0`**"),
        (("export", "inline", "-"), "`standard-input.rpb.zip` as text"),
        (("export", "badge", "-"), "<svg "),
        (("export", "in-toto", "-"), "{"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)
def test_what_makes_a_text_of_a_bundle_reads_standard_input(
    call, start, piped, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    run([*call])
    assert capsys.readouterr().out.startswith(start)
    assert list(tmp_path.iterdir()) == []


def test_a_split_of_standard_input_is_joined_to_standard_output(
    piped, path, tmp_path, capsysbinary, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert run(["split", "-", "--most", "29KB", "-o", "a", "--rest", "b"]) == 0
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a", "b"]
    capsysbinary.readouterr()
    assert run(["join", "a", "b", "-o", "-"]) == 0
    seen = capsysbinary.readouterr()
    assert seen.out == path.read_bytes()
    assert seen.err.startswith(b"standard output  ")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a", "b"]


def test_parts_that_do_not_belong_together_send_nothing(
    piped, tmp_path, capsysbinary, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert run(["split", "-", "--most", "29KB", "-o", "a", "--rest", "b"]) == 0
    capsysbinary.readouterr()
    assert run(["join", "a", "a", "-o", "-"]) == 20
    assert capsysbinary.readouterr().out == b""


def test_a_bundle_is_not_sent_to_a_terminal(path, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run(["join", str(path), "-o", "-"]) == 20
    assert capsys.readouterr().err == (
        "reprobundle: a bundle is no text for a terminal: name a file with -o, or lead "
        "the output into one\n"
    )


@pytest.mark.parametrize(
    "call",
    [
        ("split", "{}", "--most", "20KB", "-o", "-"),
        ("split", "{}", "--most", "20KB", "--rest", "-"),
        ("export", "ro-crate", "{}", "-o", "-"),
        ("export", "bagit", "{}", "-o", "-"),
        ("accept", "{}", "--by", "a", "--where", "b", "-o", "-"),
        ("extract", "{}", "--into", "-"),
        ("replay", "{}", "--record", "-"),
        ("wheels", "{}", "--target", "linux-x86_64", "-o", "-"),
        ("pack", "-o", "-", "--", "true"),
    ],
    ids=" ".join,
)
def test_what_is_no_text_is_not_called_minus(call, path, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run([word.format(path) for word in call]) == 20
    option = call[call.index("-") - 1]
    assert capsys.readouterr().err == (
        f"reprobundle: {option} names a file or folder and cannot be - (standard "
        "output): name one; a text or, by join, a whole bundle goes there\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", [("attach", "{}", "text"), ("join", "{}", "text")])
def test_of_two_files_the_one_that_is_no_bundle_is_named(
    call, path, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("hello")
    more = ("-o", "x") if call[0] == "join" else ()
    assert run([*(word.format(path) for word in call), *more]) == 21
    assert capsys.readouterr().err == "reprobundle: text: no ZIP file [R-4.1]\n"


@pytest.mark.parametrize("verb", ["cat", "extract"])
def test_a_member_that_is_not_listed_is_a_bad_call_and_no_bad_bundle(
    verb, path, capsys, tmp_path
):
    more = ("--into", str(tmp_path / "x")) if verb == "extract" else ()
    assert run([verb, str(path), "gone.txt", *more]) == 20
    assert capsys.readouterr().err == (
        "reprobundle: no member 'gone.txt' [R-4.31]; reprobundle inspect -v BUNDLE "
        "lists the members\n"
    )
