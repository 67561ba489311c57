"""Watching imports must not be visible to what is imported."""

from reprobundle.run.events import Phases

LOOK = """
import random, importlib, importlib.util, inspect, pickle
print(type(random.__loader__).__name__, type(random.__spec__.loader).__name__)
print(inspect.getsource(random)[:20])
print(importlib.util.find_spec('random') is random.__spec__)
print(inspect.signature(random.seed), random.seed.__name__)
print(importlib.reload(random) is random)
"""


def test_a_watched_module_looks_as_it_does_alone(launch):
    plain = launch(["python", "run.py"], {"run.py": LOOK}, recorded=False)
    run = launch(["python", "run.py"], project=plain.project)
    assert run.stdout == plain.stdout
    assert (run.status, run.stderr) == (0, "")


def test_a_wrapped_function_can_be_sent_to_a_worker(launch):
    code = (
        "import pickle, random\n"
        "import numpy as np\n"
        "for f in (random.seed, np.random.seed, np.random.default_rng):\n"
        "    print(pickle.loads(pickle.dumps(f)) is f)\n"
    )
    run = launch(["python", "-c", code])
    assert (run.stdout, run.stderr) == ("True\n" * 3, "")


def test_a_failing_import_fails_as_it_does_alone(launch):
    files = {
        "numpy/__init__.py": "raise ImportError('broken numpy')\n",
        "run.py": "try: import numpy\nexcept ImportError as e: print(e)\nimport numpy",
    }
    plain = launch(["python", "run.py"], files, recorded=False)
    run = launch(["python", "run.py"], project=plain.project)
    assert (run.status, run.stdout) == (1, "broken numpy\n")
    assert run.stderr == plain.stderr
    assert run.troubles() == []


def test_a_module_of_the_users_with_a_watched_name_is_left_working(launch):
    files = {"torch.py": "answer = 42\n", "run.py": "import torch; print(torch.answer)"}
    run = launch(["python", "run.py"], files)
    assert (run.status, run.stdout, run.stderr) == (0, "42\n", "")
    # The parts that found no torch in it said so.
    assert any(trouble.startswith("torch ") for trouble in run.troubles())


def test_the_import_phase_measures_heavy_modules_only(launch):
    files = {
        "torch.py": "import time; time.sleep(0.05)",
        "run.py": "import torch, json",
    }
    run = launch(["python", "run.py"], files)
    (phase,) = run.of(Phases)[-1].phases
    assert (phase.name, phase.count) == ("import", 1)
    assert phase.total_ns >= 50_000_000
