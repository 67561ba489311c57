"""A bundle that travels as text, by the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.cli.conftest import reprobundle


def piped(data, *arguments):
    """Run the command line with `data` on standard input."""
    variables = {**os.environ}
    variables.pop("PYTHONPATH", None)
    return subprocess.run(
        [sys.executable, "-m", "reprobundle", *arguments],
        input=data,
        env=variables,
        capture_output=True,
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def text(replayed):
    done = reprobundle("export", replayed, "--inline")
    assert done.status == 0
    assert "65,536" in done.err
    return done.out


def test_both_spellings_and_a_file_give_the_same_text(replayed, text, tmp_path):
    assert reprobundle("export", "inline", replayed).out == text
    target = tmp_path / "bundle.md"
    assert reprobundle("export", "--inline", replayed, "-o", target).status == 0
    assert target.read_text() == text


def test_a_small_bundle_fits_an_issue_and_its_size_is_told(packed):
    done = reprobundle("export", "inline", packed)
    assert len(done.out) <= 65_536
    assert f"{len(done.out):,} characters, an issue of GitHub takes 65,536" in done.err


def test_a_pasted_text_is_judged_as_the_file(replayed, text):
    quoted = "".join(f"> {line}\r\n" for line in text.splitlines())
    done = piped(f"On Monday she wrote:\n{quoted}".encode(), "verify", "-", "--json")
    of_file = json.loads(reprobundle("verify", replayed, "--json").out)
    assert done.returncode == 0
    assert json.loads(done.stdout) == of_file
    assert of_file["verdict"] == "REPRODUCED, bit-identical"


def test_a_text_in_the_encoding_of_windows_is_read(text):
    done = piped(text.encode("utf-16"), "inspect", "-")
    assert done.returncode == 0
    assert b"python train.py" in done.stdout


def test_members_of_a_pasted_text_can_be_read(text, tmp_path):
    assert piped(text.encode(), "cat", "-", "project/model.py").stdout.startswith(
        b"def"
    )
    done = piped(text.encode(), "extract", "-", "--into", str(tmp_path / "out"))
    assert done.returncode == 0
    assert (tmp_path / "out/project/model.py").is_file()


def test_a_file_on_standard_input_is_judged_too(packed):
    done = piped(packed.read_bytes(), "verify", "-", "--integrity")
    assert done.returncode == 0
    assert b"INTACT" in done.stdout


def test_a_cut_text_is_told_in_one_line(text):
    done = piped(text[: len(text) // 2].encode(), "verify", "-")
    assert done.returncode == 21
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1
    assert b"line" in done.stderr
    assert b"copy" in done.stderr


def test_a_text_that_names_another_bundle_is_refused(text):
    stated = next(line for line in text.splitlines() if line.startswith("id "))
    done = piped(text.replace(stated, f"id {'0' * 64}").encode(), "verify", "-")
    assert done.returncode == 21
    assert b"it states the bundle id 000000000000" in done.stderr


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 no zip", b"\x00\xff\xfe"])
def test_standard_input_without_a_bundle_is_no_traceback(data):
    done = piped(data, "verify", "-")
    assert done.returncode == 21
    assert b"Traceback" not in done.stderr + done.stdout


def test_a_form_that_is_not_there_is_told_with_those_that_are(packed):
    done = reprobundle("export", packed)
    assert done.status == 20
    assert "is no form: choose from inline" in done.err
