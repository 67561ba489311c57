"""Names that some system would read otherwise are refused; all others pass."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprobundle.errors import LimitError, UnsafeNameError
from reprobundle.format import limits
from reprobundle.format.names import check_name, check_names, twin_key

UNSAFE = {
    "": "R-5.1",
    "/etc/passwd": "R-5.2",
    "a//b": "R-5.2",
    "a/": "R-5.2",
    ".": "R-5.2",
    "a/./b": "R-5.2",
    "..": "R-5.2",
    "a/../b": "R-5.2",
    "../a": "R-5.2",
    "a\\b": "R-5.3",
    "..\\a": "R-5.3",
    "C:/a": "R-5.3",
    "C:a": "R-5.3",
    "a.txt:stream": "R-5.3",
    "a\0b": "R-5.4",
    "a\nb": "R-5.4",
    "a\x1b[31mb": "R-5.4",
    "a\x7fb": "R-5.4",
    "a\u0085b": "R-5.4",
    "a\u202egnp.exe": "R-5.4",
    "a\u2066b": "R-5.4",
    "a\u200bb": "R-5.4",
    "a\ufeffb": "R-5.4",
    "a\u2028b": "R-5.4",
    "a\ud800b": "R-5.4",
    "e\u0301.txt": "R-5.5",
    "a/\u212b": "R-5.5",
    "a.": "R-5.6",
    "a ": "R-5.6",
    "a./b": "R-5.6",
    "con": "R-5.6",
    "a/CON.txt": "R-5.6",
    "aux.py": "R-5.6",
    "Nul.tar.gz": "R-5.6",
    "com1": "R-5.6",
    "lpt9.csv": "R-5.6",
    "com².x": "R-5.6",
    "conin$": "R-5.6",
    "CONOUT$.txt": "R-5.6",
    "x" * 256: "R-5.7",
    "é" * 128: "R-5.7",
    "/".join(["abc"] * 257): "R-5.7",
    "/".join(["a"] * 33): "R-5.7",
}

SAFE = [
    "a",
    "README.txt",
    ".gitignore",
    "...a",
    "a b/c d.txt",
    "console.py",
    "com10.csv",
    "auxiliary/nullable.py",
    "naïve/日本語.txt",
    "a*b?c.txt",
    "x" * 255,
    "/".join(["a"] * 32),
    "-rf",
]


@pytest.mark.parametrize("name", UNSAFE, ids=ascii)
def test_refuses(name):
    with pytest.raises(UnsafeNameError) as caught:
        check_name(name)
    assert caught.value.rule == UNSAFE[name]
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", UNSAFE, ids=ascii)
def test_refuses_among_others_that_share_its_folder(name):
    folder = name.rpartition("/")[0]
    with pytest.raises(UnsafeNameError):
        check_names([f"{folder}/plain_one.txt" if folder else "plain_one.txt", name])


@pytest.mark.parametrize("name", SAFE)
def test_accepts(name):
    check_name(name)
    check_names([name, "other/plain_name.txt"])


TWINS = [
    ("a/b.txt", "a/b.txt", "it occurs twice"),
    ("a/train.py", "a/Train.py", "it is a twin of 'a/train.py'"),
    ("straße.txt", "STRASSE.txt", "it is a twin of 'straße.txt'"),
    ("ς.txt", "σ.txt", "it is a twin of 'ς.txt'"),
    ("data/one.txt", "Data/two.txt", "its folder is a twin of 'data'"),
    ("a/longer_name.txt", "A/longer_name2.txt", "its folder is a twin of 'a'"),
]


@pytest.mark.parametrize(("first", "second", "message"), TWINS)
def test_refuses_twins(first, second, message):
    check_names([first])
    check_names([second])
    with pytest.raises(UnsafeNameError, match=r"R-5\.8") as caught:
        check_names([first, second])
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("first", "second"),
    [("model", "model/w.bin"), ("model/w.bin", "Model"), ("a/b/c", "a/b")],
)
def test_refuses_a_name_that_is_file_and_folder(first, second):
    with pytest.raises(UnsafeNameError) as caught:
        check_names([first, second])
    assert caught.value.rule == "R-5.9"


@given(st.text(max_size=40))
def test_a_name_that_passes_stays_inside_its_folder_on_every_system(name):
    try:
        check_name(name)
    except UnsafeNameError:
        return
    parts = name.split("/")
    assert not {"", ".", ".."} & set(parts)
    assert name.isprintable() or " " in name or any(ord(c) > 127 for c in name)
    assert unicodedata.normalize("NFC", name) == name
    assert "\\" not in name
    assert ":" not in name


@given(st.lists(st.text("abAB/._1é", min_size=1, max_size=9), max_size=6))
def test_a_set_passes_only_if_each_name_does_and_no_two_are_alike(names):
    try:
        check_names(names)
    except UnsafeNameError:
        return
    for name in names:
        check_name(name)
    assert len({twin_key(name) for name in names}) == len(names)


@given(st.text(max_size=20))
def test_case_and_unicode_form_do_not_change_the_twin_key(text):
    assert twin_key(unicodedata.normalize("NFD", text)) == twin_key(text)
    assert twin_key(text.casefold()) == twin_key(text)


def test_a_folder_of_another_zip_program_is_called_that():
    with pytest.raises(UnsafeNameError, match="an entry for a folder") as caught:
        check_names(["README.txt", "inputs/"])
    assert caught.value.rule == "R-5.2"
    assert "use the original file" in caught.value.advice


def test_names_lie_in_no_more_folders_than_are_allowed(monkeypatch):
    monkeypatch.setattr(limits, "FOLDER_COUNT", 3)
    check_names(["a/b/x", "a/c/x"])
    with pytest.raises(LimitError, match="more than 3 folders") as raised:
        check_names(["a/b/x", "a/c/x", "d/x"])
    assert raised.value.rule == "R-5.7"
