"""What stands for a stream is written to and never replaced."""

from __future__ import annotations

import os
import stat
import threading

import pytest

from reprobundle.errors import EnvironmentUnusableError
from reprobundle.format.atomic import replacing, write_text


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_a_text_goes_into_a_pipe_which_stays_one(pipe):
    # As root, /dev/null itself would become a file in the same way.
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "one\n")
    reader.join(10)
    assert got == ["one\n"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_what_must_be_a_file_is_refused_and_nothing_is_changed(pipe):
    words = r"pipe': is a device, a pipe or the like, no file; check the path"
    with pytest.raises(EnvironmentUnusableError, match=words), replacing(pipe):
        pytest.fail("it was opened")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(pipe.parent.iterdir()) == [pipe]


def test_a_link_to_a_file_is_replaced_as_before(tmp_path):
    (tmp_path / "there").write_text("old")
    link = tmp_path / "link"
    link.symlink_to("there")
    write_text(link, "new")
    assert (link.is_symlink(), link.read_text()) == (False, "new")
    assert (tmp_path / "there").read_text() == "old"
