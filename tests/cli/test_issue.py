"""The text of an issue: short, whole, and harmless whatever the bundle holds."""

from __future__ import annotations

import random
import re
import shutil

import pytest
from markdown_it import MarkdownIt

from tests.cli.conftest import reprobundle

EVIL = (
    "@torvalds see #1, org/repo#2, https://evil.example/x www.evil.example "
    "<img src=x onerror=alert(1)> </details> <!-- ![p](http://evil.example/p.png) "
    "[a](javascript:x) `` ``` ```` | a | b | \\x1b[31m \\u202e a@evil.example"
)
SCRIPT = f'''\
# ```` </details> <script>alert(1)</script> @everyone
"""{EVIL}"""
import sys

print("to stdout", file=sys.stdout)
open("result.csv", "w").write("x\\n1.0\\n")


def fail(depth):
    if depth:
        fail(depth - 1)
    raise RuntimeError(EVIL + " ~~~ \\n```\\n# @heading\\n" + "é" * 70_000)


EVIL = {EVIL!r}
fail(3)
'''
MARKDOWN = MarkdownIt("commonmark").enable("table")


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    """A bundle of a run that fails with a message of 140 KB that attacks its reader."""
    project = tmp_path_factory.mktemp("failing") / "project"
    project.mkdir()
    (project / "a @b `c` <i>.py").write_text(SCRIPT)
    target = project.parent / "failing.rpb.zip"
    done = reprobundle(
        *("pack", "--expect-failure", "-q", "--offline", "--passes", "measured"),
        *("-o", target, "--", "python", "a @b `c` <i>.py"),
        cwd=project,
    )
    assert done.status == 0, done.err
    return target


@pytest.fixture(scope="module")
def text(failing):
    done = reprobundle("issue", failing)
    assert done.status == 0, done.err
    return done.out


def tokens(text):
    """Return all tokens of a Markdown text, those inside others too."""
    for token in MARKDOWN.parse(text):
        yield token
        yield from token.children or ()


def test_it_fits_an_issue_in_whatever_way_it_is_counted(text):
    assert len(text.encode()) <= 65_536
    assert len(text.encode()) > 40_000


def test_the_cut_in_a_huge_traceback_says_where_the_whole_is(text):
    assert re.search(
        r"\[\.\.\. [\d,]+ bytes left out; the whole: reprobundle cat", text
    )
    assert "Traceback (most recent call last)" in text


def test_no_html_but_our_own_comes_out_of_the_bundle(text):
    html = [
        line
        for token in tokens(text)
        if token.type in ("html_block", "html_inline")
        for line in token.content.strip().splitlines()
    ]
    assert html
    ours = re.compile(r"<details><summary>(Script, [\d,]+ lines|Traceback)</summary>")
    assert [
        line for line in html if not ours.fullmatch(line) and line != "</details>"
    ] == []


def test_no_text_of_the_bundle_stands_outside_code(text):
    plain = " ".join(
        token.content for token in tokens(text) if token.type in ("text", "html_inline")
    )
    for sign in ("@", "http", "www", "#1", "evil", "javascript", "onerror", "|"):
        assert sign not in plain
    assert "fence" in {token.type for token in tokens(text)}


def test_there_are_no_links_and_no_pictures(text):
    kinds = {token.type for token in tokens(text)}
    assert not kinds & {"link_open", "image"}


def test_what_was_folded_is_closed(text):
    lines = [token.content for token in tokens(text) if token.type.startswith("html_")]
    joined = "\n".join(lines)
    assert joined.count("<details>") == joined.count("</details>")


def test_characters_that_deceive_are_visible(text):
    assert "\u202e" not in text
    assert "\x1b" not in text


def test_it_names_error_versions_bundle_and_how_to_check(failing, text):
    assert re.search(r"RuntimeError at a @b `c` <i>\.py:\d+", text)
    assert "Python: 3." in text
    identifier = reprobundle("inspect", failing).out.split()[1]
    assert f"reprobundle verify failing.rpb.zip --expect-id {identifier}" in text
    assert "Nobody has run it again yet: nothing is compared." in text


def test_a_small_error_is_one_screen(tmp_path):
    (tmp_path / "run.py").write_text("import json\njson.loads('{')\n")
    done = reprobundle(
        *("pack", "--expect-failure", "-q", "--offline", "--passes", "measured,repeat"),
        *("-o", "x.rpb.zip", "--", "python", "run.py"),
        cwd=tmp_path,
    )
    assert done.status == 0, done.err
    done = reprobundle(
        *("issue", "x.rpb.zip", "--expected", "an error that names the file"),
        cwd=tmp_path,
    )
    visible = re.sub(r"<details>.*?</details>", "", done.out, flags=re.DOTALL)
    assert visible.count("\n") < 60
    assert "self-contained" in visible
    assert "json.loads('{')" in visible
    assert "JSONDecodeError" in visible
    assert "`an error that names the file`" in visible
    assert "Traceback (most recent call last)" in done.out


def test_expected_and_observed_stand_side_by_side(replayed, tmp_path):
    done = reprobundle("issue", replayed, "-o", tmp_path / "issue.md")
    assert done.status == 0
    text = (tmp_path / "issue.md").read_text()
    assert "| ended with | `exit status 0` | `exit status 0` |" in text
    assert "| `out/metrics.json` |" in text
    assert "REPRODUCED, bit-identical" in text
    assert "also needs `model.py`, `data/points.csv`" in text


def test_the_same_bundle_gives_the_same_text(replayed):
    assert reprobundle("issue", replayed).out == reprobundle("issue", replayed).out


def test_a_minimal_script_takes_the_place_of_the_one_that_ran(replayed, tmp_path):
    (tmp_path / "small.py").write_text("import torch\n")
    done = reprobundle("issue", replayed, "--snippet", tmp_path / "small.py")
    assert "`small.py`, cut down by hand from what the bundle ran" in done.out
    assert "import model" not in done.out


def test_a_secret_is_refused_by_line_and_never_shown(replayed, tmp_path):
    token = "ghp_" + "x7Kq9ZtR2mWc5VbN8sLd" + "3FgH6jPy1AeU4oQi"
    (tmp_path / "small.py").write_text(f"x = 1\nTOKEN = {token!r}\n")
    call = ("issue", replayed, "--snippet", tmp_path / "small.py")
    done = reprobundle(*call)
    assert done.status == 20
    assert done.out == ""
    assert token not in done.err
    assert re.search(r"line \d+ \(github-token\)", done.err)
    redacted = reprobundle(*call, "--redact")
    assert redacted.status == 0
    assert token not in redacted.out
    assert "[github-token]" in redacted.out


def test_the_bundle_itself_can_go_along(packed, tmp_path):
    small = tmp_path / "project"
    small.mkdir()
    (small / "run.py").write_text("open('y.csv', 'w').write('y\\n1.5\\n')\n")
    done = reprobundle(
        *("pack", "-q", "--offline", "-o", "../s.rpb.zip", "--", "python", "run.py"),
        cwd=small,
    )
    assert done.status == 0, done.err
    done = reprobundle("issue", "s.rpb.zip", "--inline", cwd=tmp_path)
    assert done.status == 0, done.err
    assert len(done.out.encode()) <= 65_536
    assert "==== BEGIN REPROBUNDLE INLINE 1 ====" in done.out
    assert "verify - --expect-id" in done.out


def test_a_bundle_that_leaves_no_room_is_refused_with_the_way_out(tmp_path):
    large = tmp_path / "project"
    large.mkdir()
    (large / "noise.bin").write_bytes(
        bytes(range(256)) * 10 + random.Random(3).randbytes(60_000)
    )
    (large / "run.py").write_text(
        "open('size.csv', 'w').write(str(len(open('noise.bin', 'rb').read())))\n"
    )
    done = reprobundle(
        *("pack", "-q", "--offline", "--passes", "measured", "-o", "../l.rpb.zip"),
        *("--", "python", "run.py"),
        cwd=large,
    )
    assert done.status == 0, done.err
    done = reprobundle("issue", "l.rpb.zip", "--inline", cwd=tmp_path)
    assert done.status == 21
    assert "check BUNDLE --for pytorch-issue" in done.err


def test_an_altered_bundle_gives_no_text(packed, tmp_path):
    target = tmp_path / "altered.rpb.zip"
    shutil.copy(packed, target)
    data = bytearray(target.read_bytes())
    place = (
        data.index(b"print('final") if b"print('final" in data else data.index(b"final")
    )
    data[place] ^= 1
    target.write_bytes(data)
    done = reprobundle("issue", target)
    assert done.status == 21
    assert done.out == ""
    assert "TAMPERED" in done.err
