"""What is given as a path and is none: standard input, standard output, an address."""

from __future__ import annotations

import json

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
        ("issue", "-"),
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
        "reprobundle: only inspect, verify, report, cat, extract, check and join read "
        "- (standard input): make a file of it first, reprobundle join - -o BUNDLE\n"
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
