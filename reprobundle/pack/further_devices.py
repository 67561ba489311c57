"""Run the main command on each further device, with the passes that the first one has.

What is made is sealed beside the reference under the role ``counterpart``, so that each
device has a run of its own, shown to repeat there and traced there. The claims with a
command of their own, the restart and the float64 run stay with the first device: they
judge the work and not a device, and the verdict says where a replay of them on another
device was judged (`same-run`).
"""

from __future__ import annotations

import copy
import dataclasses

import msgspec

from reprobundle.errors import CommandFailedError, PackRefusedError
from reprobundle.pack.failure import last_line
from reprobundle.pack.job import PackJob
from reprobundle.pack.without_cuda import cuda_advice, needs_cuda
from reprobundle.run.execute import execute
from reprobundle.run.finished import Assembled
from reprobundle.verify.devices import device_of


def counterpart_passes(job: PackJob) -> list[list[Assembled]]:
    """Return the passes on each further device, the measured one first.

    Args:
        job: After the passes on the first device.

    Raises:
        CommandFailedError: The command failed there, and that was not expected.
        PackRefusedError: It used another device, or did not repeat its success.
    """
    return [_on_device(job, device) for device in job.options.further_devices]


def _on_device(job: PackJob, device: str) -> list[Assembled]:
    there = _moved(job, device)
    measured = _measured(there)
    runs = [measured]
    if "repeat" in job.options.passes:
        runs += there.repeat_passes([measured])
    if "evidence" in job.options.passes:
        runs += there.evidence_passes([measured])
    return [
        dataclasses.replace(
            run, record=msgspec.structs.replace(run.record, role="counterpart")
        )
        for run in runs
    ]


def _moved(job: PackJob, device: str) -> PackJob:
    """Return the same job for another device, in a folder of its own."""
    there = copy.copy(job)
    mapping = job.options.mapping
    there.options = dataclasses.replace(
        job.options,
        device=device,
        mapping=mapping if mapping.endswith(f"={device}") else "",
        further_devices=(),
    )
    there.folder = job.folder / f"on-{device}"
    there.folder.mkdir()
    there.say = lambda line: job.say(f"on {device}: {line}")
    return there


def _measured(there: PackJob) -> Assembled:
    device = there.options.device
    there.say("measured pass: running it once more")
    plan = there.plan(there.selected.names, there.prepared.command)
    run = execute(plan, there.folder / "run1")
    if (run.launched.exit_status != 0) != there.options.expect_failure:
        raise CommandFailedError(
            f"on {device} the command ended with status "
            f"{run.launched.exit_status}: {last_line(run)}",
            status=run.launched.exit_status,
            advice=cuda_advice(run)
            if needs_cuda(run)
            else f"leave {device} out of --device",
        )
    done = there.assemble(run, role="counterpart")
    used = device_of(done.record)
    if device not in (used, used.removesuffix("-standin")):
        raise PackRefusedError(
            f"{device} was asked for, and the command used {used}",
            advice="have the command take its device from {device} or "
            "REPROBUNDLE_DEVICE",
        )
    return done
