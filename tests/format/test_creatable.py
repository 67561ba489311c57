"""What each system can store is known before the first file is written."""

from __future__ import annotations

import sys
from pathlib import PurePosixPath, PureWindowsPath

import pytest

from reprobundle.errors import EnvironmentUnusableError
from reprobundle.format import extraction
from reprobundle.format.creatable import (
    System,
    check_creatable,
    obstacle,
    this_system,
    units,
)
from reprobundle.format.reader import extract, open_bundle
from reprobundle.format.writer import Source, write_bundle

SYSTEMS: tuple[System, ...] = ("linux", "macos", "windows")


@pytest.mark.parametrize("character", '<>"|?*')
def test_what_windows_never_stores_is_an_obstacle_there_only(character):
    name = f"project/a{character}b.txt"
    assert obstacle(name, "windows") == f"it holds {character!r}"
    assert [obstacle(name, system) for system in ("linux", "macos")] == ["", ""]


@pytest.mark.parametrize(
    ("component", "long_on"),
    [
        ("x" * 255, []),
        ("x" * 256, ["linux", "macos", "windows"]),
        # 128 characters of two bytes and one unit each; 86 of three bytes.
        ("é" * 128, ["linux", "macos"]),
        ("語" * 86, ["linux", "macos"]),
        # Two units and four bytes each.
        ("😀" * 64, ["linux", "macos"]),
        ("😀" * 128, ["linux", "macos", "windows"]),
    ],
)
def test_a_component_is_measured_as_the_system_does(component, long_on):
    found = [one for one in SYSTEMS if obstacle(f"a/{component}", one)]
    assert found == long_on


def test_lengths_are_bytes_or_units_of_utf_16():
    assert [units("aé語😀", one) for one in SYSTEMS] == [10, 10, 5]


@pytest.mark.parametrize(
    ("system", "folder", "most"),
    [
        ("windows", PureWindowsPath("C:\\data"), 259),
        ("windows", PureWindowsPath("\\\\server\\share\\d"), 259),
        ("macos", PurePosixPath("/Users/é"), 1023),
        ("linux", PurePosixPath("/home/a"), 4095),
    ],
)
def test_a_path_may_have_so_many_characters_and_not_one_more(system, folder, most):
    left = most - units(str(folder), system) - 1
    parts = "/".join(["d" * 99] * 60)[: left - 2] + "/x"
    name = parts.replace("//", "d/")[-left:].lstrip("/")
    name += "x" * (left - len(name))
    check_creatable([name], folder, system)
    with pytest.raises(EnvironmentUnusableError, match=f"takes {most}") as caught:
        check_creatable([f"{name}y"], folder, system)
    assert "shorter path" in caught.value.advice


@pytest.fixture
def bundle(tmp_path):
    path = tmp_path / "x.rpb.zip"
    write_bundle(path, [Source("project/a?.py", "project", b"1")])
    return path


def test_nothing_is_written_where_one_name_cannot_be(bundle, tmp_path, monkeypatch):
    monkeypatch.setattr(extraction, "this_system", lambda: "windows")
    with (
        open_bundle(bundle) as opened,
        pytest.raises(EnvironmentUnusableError, match="cannot be made on windows"),
    ):
        extract(opened, tmp_path / "out")
    assert [one.name for one in tmp_path.iterdir()] == [bundle.name]


def test_the_other_members_can_be_had(bundle, tmp_path, monkeypatch):
    monkeypatch.setattr(extraction, "this_system", lambda: "windows")
    with open_bundle(bundle) as opened:
        extract(opened, tmp_path / "out", paths=["README.txt"])
    assert [one.name for one in (tmp_path / "out").iterdir()] == ["README.txt"]


@pytest.mark.parametrize("depth", [20, 30])
def test_a_folder_that_is_too_deep_is_told_before_anything_is_made(
    bundle, tmp_path, depth
):
    deep = tmp_path.joinpath(*["d" * 200] * depth)
    with (
        open_bundle(bundle) as opened,
        pytest.raises(EnvironmentUnusableError, match=r"takes (4095|1023)"),
    ):
        extract(opened, deep)


@pytest.mark.parametrize(
    ("platform", "system"),
    [("win32", "windows"), ("darwin", "macos"), ("linux", "linux"), ("aix", "linux")],
)
def test_the_system_is_told_by_its_name(platform, system, monkeypatch):
    monkeypatch.setattr(sys, "platform", platform)
    assert this_system() == system
