"""Foreign text in Markdown can neither be markup nor leave its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from reprobundle.report.markdown_text import code, fenced, shortened, words

MARKDOWN = MarkdownIt("commonmark")


@pytest.mark.parametrize(
    "foreign", ["@user", "#12", "gh-12", "https://x.example", "www.x.example", "a@b.c"]
)
def test_nothing_in_a_sentence_is_left_for_the_tracker_to_act_on(foreign):
    (paragraph,) = [one for one in MARKDOWN.parse(words(foreign)) if one.children]
    shown = "".join(child.content for child in paragraph.children or ())
    assert foreign not in shown
    assert shown.replace("\N{WORD JOINER}", "") == foreign


@given(st.text())
def test_no_text_leaves_its_fence(foreign):
    tokens = MARKDOWN.parse(fenced(foreign, "text"))
    assert [token.type for token in tokens] == ["fence"]


@given(st.text(alphabet="`a \\|\n<>@").filter(lambda text: text.strip()))
def test_no_text_leaves_its_code_span(foreign):
    (_, inline, _) = MARKDOWN.parse(f"x {code(foreign)} y")
    kinds = [child.type for child in inline.children or ()]
    assert kinds == ["text", "code_inline", "text"]


@given(st.text(max_size=3000), st.integers(300, 2000))
def test_a_shortened_text_keeps_to_its_room(foreign, most):
    assert len(shortened(foreign, most, "the whole: there").encode()) <= most


def test_a_cut_keeps_both_ends_and_counts_what_it_leaves_out():
    foreign = "\n".join(f"line {n}" for n in range(1000))
    shown = shortened(foreign, 500, "the whole: there")
    first, last = shown.splitlines()[0], shown.splitlines()[-1]
    assert (first, last) == ("line 0", "line 999")
    cut = next(line for line in shown.splitlines() if line.startswith("[..."))
    kept = len(shown.encode()) - len(cut.encode()) - 2
    assert (
        f"[... {len(foreign.encode()) - kept:,} bytes left out; the whole: there" in cut
    )
