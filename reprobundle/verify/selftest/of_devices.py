"""Mutations of a replay: a wrong claim about devices, times or memory."""

from __future__ import annotations

import msgspec

from reprobundle.format.record import Devices, MappedCall, Phase
from reprobundle.verify.selftest.altered_replay import (
    Redraft,
    ids,
    replay_with,
)
from reprobundle.verify.selftest.mutation import Mutation, NotPossibleError
from reprobundle.verify.selftest.subject import Draft, Subject

_TIMED = Phase(
    name="forward",
    count=1,
    total_ns=1,
    median_ns=1,
    longest_ns=1,
    synchronized="none",
)


def _mapped(subject: Subject, draft: Draft) -> Draft:
    if draft.record.devices.mapping:
        raise NotPossibleError("the reference is a mapped run itself")
    call = MappedCall(call="torch.zeros", asked="cuda", became="cpu", count=1)
    devices = msgspec.structs.replace(
        draft.record.devices, mapping="cuda=cpu", mapped=(call,)
    )
    return draft.saying(devices=devices)


def _device(*, platform: str = "darwin", **changes: object) -> Redraft:
    said: dict[str, object] = {
        "requested": "mps",
        "observed": ("cpu", "mps"),
        "fallback": "none-seen",
        "reason": "put in by the selftest",
        "witnesses": [
            {"name": name, "looked": True}
            for name in ("warnings", "profiler", "census")
        ],
        "operators": [
            {
                "operator": "aten.mm.default",
                "device": "mps",
                "count": 1,
                "bytes": 1,
                "steps": 1,
            }
        ],
        **changes,
    }

    def redraft(subject: Subject, draft: Draft) -> Draft:
        devices = msgspec.convert(said, type=Devices)
        facts = {
            name: fact
            for name, fact in draft.record.environment.items()
            if not name.startswith("torch.mps")
        }
        return draft.saying(devices=devices, platform=platform, environment=facts)

    return redraft


def _unsynchronised(subject: Subject, draft: Draft) -> Draft:
    phases = tuple(
        msgspec.structs.replace(phase, synchronized="none", synchronizations=0)
        for phase in draft.record.phases
    )
    return draft.saying(phases=phases or (_TIMED,))


def _other_limits(subject: Subject, draft: Draft) -> Draft:
    memory = draft.record.memory
    if not memory.samples:
        raise NotPossibleError("the reference has no memory log")
    other = {**memory.limits, "PYTORCH_CUDA_ALLOC_CONF": "another"}
    return draft.saying(memory=msgspec.structs.replace(memory, limits=other))


def _leaking(subject: Subject, draft: Draft) -> Draft:
    memory = draft.record.memory
    if memory.course not in ("flat", "step"):
        raise NotPossibleError(f"the reference's memory is {memory.course}")
    return draft.saying(memory=msgspec.structs.replace(memory, course="linear"))


DEVICE_MUTATIONS = (
    Mutation(
        "cpu-as-mps",
        "a CPU run that was asked for mps",
        ids("device-asked"),
        replay_with(_device(observed=("cpu",))),
    ),
    Mutation(
        "mps-on-linux",
        "an mps run on Linux",
        ids("standin-device"),
        replay_with(_device(platform="linux")),
    ),
    Mutation(
        "standin-as-mps",
        "a stand-in that says mps",
        ids("standin-device"),
        replay_with(_device(standin=True)),
    ),
    Mutation(
        "mapped",
        "calls for CUDA that another device answered",
        ids("device-mapped"),
        replay_with(_mapped),
    ),
    Mutation(
        "fallback",
        "operators that fell back to the CPU",
        ids("cpu-fallback"),
        replay_with(_device(fallback="seen")),
    ),
    Mutation(
        "fallback-unknown",
        "nobody looked for fallback",
        ids("cpu-fallback"),
        replay_with(_device(fallback="not-checked")),
    ),
    Mutation(
        "unsynchronised",
        "times without synchronisation",
        ids("unsynchronised-timing"),
        replay_with(_unsynchronised),
    ),
    Mutation(
        "other-memory-limits",
        "an allocator under another limit",
        ids("memory-limits"),
        replay_with(_other_limits),
    ),
    Mutation(
        "memory-leak",
        "memory that grows from step to step, and the reference's does not",
        ids("memory-growth"),
        replay_with(_leaking),
    ),
)
