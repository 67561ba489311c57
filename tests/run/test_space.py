"""Room and rights are told before work begins, with a message for each cause."""

import errno
import os
import shutil
import tempfile
from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reprobundle.errors import (
    EnvironmentUnusableError,
    NoPermissionError,
    NoSpaceError,
)
from reprobundle.run.space import (
    RESERVE_BYTES,
    format_bytes,
    format_duration,
    free_bytes,
    require_space,
    require_writable,
    write_failure,
)

Usage = namedtuple("Usage", "total used free")
NOBODY = 65534


@contextmanager
def without_root() -> Iterator[None]:
    """Lay down the superuser's rights for the block; a plain user has none to lay."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_free_space_of_a_folder_that_does_not_exist_is_its_disks(tmp_path):
    free = free_bytes(tmp_path / "not" / "yet")
    assert 0 < free <= shutil.disk_usage(tmp_path).total


def test_more_than_the_disk_holds_is_refused_with_the_figures(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10, 8, 1 << 30))
    with pytest.raises(NoSpaceError) as caught:
        require_space(tmp_path, 5 << 30, "the environment")
    assert caught.value.needed_bytes == 5 << 30
    assert caught.value.free_bytes == 1 << 30
    assert str(caught.value) == (
        "no room for the environment: 5.00 GiB and a reserve of 64.0 MiB are needed in "
        f"{str(tmp_path)!r}, and 1.00 GiB are free; free some space, or choose a "
        "folder on another disk"
    )


def test_a_reserve_stays_free(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10, 8, RESERVE_BYTES + 9))
    require_space(tmp_path, 9, "the bundle")
    with pytest.raises(NoSpaceError):
        require_space(tmp_path, 10, "the bundle")


def test_a_missing_folder_is_made_and_left_empty(tmp_path):
    require_writable(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []


@pytest.fixture
def reachable_folder():
    """A folder that every user may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_folder_without_write_permission_is_refused(reachable_folder):
    closed, open_ = reachable_folder / "closed", reachable_folder / "open"
    closed.mkdir()
    closed.chmod(0o555)
    open_.mkdir()
    open_.chmod(0o777)
    with without_root():
        require_writable(open_)
        with pytest.raises(NoPermissionError) as caught:
            require_writable(closed)
    assert caught.value.folder == str(closed)
    assert "Permission denied" in str(caught.value)


def test_a_file_in_the_way_is_no_permission_problem(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentUnusableError) as caught:
        require_writable(tmp_path / "file" / "below")
    assert not isinstance(caught.value, NoPermissionError)
    assert "Not a directory" in str(caught.value)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, NoSpaceError),
        (errno.EDQUOT, NoSpaceError),
        (errno.EROFS, NoPermissionError),
        (errno.EIO, EnvironmentUnusableError),
    ],
)
def test_each_failed_write_has_its_own_class(number, kind):
    failure = write_failure(OSError(number, os.strerror(number)), Path("/there"))
    assert type(failure) is kind
    assert os.strerror(number) in str(failure)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "0.98 KiB"),
        (1536, "1.50 KiB"),
        (10 << 20, "10.0 MiB"),
        (182 << 20, "182 MiB"),
        (1 << 30, "1.00 GiB"),
        (5000 << 40, "5000 TiB"),
    ],
)
def test_sizes_are_written_with_three_digits(size, text):
    assert format_bytes(size) == text


@pytest.mark.parametrize(
    ("elapsed_ns", "text"),
    [
        (0, "0 ms"),
        (850_000_000, "850 ms"),
        (999_900_000, "1.0 s"),
        (59_900_000_000, "59.9 s"),
        (59_960_000_000, "1 min 0 s"),
        (200_000_000_000, "3 min 20 s"),
        (7_500_000_000_000, "2 h 5 min"),
    ],
)
def test_durations_are_written_in_the_units_people_use(elapsed_ns, text):
    assert format_duration(elapsed_ns) == text
