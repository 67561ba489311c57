"""A bundle as text: what clipboards do to it, and what must not go unnoticed."""

from __future__ import annotations

import hashlib
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reprobundle.errors import InlineTextError
from reprobundle.format.inline import (
    BEGIN,
    BUNDLE_BYTES,
    END,
    Inline,
    decode_inline,
    encode_inline,
    safe_name,
)

DATA = b"".join(hashlib.sha256(bytes([n])).digest() for n in range(60)) + b"tail"
INLINE = Inline("points.rpb.zip", "ab" * 32, DATA)


@pytest.fixture(scope="module")
def text():
    return encode_inline(INLINE)


def changed(text, number, change):
    """Return `text` with line `number` of the bundle changed."""
    lines = text.splitlines()
    place = next(n for n, line in enumerate(lines) if line.startswith(f"{number:05d} "))
    lines[place : place + 1] = change(lines[place])
    return "\n".join(lines) + "\n"


def test_a_text_gives_back_the_file_byte_for_byte(text):
    assert decode_inline(text) == INLINE


@pytest.mark.parametrize("field", ["name", "id", "blake3", "bytes", "lines"])
def test_a_field_of_another_name_is_refused(text, field):
    renamed = text.replace(f"\n{field} ", "\nother ", 1)
    with pytest.raises(InlineTextError, match=f"'{field}' and its value are due"):
        decode_inline(renamed)


def test_the_same_file_gives_the_same_text(text):
    assert encode_inline(INLINE) == text


HANDLING = {
    "windows line ends": lambda text: text.replace("\n", "\r\n"),
    "old mac line ends": lambda text: text.replace("\n", "\r"),
    "trailing blanks": lambda text: text.replace("\n", "  \t\n"),
    "indented": lambda text: "".join(f"    {line}\n" for line in text.splitlines()),
    "quoted": lambda text: "".join(f"> {line}\n" for line in text.splitlines()),
    "quoted twice": lambda text: "".join(
        f">> > {line}\n" for line in text.splitlines()
    ),
    "quoted as html": lambda text: "".join(
        f"&gt; {line}\n" for line in text.splitlines()
    ),
    "in a list": lambda text: "".join(f"  * {line}\n" for line in text.splitlines()),
    "blank lines between": lambda text: text.replace("\n", "\n\n"),
    "one line": lambda text: text.replace("\n", " "),
    "wrapped at blanks": lambda text: "\n".join(
        line if line.startswith("====") else line.replace(" ", "\n")
        for line in text.splitlines()
    ),
    "hard blanks": lambda text: text.replace(" ", "\N{NO-BREAK SPACE}"),
    "invisible": lambda text: "\ufeff" + text.replace("\n", "\u200b\n"),
    "prose around": lambda text: f"Hi,\n\n```text\n{text}```\n\nthanks! 00001 x\n",
    "prose on the lines of the markers": lambda text: f"see {text.rstrip()} bye\n",
    "a second closing line": lambda text: f"{text}{END}\n",
}


@pytest.mark.parametrize("name", HANDLING)
def test_what_clipboards_and_forms_do_changes_nothing(text, name):
    assert decode_inline(HANDLING[name](text)) == INLINE


def test_a_missing_line_is_named(text):
    with pytest.raises(
        InlineTextError, match=r"line 7 of \d+ of the bundle is missing"
    ):
        decode_inline(changed(text, 7, lambda line: []))


@pytest.mark.parametrize("kept", range(6, 138, 13))
def test_a_cut_line_is_named_wherever_it_is_cut(text, kept):
    with pytest.raises(InlineTextError, match=r"^line 15: line 9 of"):
        decode_inline(changed(text, 9, lambda line: [line[:-1][:kept]]))


@pytest.mark.parametrize("place", [3, 6, 70, 133, 138])
def test_a_changed_letter_is_named_by_its_line(text, place):
    def change(line):
        other = "1" if line[place] != "1" else "2"
        return [line[:place] + other + line[place + 1 :]]

    with pytest.raises(InlineTextError, match=r"^line 15: line 9 of"):
        decode_inline(changed(text, 9, change))


def test_two_lines_that_changed_places_are_named(text):
    swapped = changed(text, 3, lambda line: []).replace(
        "\n00005 ", f"\n{text.splitlines()[9 - 1]}\n00005 "
    )
    with pytest.raises(
        InlineTextError, match=r"line 3 of \d+ of the bundle is missing"
    ):
        decode_inline(swapped)


def test_a_text_that_stops_early_says_where(text):
    cut = "".join(text.splitlines(keepends=True)[:20])
    with pytest.raises(InlineTextError, match=r"ends where line 15 of .* was cut off"):
        decode_inline(cut)


def test_a_missing_closing_line_is_told(text):
    with pytest.raises(InlineTextError, match=r"closing line .* is missing"):
        decode_inline(text.replace(END, ""))


def test_more_lines_than_stated_are_refused(text):
    with pytest.raises(InlineTextError, match="stands behind the last line"):
        decode_inline(text.replace(END, f"00099 AAAA 0000\n{END}"))


def test_two_bundles_are_not_chosen_between(text):
    with pytest.raises(
        InlineTextError, match=r"2 inline bundles start .* lines 1, \d\d"
    ):
        decode_inline(text + text)


def test_a_text_without_a_bundle_says_what_to_copy():
    with pytest.raises(
        InlineTextError, match="no inline bundle is in this text"
    ) as raised:
        decode_inline("hello\n")
    assert raised.value.rule == "R-4.40"


def test_another_version_is_refused(text):
    with pytest.raises(
        InlineTextError, match=r"line 1: it starts like .* another version"
    ):
        decode_inline(text.replace("INLINE 1", "INLINE 2"))


def test_a_file_with_another_digest_is_refused(text):
    stated = text.splitlines()[3]
    assert stated.startswith("blake3 ")
    with pytest.raises(InlineTextError, match="does not have the digest"):
        decode_inline(text.replace(stated, f"blake3 {'0' * 64}"))


@pytest.mark.parametrize("stated", [len(DATA) - 1, len(DATA) + 1])
def test_a_file_with_another_size_is_refused(text, stated):
    with pytest.raises(InlineTextError, match="does not have the digest"):
        decode_inline(text.replace(f"bytes {len(DATA)}", f"bytes {stated}"))


def test_more_than_a_text_may_hold_is_neither_written_nor_read(text):
    with pytest.raises(InlineTextError, match="attach the file itself"):
        encode_inline(INLINE._replace(data=bytes(BUNDLE_BYTES + 1)))
    with pytest.raises(InlineTextError, match="more than a text holds"):
        decode_inline(text.replace(f"bytes {len(DATA)}", f"bytes {BUNDLE_BYTES + 1}"))


def test_a_bomb_is_not_unpacked(text):
    bomb = encode_inline(INLINE._replace(data=bytes(BUNDLE_BYTES)))
    with pytest.raises(InlineTextError, match="does not have the digest"):
        decode_inline(bomb.replace(f"bytes {BUNDLE_BYTES}", "bytes 100"))


@pytest.mark.parametrize("name", ["../../etc/x", "-rf", ".hidden", "ü ö.zip", ""])
def test_a_name_cannot_leave_a_folder_or_look_like_an_option(name):
    inline = INLINE._replace(name=name)
    got = decode_inline(encode_inline(inline)).name
    assert got == safe_name(name)
    assert not {*got} & {*"/\\ "}
    assert got[0] not in "-."


def test_a_stated_name_that_leaves_the_folder_is_refused(text):
    with pytest.raises(InlineTextError, match="'name' and its value are due"):
        decode_inline(text.replace("name points", "name ../points"))


def test_the_tools_of_every_system_decode_it(text, tmp_path):
    path = tmp_path / "text"
    path.write_text(text)
    line = f"awk '/^[0-9][0-9][0-9][0-9][0-9] /{{print $2}}' {path} | base64 -d | xz -d"
    done = subprocess.run(["sh", "-c", line], capture_output=True, check=False)
    if b"not found" in done.stderr:
        pytest.skip("xz is not installed")
    assert done.stdout == DATA


def test_the_markers_hold_nothing_that_a_form_makes_typographic():
    assert not {*BEGIN + END} & {*"-\"'"}


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_damage_ever_gives_another_file(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 400)))
    put_in = data.draw(st.text(alphabet="A0 >\n=+/zf", max_size=40))
    damaged = text[:start] + put_in + text[end:]
    try:
        got = decode_inline(damaged)
    except InlineTextError:
        return
    assert got.data == DATA
