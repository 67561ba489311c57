"""Which local file stands for a withheld one, and whether it is the right one."""

from __future__ import annotations

import pytest

from reprobundle.errors import BadCallError
from reprobundle.format.digests import digest_bytes
from reprobundle.format.record import WithheldFile
from reprobundle.run.withheld import problem, supplied


def withheld(name, content=b"secret"):
    return WithheldFile(
        name=name, size_bytes=len(content), blake3=digest_bytes(content)
    )


@pytest.fixture
def copy(tmp_path):
    path = tmp_path / "copy.csv"
    path.write_bytes(b"secret")
    return path


def test_a_file_is_named_by_its_name_in_the_bundle(copy):
    assert supplied([f"data/x.csv={copy}"], [withheld("data/x.csv")]) == {
        "data/x.csv": copy
    }


def test_a_name_may_hold_the_sign_that_separates(copy):
    name = "year=2020/x.csv"
    assert supplied([f"{name}={copy}"], [withheld(name)]) == {name: copy}


def test_a_folder_supplies_all_files_withheld_below_it(tmp_path):
    (tmp_path / "deep").mkdir()
    for name in ("a.csv", "deep/b.csv"):
        (tmp_path / name).write_text("x")
    found = supplied(
        [f"data={tmp_path}"], [withheld("data/a.csv"), withheld("data/deep/b.csv")]
    )
    assert found == {
        "data/a.csv": tmp_path / "a.csv",
        "data/deep/b.csv": tmp_path / "deep/b.csv",
    }


def test_a_link_is_followed_so_that_no_run_can_write_through_it(tmp_path, copy):
    link = tmp_path / "link"
    link.symlink_to(copy)
    assert supplied([f"x={link}"], [withheld("x")]) == {"x": copy}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("data/x.csv", "not of the form PATH=FILE"),
        ("other.csv=y", "this bundle withholds data/x.csv"),
        ("data/x.csv=/nowhere/y", "'/nowhere/y' is no file"),
    ],
)
def test_what_cannot_be_meant_is_refused(text, words):
    with pytest.raises(BadCallError, match=words):
        supplied([text], [withheld("data/x.csv")])


def test_the_right_file_is_no_problem(copy):
    assert problem(withheld("x"), {"x": copy}) == ""


def test_a_file_that_nobody_gave_is_asked_for_by_its_option():
    assert "--data x=FILE" in problem(withheld("x"), {})


def test_another_file_is_told_by_its_digest(copy):
    copy.write_bytes(b"other")
    told = problem(withheld("x"), {"x": copy})
    assert "is another file" in told
    assert digest_bytes(b"other")[:12] in told
    assert digest_bytes(b"secret")[:12] in told


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path):
    assert "cannot be read" in problem(withheld("x"), {"x": tmp_path / "gone"})
