"""The event file, and what kind of process writes it."""

import json
import sys

import pytest

from reprobundle.recorder.kinds import forks_user_code, is_helper
from reprobundle.recorder.opened_once import OpenedOnce
from reprobundle.recorder.session import EventFile, Session
from reprobundle.run.events import Network, Trouble, read_events


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "events").mkdir()
    config = {"project": "/somewhere/é 😀", "seed": None, "device": "cpu"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path


def test_a_config_is_read_as_it_was_written(folder):
    session = Session(str(folder))
    assert (session.project, session.seed) == ("/somewhere/é 😀", None)
    assert (session.device, session.kind) == ("cpu", "main")


def test_only_the_first_process_is_main(folder):
    kinds = [Session(str(folder)).kind for _ in range(3)]
    assert kinds == ["main", "python", "python"]


def test_the_first_event_brings_the_start(folder):
    session = Session(str(folder))
    session.emit("network", target="host:1")
    (file,) = read_events(folder / "events")
    assert [type(event).__name__ for event in file.events] == ["Start", "Network"]
    assert file.start.argv == tuple(sys.orig_argv)


def test_trouble_is_told_once_for_each_text(folder):
    session = Session(str(folder))
    for text in ("a", "b", "a"):
        session.attempt("part", _fail, text)
    assert troubles(folder) == ["ValueError: a", "ValueError: b"]


def troubles(folder):
    (file,) = read_events(folder / "events")
    return [event.message for event in file.events if isinstance(event, Trouble)]


def _fail(text):
    raise ValueError(text)


def test_an_error_that_cannot_be_shown_is_no_error(folder):
    class OddError(Exception):
        def __str__(self):
            raise RuntimeError

    def fail():
        raise OddError

    session = Session(str(folder))
    assert session.attempt("part", fail) is None
    (told,) = troubles(folder)
    assert told.endswith("OddError")


def test_a_session_that_vanishes_is_no_error(folder):
    session = Session(str(folder))
    session.emit("network", target="a")
    for path in (folder / "events").iterdir():
        path.unlink()
    (folder / "events").rmdir()
    session.emit("network", target="b")
    session._file.abandon()
    session.emit("network", target="c")


def test_text_that_is_not_unicode_keeps_the_line_readable(folder):
    session = Session(str(folder))
    session.emit("network", target="a\udcffb")
    (file,) = read_events(folder / "events")
    event = file.events[-1]
    assert isinstance(event, Network)
    assert (event.target, file.damaged_lines) == ("a?b", 0)


def test_lines_are_appended_to_what_is_there(tmp_path):
    path = tmp_path / "x"
    path.write_text("before\n")
    file = EventFile(str(path))
    file.append("one\n")
    file.abandon()
    file.append("two\n")
    assert path.read_text() == "before\none\ntwo\n"


PYTHON = "/usr/bin/python3"


@pytest.mark.parametrize(
    ("argv", "helper", "user_forks"),
    [
        ([PYTHON, "train.py"], False, True),
        ([PYTHON, "-c", "from multiprocessing.spawn import spawn_main"], False, True),
        (
            [PYTHON, "-c", "from multiprocessing.resource_tracker import main;main(4)"],
            True,
            False,
        ),
        (
            [PYTHON, "-c", "from multiprocessing.forkserver import main; main(3)"],
            True,
            True,
        ),
        ([PYTHON, "-m", "torch._inductor.compile_worker", "--workers=2"], True, False),
        (
            [PYTHON, "/x/torch/_inductor/compile_worker/__main__.py", "--kind=fork"],
            True,
            False,
        ),
        ([PYTHON, "-m", "torch.distributed.run", "train.py"], False, True),
    ],
)
def test_service_processes_are_told_from_the_users(argv, helper, user_forks):
    assert is_helper(argv) is helper
    assert forks_user_code(argv) is user_forks


def test_pairs_are_remembered_with_their_mode():
    seen = OpenedOnce()
    seen.add("/a", True)
    assert seen.contains("/a", True)
    assert not seen.contains("/a", False)


def test_forks_share_what_they_add():
    seen = OpenedOnce()
    sibling = OpenedOnce()
    sibling._table = seen._table
    for one in (seen, sibling):
        one.continue_in_fork()
    seen.add("/a", False)
    assert sibling.contains("/a", False)
    assert not sibling.contains("/b", False)


def test_a_full_table_forgets_and_loses_nothing():
    seen = OpenedOnce()
    seen.continue_in_fork()
    seen._table = memoryview(bytearray(b"\xff" * (8 << 20))).cast("Q")
    seen.add("/a", False)
    assert seen.contains("/a", False)
    assert not seen.contains("/b", False)
