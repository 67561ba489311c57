"""Outputs as they lie on the disk: odd metrics, unreadable and unfinished files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reprobundle.errors import PackRefusedError
from reprobundle.format.policy import Metric
from reprobundle.run import produced
from reprobundle.run.produced import Found, collect, metrics_found


def metric(tmp_path, pattern, text):
    stdout = tmp_path / "stdout.txt"
    stdout.write_text(text)
    (found,), missing = metrics_found(
        (Metric(name="loss", pattern=pattern),), stdout, tmp_path
    )
    assert not missing
    return json.loads(found.path.read_bytes())


@pytest.mark.parametrize(
    ("pattern", "text", "values"),
    [
        (r"loss (\S+)", "loss 0.5\nloss 0.25\n", [0.5, 0.25]),
        (r"loss (\S+)", "loss nan\nloss inf\nloss -inf\n", ["nan", "inf", "-inf"]),
        (r"loss (\S+)", "loss 1e400", ["1e400"]),
        (r"loss (\S+)", "loss 9007199254740993", [9007199254740993]),
        (r"loss (\S+)", "loss 1_000 loss ١٢ loss 5%", ["1_000", "١٢", "5%"]),
        (r"loss \d", "loss 1 loss 2", ["loss 1", "loss 2"]),
        (r"^loss (\d+)$", "loss 1\nmy loss 2\nloss 3", [1, 3]),
        (r"loss (?:(\d+)|none)", "loss none loss 4", [4]),
        (r"loss (\d+)", "loss 7\n" * 20_000, [7] * 20_000),
    ],
    ids=["each", "special", "huge", "exact", "text", "whole", "line", "group", "many"],
)
def test_every_match_of_a_metric_counts(tmp_path, pattern, text, values):
    assert metric(tmp_path, pattern, text) == values


@pytest.mark.parametrize("pattern", [r"gain (\d+)", r"loss(?:(x)|)"])
def test_a_metric_without_a_match_is_missing(tmp_path, pattern):
    stdout = tmp_path / "stdout.txt"
    stdout.write_text("loss 1\n")
    named = (Metric(name="loss", pattern=pattern),)
    assert metrics_found(named, stdout, tmp_path) == ([], ["loss"])


def collected(path, **options):
    options = {"python": None, "sealed": {}, "limit_bytes": 1000, **options}
    found = [Found(name=path.name, member=f"outputs/{path.name}", path=path)]
    return collect(found, work=path.parent, **options)


def test_an_output_that_still_grows_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "log.txt"
    path.write_text("one\n")

    def digest_while_growing(target: Path) -> str:
        with target.open("a") as stream:
            stream.write("two\n")
        return "0" * 64

    monkeypatch.setattr(produced, "digest_file", digest_while_growing)
    with pytest.raises(PackRefusedError, match=r"'log\.txt' was still being written"):
        collected(path)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(13, "Permission denied"), "cannot be read: permission denied"),
        (OSError(5, "Input/output error"), "cannot be read: input/output error"),
    ],
    ids=["permission", "damage"],
)
def test_an_output_that_cannot_be_read_is_refused(tmp_path, monkeypatch, error, words):
    path = tmp_path / "out.txt"
    path.write_text("x")

    def refuse(target):
        raise error

    monkeypatch.setattr(produced, "digest_file", refuse)
    with pytest.raises(PackRefusedError, match=words):
        collected(path)


def test_an_output_that_vanished_is_refused(tmp_path):
    with pytest.raises(PackRefusedError, match="cannot be read: no such file"):
        collected(tmp_path / "gone.txt")


def test_an_output_over_the_limit_is_refused(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("x" * 11)
    with pytest.raises(PackRefusedError, match="has 11 bytes, the limit is 10"):
        collected(path, limit_bytes=10)
