"""Which attached runs are experiments: asked to differ, so they decide nothing (V20).

A run with ``--set``, ``--with``, ``--shapes`` or ``--round``, and both sides of a pair,
show what one change does. None of them says whether the bundle's own command gives its
result here. The facts below ``asked.`` tell too: a mark that is left out does not make
an ordinary replay of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from reprobundle.format.findings import ExperimentRun, Finding
from reprobundle.format.record import Record
from reprobundle.verify.checks import finding
from reprobundle.verify.devices import device_of
from reprobundle.verify.ending import is_finished

if TYPE_CHECKING:
    from reprobundle.verify.claims import Replay

_ASKED = "asked."


def is_experiment(record: Record) -> bool:
    """Whether a run was to differ from the reference."""
    return record.experiment is not None or any(_asked(record))


def asked_words(record: Record) -> str:
    """Return what a run was asked to do otherwise, in one line."""
    return ", ".join(_asked(record)) or "nothing of its own"


def _asked(record: Record) -> Iterator[str]:
    for name, fact in record.environment.items():
        if name.startswith(_ASKED):
            yield f"{name.removeprefix(_ASKED)}={fact.value}"


def check_experiments(runs: Iterable[Replay]) -> Iterator[Finding]:
    """Yield that each of these runs was left out of the verdict."""
    for one in runs:
        yield finding(
            "experiment",
            "not-applicable",
            f"{asked_words(one.record)}: it shows a cause and decides nothing",
            where=f"replays/{one.id}",
        )


def check_own(record: Record) -> Iterator[Finding]:
    """Yield the finding about an experiment that is judged all the same (V12).

    Somebody asked for it by name: its outputs are compared, and whatever they say, it
    was another run than the one that was sealed.
    """
    if is_experiment(record):
        yield finding(
            "experiment",
            "warn",
            f"an experiment ({asked_words(record)}), not a plain replay",
            advice="replay without --set, --with, --shapes, --round and --ab",
        )


def experiment_runs(runs: Sequence[Replay]) -> tuple[ExperimentRun, ...]:
    """Return the experiments as a report shows them, both sides of a pair together."""
    first_seen = {_key(one): place for place, one in reversed(list(enumerate(runs)))}
    ordered = sorted(runs, key=lambda one: (first_seen[_key(one)], _side(one)))
    return tuple(_shown(one) for one in ordered)


def _key(one: Replay) -> str:
    return one.record.experiment.id if one.record.experiment else one.id


def _side(one: Replay) -> str:
    return one.record.experiment.side if one.record.experiment else ""


def _shown(one: Replay) -> ExperimentRun:
    record = one.record
    outcome = record.outcome
    ending = f"exit status {outcome.exit_status}"
    if not is_finished(record):
        ending = f"stopped: {outcome.stop or 'interrupted'}"
    elif outcome.error is not None:
        ending = f"{outcome.error.type}, {ending}"
    return ExperimentRun(
        replay=one.id,
        pair=record.experiment.id if record.experiment else "",
        side=_side(one),
        asked=asked_words(record),
        claim=record.claim,
        pass_name=record.pass_name,
        device=device_of(record),
        ending=ending,
    )
