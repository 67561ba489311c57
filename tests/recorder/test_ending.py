"""What is said about the way a process ends."""

import sys

import pytest

from reprobundle.run.events import End, Error, WarningEvent

ENDINGS = {
    # Falling off the end and raising SystemExit look alike from inside.
    "falls off the end": ("pass", 0, None),
    "raises SystemExit": ("raise SystemExit(4)", 4, None),
    "exits with a number": ("import sys; sys.exit(3)", 3, 3),
    "exits without one": ("import sys; sys.exit()", 0, 0),
    "exits with text": ("import sys; sys.exit('bad')", 1, 1),
    "exits with a large number": ("import sys; sys.exit(259)", 3, 3),
    "exits hard": ("import os; os._exit(9)", 9, 9),
    "fails": ("1/0", 1, 1),
    "catches its exit": (
        "import sys\ntry: sys.exit(5)\nexcept SystemExit: pass\n",
        0,
        None,
    ),
    "catches one exit and makes another": (
        "import sys\ntry: sys.exit(5)\nexcept SystemExit: pass\nsys.exit(6)\n",
        6,
        6,
    ),
    "exits from a finally": (
        "import sys\ntry: sys.exit(5)\nfinally: sys.exit(7)\n",
        7,
        7,
    ),
    "exits in a thread only": (
        "import sys, threading as t; x = t.Thread(target=sys.exit); x.start()",
        0,
        None,
    ),
}


@pytest.mark.parametrize("case", ENDINGS)
def test_the_exit_status_is_unchanged_and_reported_where_it_is_sure(launch, case):
    code, status, reported = ENDINGS[case]
    run = launch(["python", "-c", code])
    assert run.status == status
    (end,) = run.of(End)
    assert end.exit_status == reported


@pytest.mark.skipif(sys.platform != "linux", reason="it takes glibc's on_exit")
@pytest.mark.parametrize("case", ["raises SystemExit", "falls off the end", "fails"])
def test_the_c_library_leaves_the_true_exit_status(launch, case):
    code, status, _ = ENDINGS[case]
    run = launch(["python", "-c", code])
    assert run.files[0].exit_status == status


@pytest.mark.skipif(sys.platform != "linux", reason="it takes glibc's on_exit")
def test_a_fork_does_not_overwrite_its_parents_exit_status(launch):
    code = (
        "import os\nif os.fork():\n    os.wait()\n    raise SystemExit(5)\n"
        "raise SystemExit(6)\n"
    )
    run = launch(["python", "-c", code])
    assert run.status == 5
    assert [file.exit_status for file in run.files] == [5, None]


@pytest.mark.skipif(sys.platform != "linux", reason="it takes glibc's on_exit")
def test_a_process_that_leaves_without_exiting_leaves_no_status(launch):
    run = launch(["python", "-c", "import os; os.kill(os.getpid(), 9)"])
    assert run.files[0].exit_status is None


FAILING = {
    "run.py": "from inside import call\ncall()\n",
    "inside.py": (
        "import json\n"
        "def call():\n"
        "    try:\n"
        "        json.loads('{')\n"
        "    except ValueError as error:\n"
        "        raise KeyError('missing') from error\n"
    ),
}


def test_an_uncaught_error_is_reported_and_printed_as_without_us(launch):
    plain = launch(["python", "run.py"], FAILING, recorded=False)
    run = launch(["python", "run.py"], project=plain.project)
    assert (run.status, run.stderr) == (plain.status, plain.stderr)
    (error,) = run.of(Error)
    assert (error.type, error.message) == ("KeyError", "'missing'")
    assert error.where == f"{run.project / 'inside.py'}:6"
    assert "JSONDecodeError" in error.traceback
    assert error.traceback == plain.stderr


def test_an_error_of_a_class_in_a_module_has_its_full_name(launch):
    run = launch(["python", "-c", "import json; json.loads('{')"])
    (error,) = run.of(Error)
    assert error.type == "json.decoder.JSONDecodeError"
    assert error.where.startswith("<string>:") or "json" in error.where


def test_a_syntax_error_is_where_its_text_is(launch):
    run = launch(["python", "run.py"], {"run.py": "x = = 1\n"})
    (error,) = run.of(Error)
    assert error.where == f"{run.project / 'run.py'}:1"


def test_an_error_shown_by_a_hook_of_the_users_is_reported(launch):
    code = (
        "import sys\nsys.excepthook = lambda *a: print('mine')\nraise ValueError('v')\n"
    )
    run = launch(["python", "-c", code])
    assert run.stdout == "mine\n"
    (error,) = run.of(Error)
    assert error.message == "v"


def test_an_error_in_a_thread_is_a_warning_because_the_process_goes_on(launch):
    code = (
        "import threading\n"
        "def work(): raise ValueError('lost')\n"
        "t = threading.Thread(target=work, name='loader'); t.start(); t.join()\n"
    )
    run = launch(["python", "-c", code])
    assert run.of(Error) == []
    (warning,) = run.of(WarningEvent)
    assert warning.category == "ThreadException"
    assert warning.message == "ValueError ended thread 'loader': lost"
    assert "ValueError: lost" in run.stderr


def test_an_interrupt_is_reported_and_ends_the_process_as_ever(launch):
    code = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
    run = launch(["python", "-c", code])
    assert run.status == -2
    (error,) = run.of(Error)
    assert error.type == "KeyboardInterrupt"
    assert error.traceback.endswith("KeyboardInterrupt\n")
    (end,) = run.of(End)
    assert end.exit_status == -2


def test_exit_handlers_run_before_the_end_is_reported(launch):
    code = "import atexit\natexit.register(lambda: open('late.txt', 'w').close())\n"
    run = launch(["python", "-c", code])
    names = [type(event).__name__ for event in run.files[0].events]
    assert "late.txt" in run.opened("write")
    assert names.index("Open") < names.index("End")
    assert names[-1] == "End"


def test_warnings_are_reported_once_for_each_place_and_printed_as_ever(launch):
    script = (
        "import warnings\n"
        "for _ in range(3): warnings.warn('again')\n"
        "warnings.simplefilter('ignore')\n"
        "warnings.warn('hidden')\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    warnings.warn('caught', DeprecationWarning)\n"
        "print(len(caught), caught[0].source)\n"
    )
    plain = launch(["python", "run.py"], {"run.py": script}, recorded=False)
    run = launch(["python", "run.py"], project=plain.project)
    assert (run.stdout, run.stderr) == (plain.stdout, plain.stderr)
    messages = [(event.category, event.message) for event in run.of(WarningEvent)]
    assert messages == [("UserWarning", "again"), ("DeprecationWarning", "caught")]
    assert run.of(WarningEvent)[0].where == f"{run.project / 'run.py'}:2"


def test_a_pickled_exit_can_be_read_by_a_process_without_the_recorder(launch):
    write = (
        "import pickle, sys\n"
        "try: sys.exit(5)\n"
        "except SystemExit as error: print(pickle.dumps(error).hex())\n"
    )
    text = launch(["python", "-c", write]).stdout.strip()
    read = f"import pickle; print(pickle.loads(bytes.fromhex('{text}')).code)"
    assert launch(["python", "-c", read], recorded=False).stdout == "5\n"
