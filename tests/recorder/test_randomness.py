"""Seeds and generator fingerprints without torch."""

import random

import pytest

from reprobundle.recorder import generators, made_generators
from reprobundle.run.events import Absent, FactEvent, Generators, Seed

DRAW = """
import random, sys
print(random.random())
import numpy as np
print(np.random.rand(), np.random.default_rng(5).random())
"""


@pytest.fixture(scope="module")
def seeded(launch):
    script = (
        "import random, sys\n"
        "import numpy as np\n"
        "random.seed(1)\n"
        "np.random.seed(2)\n"
        "np.random.default_rng(3)\n"
        "free = np.random.default_rng()\n"
        "def deep():\n"
        "    random.seed('text')\n"
        "deep()\n"
        "print(random.random(), np.random.rand())\n"
        "if '_reprobundle_recorder' in sys.modules:\n"
        "    print('', free.random())\n"
    )
    files = {"run.py": script}
    return launch(["python", "run.py"], files), launch(
        ["python", "run.py"], files, recorded=False
    )


def test_seed_calls_are_reported_with_their_place(seeded):
    run, _ = seeded
    script = run.project / "run.py"
    assert [(e.function, e.value, e.where) for e in run.of(Seed)] == [
        ("random.seed", "1", f"{script}:3"),
        ("numpy.random.seed", "2", f"{script}:4"),
        ("numpy.random.default_rng", "3", f"{script}:5"),
        ("numpy.random.default_rng", "None", f"{script}:6"),
        ("random.seed", "'text'", f"{script}:8"),
    ]
    assert run.troubles() == []


def test_a_generator_without_a_seed_tells_the_one_it_took(seeded):
    run, _ = seeded
    numpy = pytest.importorskip("numpy")
    drawn = {e.value: e.drawn for e in run.of(Seed) if "default_rng" in e.function}
    assert drawn["3"] == ""
    again = numpy.random.default_rng(int(drawn["None"])).random()
    assert f" {again}" in run.stdout


def test_draws_are_the_same_with_and_without_us(seeded):
    run, plain = seeded
    # The line that follows comes from a generator nobody seeded.
    assert run.stdout.splitlines()[:1] == plain.stdout.splitlines()


def test_states_are_reported_at_start_and_end(seeded):
    run, _ = seeded
    assert [event.modules for event in run.of(Absent)] == [("torch",)]
    states: dict[str, dict[str, str]] = {}
    for event in run.of(Generators):
        states.setdefault(event.when, {}).update(event.fingerprints)
    names = {"python", "numpy", "numpy.Generator#1", "numpy.Generator#2"}
    assert set(states["initial"]) == set(states["final"]) == names
    made = "numpy.Generator#{}".format
    assert states["initial"][made(1)] == states["final"][made(1)]
    assert states["initial"][made(2)] != states["final"][made(2)]
    source = random.Random("text")
    source.random()
    assert states["final"]["python"] == generators.python_state(source)
    assert states["draws"]["python.Random"] == generators.python_draws(random)
    assert set(states["draws"]) == {
        "python.Random",
        "numpy.default_rng",
        "numpy.RandomState",
    }


def test_the_given_seed_is_set_before_the_script_and_is_no_call_of_it(launch):
    script = {"run.py": DRAW}
    first, second = (launch(["python", "run.py"], script, seed=7) for _ in range(2))
    other = launch(["python", "run.py"], script, seed=8)
    assert first.stdout == second.stdout != other.stdout
    assert first.stdout.splitlines()[0] == str(random.Random(7).random())
    assert [event.function for event in first.of(Seed)] == ["numpy.random.default_rng"]
    initial = [e.fingerprints for e in first.of(Generators) if e.when == "initial"]
    assert {"python": generators.python_state(random.Random(7))} in initial


def test_an_unseeded_run_stays_unseeded(launch):
    script = {"run.py": "import random; print(random.random())"}
    first, second = (launch(["python", "run.py"], script) for _ in range(2))
    assert first.stdout != second.stdout


def test_what_is_not_imported_is_not_seeded_or_loaded(launch):
    code = "import sys; print('random' in sys.modules, 'numpy' in sys.modules)"
    run = launch(["python", "-c", code], seed=7)
    assert run.stdout == "False False\n"
    assert run.of(Generators) == []
    (absent,) = run.of(Absent)
    assert absent.modules == ("random", "numpy.random", "torch")


MADE = """
import copy, pickle, random, tempfile
import numpy as np
from random import Random

first = random.Random(5)
second = Random('text')
free = Random()
first.seed(7)

class Derived(random.Random):
    def __init__(self, value):
        super().__init__(value)
        self.value = value

class Silent(random.Random):
    def seed(self, *arguments):
        pass

derived, silent = Derived(9), Silent(3)
tempfile.NamedTemporaryFile().close()
again = pickle.loads(pickle.dumps(first))
old = np.random.RandomState(4)
new = np.random.Generator(np.random.PCG64(2))
print(first.random(), second.random(), derived.random(), again.random(), old.rand())
print(copy.deepcopy(first).random(), new.random(), random.Random.seed.__qualname__)
print(isinstance(derived, Random), type(first) is random.Random, len(pickle.dumps(new)))
print(len(pickle.dumps(random.Random)), len(pickle.dumps(np.random.RandomState)))
for number in range(30):
    Random(number)
"""


@pytest.fixture(scope="module")
def made(launch):
    return [
        launch(["python", "run.py"], {"run.py": MADE}, recorded=recorded)
        for recorded in (True, False)
    ]


def test_generators_of_the_user_are_what_they_are_without_us(made):
    run, plain = made
    assert run.status == plain.status == 0, run.stderr
    assert run.stdout == plain.stdout


def test_seeds_of_made_python_generators_are_reported_with_their_place(made):
    run, _ = made
    calls = [
        (e.function, e.value, e.where.rpartition(":")[2])
        for e in run.of(Seed)
        if e.function.startswith("random.Random")
    ]
    assert calls[:6] == [
        ("random.Random", "5", "6"),
        ("random.Random", "'text'", "7"),
        ("random.Random", "None", "8"),
        ("random.Random.seed", "7", "9"),
        ("random.Random", "9", "13"),
        # Made by pickle, which fills it afterwards.
        ("random.Random", "None", "22"),
    ]


def test_thirty_generators_of_one_place_do_not_fill_the_record(made):
    run, _ = made
    line = MADE.splitlines().index("    Random(number)") + 1
    at_one_place = [e for e in run.of(Seed) if e.where.endswith(f"run.py:{line}")]
    assert len(at_one_place) == 16
    assert any("only the first 16 seeds of random.Random" in t for t in run.troubles())


def test_states_of_made_python_generators_tell_which_moved(made):
    run, _ = made
    states: dict[str, dict[str, str]] = {"initial": {}, "final": {}, "draws": {}}
    for event in run.of(Generators):
        states[event.when].update(event.fingerprints)
    source = random.Random("text")
    source.random()
    assert states["final"]["python.Random#2"] == generators.python_state(source)
    assert states["initial"]["python.Random#2"] != states["final"]["python.Random#2"]
    assert states["initial"]["python.Random#3"] == states["final"]["python.Random#3"]


def test_what_a_package_makes_at_its_import_is_no_news(launch):
    files = {
        "lib/site-packages/bundled.py": "import random\n"
        "class A:\n"
        "    drawn = random.Random()\n"
        "more = random.Random(1)\n",
        "run.py": "import sys, random\n"
        "sys.path.insert(0, 'lib/site-packages')\n"
        "import bundled\n"
        "random.Random(2)\n",
    }
    run = launch(["python", "run.py"], files)
    assert run.status == 0, run.stderr
    assert [(e.function, e.value) for e in run.of(Seed)] == [("random.Random", "2")]


def test_what_numpy_makes_unseen_is_told_as_it_stands_at_the_end(made):
    run, _ = made
    alive = run.fact("recorder.generators_alive")
    assert [text.rpartition(" ")[0] for text in alive] == [
        "numpy.random.Generator PCG64",
        "numpy.random.RandomState MT19937",
    ]


def test_what_cannot_be_observed_is_named(launch):
    run = launch(["python", "-c", "import sys; sys.modules['h5py'] = sys"])
    unobserved = run.fact("recorder.unobserved")
    assert "files: h5py" in unobserved
    assert any("numpy.random.RandomState, an immutable" in text for text in unobserved)
    assert "seeds: random.Random" not in unobserved
    assert "files: cv2" not in unobserved
    assert any(fact.name == "python.start_method" for fact in run.of(FactEvent))


LATE = """
from numpy.random import default_rng
import os, sys
sys.path.insert(0, os.path.join(os.environ["REPROBUNDLE_SESSION"], "enter"))
import _reprobundle_recorder
print(_reprobundle_recorder.enter())
default_rng(4)
"""


def test_a_function_taken_before_the_recorder_came_is_watched_too(launch):
    run = launch(["python", "run.py"], {"run.py": LATE}, python_path=False)
    assert run.stdout == "True\n", run.stderr
    assert [(e.function, e.value) for e in run.of(Seed)] == [
        ("numpy.random.default_rng", "4")
    ]


def test_a_state_that_holds_arrays_is_read_whole():
    numpy = pytest.importorskip("numpy")
    one, two = (numpy.random.Generator(numpy.random.MT19937(5)) for _ in range(2))
    assert made_generators.numpy_state(one) == made_generators.numpy_state(two)
    state = one.bit_generator.state
    state["state"]["key"][300] += 1
    two.bit_generator.state = state
    assert made_generators.numpy_state(one) != made_generators.numpy_state(two)
