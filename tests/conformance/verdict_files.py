"""Bundles with replays, and replay files, that differ from a sound one in one place."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import replace

from tests.conformance.documents import (
    ENVIRONMENT,
    INPUT,
    LOGITS,
    MEMORY_LOG,
    METRICS,
    OUTPUT,
    PEAKS,
    POLICY,
    RECORD,
    REPLAY_NS,
    SCRIPT,
    TOLERANT,
    Array,
    Document,
    Run,
    Sampled,
    SampledRows,
    Story,
    Uncounted,
    Withheld,
    again,
    bundle_id,
    digest,
    encode,
    fact,
    failure,
    files_digest,
    input_read,
    phase,
    replay_entries,
    replayed,
    tolerance,
)
from tests.format.forge import Forged, build_zip

NAN = float("nan")
LOSS = Array((0.5,), ())
LOG = {**PEAKS, "samples": 1, "rounds": "step", "course": "flat"}
# In section 8.1 the bound for b = 2 is 1.26e-5.
NEAR = Array((*LOGITS[:-1], 2.000004))
FAR = Array((*LOGITS[:-1], 2.00002))


def unreplayed() -> Story:
    """Return the bundle that nobody has replayed: three outputs and an input."""
    changes = {
        "reads": [input_read()],
        "files_digest": files_digest({"a.py": SCRIPT, "x.csv": INPUT}),
        "phases": [phase()],
    }
    outputs: dict[str, bytes | Array] = {
        "logits.npy": Array(),
        "loss.npy": LOSS,
        OUTPUT: METRICS,
    }
    run = Run(outputs, changes)
    return Story(runs=[(run, {})], policy=TOLERANT, files={"inputs/x.csv": INPUT})


def small(**policy: object) -> Story:
    """Return a smaller bundle whose policy has these fields."""
    return Story(runs=[(Run(), {})], policy={**POLICY, **policy})


def recorded(**changes: object) -> Story:
    """Return a smaller bundle whose reference record has these fields."""
    return Story(runs=[(Run(changes=changes), {})])


def with_nan() -> Story:
    """Return a bundle whose output holds NaN."""
    run = Run({"logits.npy": Array((1.0, NAN, 3.0))})
    return Story(runs=[(run, {})])


def holding(text: bytes) -> Story:
    """Return a bundle whose one output is a document of this text."""
    return Story(runs=[(Run({OUTPUT: text}), {})])


def pair(
    name: str, expected: bytes, got: bytes, **policy: object
) -> Callable[[], bytes]:
    """Return what makes a bundle with one output, and a replay that wrote another.

    Args:
        name: Name of the output.
        expected: Its content in the reference.
        got: Its content in the replay.
        policy: Fields of the policy.
    """
    story = Story(runs=[(Run({name: expected}), {})], policy={**POLICY, **policy})
    return attached(story, {name: got})


def timed(name: str, seconds: float) -> bytes:
    """Return a document that holds a time under this name, and one number more."""
    return encode({"accuracy": 0.5, name: seconds})


def notebook(line: str) -> bytes:
    """Return a notebook of one cell that printed this line."""
    printed = {"output_type": "stream", "name": "stdout", "text": f"{line}\n"}
    cell = {"cell_type": "code", "source": "x", "metadata": {}, "outputs": [printed]}
    return encode({"nbformat": 4, "metadata": {}, "cells": [cell]})


def labelled(classes: str) -> bytes:
    """Return a safetensors file of one tensor that states these classes."""
    tensor = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
    header = encode({"__metadata__": {"classes": classes}, "w": tensor})
    return len(header).to_bytes(8, "little") + header + struct.pack("<f", 0.5)


def with_uncounted_nan() -> Story:
    """Return a bundle whose records count no NaN in an array that holds one."""
    run = Run({"logits.npy": Uncounted((1.0, NAN, 3.0))})
    return Story(runs=[(run, {})])


def lax_share() -> Story:
    """Return a bundle whose policy lets a third of the elements be anything."""
    rule = tolerance("float32", rtol=1e-6, share=0.4)
    return Story(
        runs=[(Run({"logits.npy": Array((1.0, 2.0, 3.0))}), {})],
        policy={**POLICY, "tolerances": [rule]},
    )


def shadowed() -> Story:
    """Return a bundle with a second run for the reference's claim."""
    return Story(runs=[(Run(), {}), (Run(), {"role": "claim"})])


def earlier_result() -> Document:
    """Return the read of a file that holds what the reference wrote."""
    return {**input_read(METRICS), "path": "external:1/earlier", "member": ""}


def success_with_error() -> Document:
    """Return the outcome of a success that an error ended."""
    return {**failure("out of range"), "exit_status": 0, "expected_failure": False}


def with_memory() -> Story:
    """Return a bundle whose reference has a memory log of a loop that is flat."""
    return recorded(memory={**LOG, "series": MEMORY_LOG})


def failing() -> Story:
    """Return a bundle whose result is an error."""
    return recorded(outcome=failure("out of range"))


def two_claims() -> Story:
    """Return a bundle with a second claim that has a command of its own."""
    claims = [{"name": "main"}, {"name": "ablation", "command": ["python", "b.py"]}]
    return small(claims=claims)


def repeat_differs() -> Story:
    """Return a bundle whose repeat pass gave something else."""
    repeat = Run({OUTPUT: b'{"accuracy": 0.5}\n'})
    role = {"role": "repeat", "pass_name": "repeat"}
    return Story(runs=[(Run(), {}), (repeat, role)])


def repeat_of_another() -> Story:
    """Return a bundle whose repeat pass ran another command."""
    role = {"role": "repeat", "pass_name": "repeat"}
    other = Run(changes={"command": command(argv=["true"])})
    return Story(runs=[(Run(), {}), (other, role)])


def repeat_copied() -> Story:
    """Return a bundle whose repeat pass says that it took the reference's time."""
    copied = {"elapsed_ns": RECORD["elapsed_ns"]}
    role = {"role": "repeat", "pass_name": "repeat"}
    return Story(runs=[(Run(), {}), (Run(changes=copied), role)])


def bound_beyond_values() -> Story:
    """Return a bundle whose rule for an array admits zeros."""
    loose = {"match": "*.npy", "tolerance": {"rtol": 0.0, "atol": 9.0}, "reason": "?"}
    run = Run({"logits.npy": Array()})
    return Story(runs=[(run, {})], policy={**POLICY, "outputs": [loose]})


def restarted(accuracy: bytes, **changes: object) -> Story:
    """Return a bundle whose restart pass gave this accuracy."""
    resumed = Run({OUTPUT: b'{"accuracy": ' + accuracy + b"}\n"})
    restart = {"checkpoint": "state.pt", "steps_before": 3, "steps_after": 2}
    role = {"role": "restart", "pass_name": "restart"}
    return Story(
        runs=[(Run(), {}), (resumed, {**role, "restart": {**restart, **changes}})]
    )


def with_truth(*left: Document) -> Story:
    """Return a bundle with a float64 run, of which some operators were `left`."""
    states = {"randomness": {"seed": 0, "final": {"torch.cpu": "0" * 16}}}
    truth = Run({OUTPUT: b'{"accuracy": 0.7500001}\n'}, states)
    role = {"role": "truth", "pass_name": "truth"}
    promotion = {"operators": 7, "left": list(left)}
    return Story(
        runs=[(Run(changes=states), {}), (truth, {**role, "promotion": promotion})]
    )


def begun() -> Story:
    """Return a bundle whose reference tells what it began with."""
    run = Run({"logits.npy": Array()}, {"randomness": began("00" * 8)})
    return Story(runs=[(run, {})], policy=TOLERANT)


def began(fingerprint: str) -> Document:
    """Return the randomness of a run that began with one weight tensor."""
    weight = {
        "name": "Net/weight",
        "kind": "weight",
        "dtype": "float32",
        "shape": [3],
        "fingerprint": fingerprint,
    }
    return {"seed": 0, "start": [weight]}


def attached(
    story: Story,
    outputs: Mapping[str, bytes | Array | None] | None = None,
    **changes: object,
) -> Callable[[], bytes]:
    """Return what makes the bundle of `story` with one replay.

    Args:
        story: The bundle.
        outputs: Outputs that differ from the reference's.
        changes: Fields in which the replay's record differs from the reference.
    """
    return lambda: replayed(story, _replay(story, outputs or {}, **changes)).build()


def alone(
    outputs: Mapping[str, bytes | Array | None] | None = None,
    *,
    of: Callable[[], Story] = unreplayed,
    **changes: object,
) -> Callable[[], bytes]:
    """Return what makes a replay file of one replay.

    Args:
        outputs: Outputs that differ from the reference's; None for one that did not
            come out.
        of: Makes the bundle that was replayed.
        changes: Fields in which the replay's record differs from the reference.
    """
    return lambda: _file(of(), _replay(of(), outputs or {}, **changes))


def sampled(replayed_as: Sampled) -> Callable[[], bytes]:
    """Return what makes a bundle that keeps a sample, with one replay.

    Args:
        replayed_as: The replay's output, by the bundle's own policy unless it names
            another.
    """

    def make() -> bytes:
        key = digest(encode(TOLERANT))
        reference = Run({"logits.npy": Sampled(key=key)})
        story = Story(runs=[(reference, {})], policy=TOLERANT)
        output = replace(replayed_as, key=replayed_as.key or key)
        return replayed(story, again({"logits.npy": output})).build()

    return make


def withheld(replayed_as: Withheld) -> Callable[[], bytes]:
    """Return what makes a bundle that withholds an output, with one replay."""
    reference = Run({"logits.npy": Withheld()})
    return attached(Story(runs=[(reference, {})]), {"logits.npy": replayed_as})


def sampled_rows(replayed_as: SampledRows) -> Callable[[], bytes]:
    """Return what makes a bundle that keeps rows of a table, with one replay.

    Args:
        replayed_as: The replay's output.
    """

    def make() -> bytes:
        policy = {**TOLERANT, "tolerances": [tolerance("number")]}
        key = digest(encode(policy))
        reference = Run({"loss.csv": SampledRows(key=key)})
        story = Story(runs=[(reference, {})], policy=policy)
        output = replace(replayed_as, key=replayed_as.key or key)
        return replayed(story, again({"loss.csv": output})).build()

    return make


def newer_says_yes() -> bytes:
    """Return a replay file: first one that differs, then one that does not."""
    story = unreplayed()
    older = _replay(story, {"logits.npy": FAR}, occasion="1" * 16)
    newer = _replay(story, {}, occasion="2" * 16)
    return _file(story, older, newer)


def command(**changes: object) -> Document:
    """Return the command of every run here, changed."""
    return {**RECORD["command"], **changes}


def mps(**changes: object) -> Document:
    """Return the fields of a replay on a Mac's GPU; `changes` are its devices'."""
    devices = {
        "observed": ["cpu", "mps"],
        "fallback": "none-seen",
        "reason": "every operator was traced",
        "witnesses": [
            {"name": name, "looked": True}
            for name in ("warnings", "profiler", "census")
        ],
        "operators": [
            {
                "operator": "aten.mm.default",
                "device": "mps",
                "count": 3,
                "bytes": 96,
                "steps": 3,
            }
        ],
        **changes,
    }
    waited = phase(synchronized="mps", synchronizations=2)
    return {"platform": "darwin", "devices": devices, "phases": [waited]}


def mapped() -> Document:
    """Return the devices of a run whose CUDA was mapped to the CPU."""
    call = {"call": "torch.zeros", "asked": "cuda:0", "became": "cpu", "count": 3}
    place = {"where": "{project}/a.py:2"}
    told = {"mapping": "cuda=cpu", "mapped": [{**call, **place}]}
    return {**RECORD["devices"], **told}


def on_two_devices() -> Story:
    """Return a bundle with a run on CUDA and one on the CPU, whose results differ."""
    other = Run({OUTPUT: b'{"accuracy": 0.5}\n'}, {"devices": used("cpu")})
    first = Run(changes={"devices": used("cuda")})
    return Story(runs=[(first, {}), (other, {"role": "counterpart"})])


def agreeing_on_two_devices() -> Story:
    """Return a bundle with a run on CUDA and one on the CPU that gave the same."""
    first, other = ({"devices": used(device)} for device in ("cuda", "cpu"))
    return Story(
        runs=[(Run(changes=first), {}), (Run(changes=other), {"role": "counterpart"})]
    )


def used(device: str) -> Document:
    """Return the devices of a run that used one by request."""
    usual = {"fallback": "none-possible", "reason": "no MPS"}
    return {"requested": device, "observed": [device], **usual}


def from_mac() -> Story:
    """Return a bundle whose reference was made on a Mac, on its CPU."""
    return recorded(platform="darwin")


def linux_reference(**changes: object) -> Callable[[], bytes]:
    """Return what makes that bundle with a record marked as the Linux reference."""
    marked = {
        "platform": "linux",
        "environment": {**ENVIRONMENT, "os.system": fact("Linux")},
        "elapsed_ns": RECORD["elapsed_ns"] + 1,
        "reference_by": "a second person",
    }
    return attached(from_mac(), **{**marked, **changes})


def beside_linux() -> Callable[[], bytes]:
    """Return what makes it with a Linux reference and a replay that differs from it."""
    story = from_mac()
    linux = {"environment": {**ENVIRONMENT, "os.system": fact("Linux")}}
    marked = {**linux, "platform": "linux", "reference_by": "a second person"}
    first = _replay(story, {"logits.npy": FAR}, **marked)
    return lambda: replayed(story, first, _replay(story, {}, **linux)).build()


def half_waited() -> Document:
    """Return a phase with one wait where each of its two readings needs one."""
    return phase(synchronized="mps", synchronizations=1)


def contradicting() -> Document:
    """Return a phase that was shorter after its last wait than before it."""
    waited = phase(synchronized="mps", synchronizations=2)
    return {**waited, "unwaited_median_ns": waited["median_ns"] + 1}


def process(pid: int, **changes: object) -> Document:
    """Return a process that ended well; the first one is the main process."""
    usual = {"pid": pid, "ended": True, "exit_status": 0}
    return {**usual, "kind": "main" if pid == 1 else "python", **changes}


def unfinished(stop: str) -> Document:
    """Return how a run ended that stopped for this reason."""
    detail = f"made up for the reason {stop}"
    ending = {"exit_status": 1, "completed": False}
    return {**ending, "stop": stop, "stop_detail": detail}


def remark(name: str, severity: str) -> list[Document]:
    """Return the remarks of a run that showed one thing."""
    return [{"id": name, "severity": severity, "text": "as the replay says itself"}]


def _replay(
    story: Story, outputs: Mapping[str, bytes | Array | None], **changes: object
) -> Run:
    reference = story.runs[0][0]
    made = {**reference.outputs, **outputs}
    held = {
        digest(data): f"runs/1/{name}"
        for name, data in reference.build().items()
        if name.startswith("outputs/")
    }
    return Run(
        {name: output for name, output in made.items() if output is not None},
        {**reference.changes, **changes},
        beside={},
        sealed=held,
    )


def _file(story: Story, *replays: Run) -> bytes:
    identity = bundle_id(story.forge())
    entries: list[Forged] = []
    for number, run in enumerate(replays):
        entries += replay_entries(identity, run, elapsed_ns=REPLAY_NS + number)
    return build_zip(entries)
