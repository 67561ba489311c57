"""Compare what fresh random generators draw here with what they drew at the reference.

One seed gives other numbers on another machine: ``torch.randn`` takes another path on
a CPU with other vector units, and generators change between releases. That is known
before anything foreign runs, and is told then. The record of the replay holds the same
fingerprints, so that V18 judges them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from reprobundle.errors import BadCallError
from reprobundle.format.record import Record
from reprobundle.run.command import replay_base, run_environment
from reprobundle.run.events import FactEvent, Generators, read_events
from reprobundle.run.facts import events_of
from reprobundle.run.launch import launch, make_session

CAPABILITY = "torch.cpu_capability"
# Which module brings a generator; those of accelerators are drawn after use only.
_MODULES = {
    "python.Random": "random",
    "numpy.default_rng": "numpy.random",
    "numpy.RandomState": "numpy.random",
    "torch.cpu": "torch",
}
_MEANING = {
    "random": "another Python draws other numbers from one seed",
    "numpy.random": "another numpy draws other numbers from one seed",
    "torch": "one seed gives randn other last digits on a CPU with other vector units, "
    "and other numbers in another release: initial weights and dropout differ",
}
_IMPORT = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError:
        pass
"""


def expected_draws(records: Iterable[Record]) -> dict[str, str]:
    """Return the fingerprints of the sealed runs that can be drawn anew, by name."""
    return {
        name: fingerprint
        for record in records
        for name, fingerprint in record.randomness.draws.items()
        if name in _MODULES
    }


def draw(
    python: Path, expected: Iterable[str], recorded: Mapping[str, str], folder: Path
) -> tuple[dict[str, str], str]:
    """Return the fingerprints drawn here, and this CPU's capability as torch names it.

    An empty program that imports the modules runs under the recorder, which draws.

    Args:
        python: Interpreter of the replay.
        expected: Names of the generators.
        recorded: Environment variables of the command.
        folder: New folder to run in.

    Raises:
        BadCallError: The interpreter cannot be started.
    """
    empty = folder / "project"
    empty.mkdir(parents=True)
    own = {name: value for name, value in recorded.items() if name != "PYTHONPATH"}
    session = make_session(folder / "session", empty, seed=None, device="as-is")
    modules = sorted({_MODULES[name] for name in expected})
    launched = launch(
        (str(python), "-c", _IMPORT, *modules),
        session=session,
        working_directory=empty,
        environment=run_environment(
            replay_base(os.environ), own, scratch=empty, python=python, device="as-is"
        ),
    )
    if launched.interrupted:
        raise KeyboardInterrupt
    files = read_events(session.events)
    drawn: dict[str, str] = {}
    for _, event in events_of(files, Generators):
        if event.when == "draws":
            drawn.update(event.fingerprints)
    known = [e.value for _, e in events_of(files, FactEvent) if e.name == CAPABILITY]
    return drawn, str(known[0]) if known and known[0] is not None else ""


def compare_draws(
    records: tuple[Record, ...], python: Path, folder: Path
) -> Iterator[str]:
    """Yield what to tell about the draws before the runs start, one line each.

    Args:
        records: The sealed runs that are to be repeated.
        python: Interpreter of the replay.
        folder: New folder to run in.
    """
    expected = expected_draws(records)
    if not expected:
        return
    try:
        here, capability = draw(
            python, expected, records[0].command.environment, folder
        )
    except (BadCallError, OSError) as error:
        yield f"random draws: not compared, {error}"
        return
    missing = sorted(name for name in expected if name not in here)
    if missing:
        yield f"random draws: not compared for {', '.join(missing)}: not loadable here"
    differing = [name for name in here if expected.get(name, here[name]) != here[name]]
    equal = sorted(set(expected) - set(missing) - set(differing))
    if equal:
        yield f"random draws: equal to the reference for {', '.join(equal)}"
    for name in sorted(differing):
        yield _warning(name, records, capability)


def _warning(name: str, records: tuple[Record, ...], capability: str) -> str:
    meaning = _MEANING[_MODULES[name]]
    line = f"random draws differ: {name}: {meaning}"
    if name == "torch.cpu":
        fact = records[0].environment.get(CAPABILITY)
        before = fact.value if fact is not None else None
        line += f" (reference {before or 'unknown'}, here {capability or 'unknown'})"
    return line
