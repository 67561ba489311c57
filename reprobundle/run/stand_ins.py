"""A run on samples that take the place of withheld files, and how it is told."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from reprobundle.format.manifest import STAND_INS
from reprobundle.format.record import Remark
from reprobundle.run.execute import PassPlan
from reprobundle.run.finished import Assembled
from reprobundle.run.project import digest_stage


def stand_in_plan(plan: PassPlan, samples: Mapping[str, Path]) -> PassPlan:
    """Return `plan` with samples in the place of withheld files.

    Args:
        plan: Of a run with the files themselves.
        samples: Name of a withheld file → its sample.
    """
    stage = plan.stage.with_replaced(samples)
    return dataclasses.replace(
        plan,
        stage=stage,
        names=sorted({*plan.names, *samples}),
        staged={**plan.staged, **digest_stage(stage, sorted(samples))},
        members={**plan.members, **{name: f"{STAND_INS}{name}" for name in samples}},
        withheld=tuple(one for one in plan.withheld if one.name not in samples),
    )


def stand_in_remarks(names: Iterable[str]) -> Iterator[Remark]:
    """Yield what a record of such a run has to say about each sample."""
    for name in sorted(names):
        yield Remark(
            id="standin-data",
            severity="gap",
            where=name,
            text="a sample stood in for this file: the run shows that the program "
            "works, not what it gives on the data themselves",
        )


def with_remarks(done: Assembled, remarks: Iterable[Remark]) -> Assembled:
    """Return `done` with more remarks in its record."""
    record = msgspec.structs.replace(
        done.record, remarks=(*done.record.remarks, *remarks)
    )
    return dataclasses.replace(done, record=record)
