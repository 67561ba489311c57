"""Mutations of a record that contradicts itself, or that hides how it came about.

None of its digests is wrong. What gives it away is that two of its own fields, or a
field and the content beside it, cannot both be true.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from reprobundle.format.canonical import encode
from reprobundle.format.policy import Claim
from reprobundle.format.record import (
    Devices,
    ErrorReport,
    Fact,
    FileRead,
    MemorySample,
    MemorySeries,
)
from reprobundle.verify.memory import SETTLED
from reprobundle.verify.selftest import altered_values as values
from reprobundle.verify.selftest.altered_replay import (
    OTHER_DIGEST,
    ids,
    replay_with,
    saying,
)
from reprobundle.verify.selftest.forged import POLICY, forged
from reprobundle.verify.selftest.mutation import Made, Mutation, NotPossibleError
from reprobundle.verify.selftest.subject import Draft, Subject

_STEPS = 60
_ERROR = ErrorReport(
    type="ValueError",
    message="put in by the selftest",
    masked="put in by the selftest",
    where="{project}/train.py:1",
    traceback="ValueError: put in by the selftest",
)


def _success_with_error(subject: Subject, draft: Draft) -> Draft:
    if subject.reference.outcome.expected_failure:
        raise NotPossibleError("failing is the result")
    outcome = msgspec.structs.replace(draft.record.outcome, error=_ERROR)
    return draft.saying(outcome=outcome)


def _without_end(subject: Subject, draft: Draft) -> Draft:
    if subject.reference.outcome.expected_failure:
        raise NotPossibleError("failing is the result")
    processes = tuple(
        msgspec.structs.replace(one, ended=False, exit_status=None)
        for one in draft.record.processes
    )
    kept = (one for one in draft.record.remarks if one.id != "process-without-end")
    return draft.saying(processes=processes, remarks=tuple(kept))


def _read_twice(subject: Subject, draft: Draft) -> Draft:
    for read in draft.record.reads:
        if read.blake3:
            other = msgspec.structs.replace(read, blake3=OTHER_DIGEST, member="")
            return draft.saying(reads=(other, *draft.record.reads))
    raise NotPossibleError("the reference read no file")


def _result_read(subject: Subject, draft: Draft) -> Draft:
    for output in subject.reference.outputs:
        if output.size_bytes:
            result = FileRead(
                path="external:9/earlier-result",
                origin="~/earlier-result",
                size_bytes=output.size_bytes,
                blake3=output.blake3,
            )
            return draft.saying(reads=(*draft.record.reads, result))
    raise NotPossibleError("the reference has no output")


def _mps_on_debian(subject: Subject, draft: Draft) -> Draft:
    system = {"os.name": Fact(value="Debian GNU/Linux 12", source="os-release")}
    return draft.saying(
        platform="darwin",
        devices=Devices(
            requested="mps", observed=("cpu", "mps"), fallback="none-possible"
        ),
        environment={**draft.record.environment, **system},
    )


def _cuda_on_cpu_build(subject: Subject, draft: Draft) -> Draft:
    """Say CUDA of a build for the CPU alone, and leave out what it was built with."""
    facts = draft.record.environment
    version = facts.get("torch.version")
    if version is None or not str(version.value).endswith("+cpu"):
        raise NotPossibleError("the reference's torch is no build for the CPU alone")
    kept = {name: fact for name, fact in facts.items() if not name.endswith(".built")}
    return draft.saying(
        devices=Devices(
            requested="cuda", observed=("cpu", "cuda"), fallback="none-possible"
        ),
        environment=kept,
    )


def _leak_called_flat(subject: Subject, draft: Draft) -> Draft:
    """Put a series that grows beside a record that calls its memory flat."""
    log = draft.record.memory
    if log.series not in draft.files or log.course not in SETTLED:
        raise NotPossibleError("the reference has no memory log of a settled course")
    samples = tuple(
        MemorySample(
            t_ns=step, point=f"step {step}", step=step, pid=1, bytes={"rss": step << 20}
        )
        for step in range(1, _STEPS + 1)
    )
    said = msgspec.structs.replace(
        log, samples=len(samples), course="flat", growth=(), rounds="step", calls=()
    )
    series = encode(MemorySeries(samples=samples))
    return Draft(
        msgspec.structs.replace(draft.record, memory=said),
        {**draft.files, log.series: series},
    )


def _shadowed(subject: Subject) -> Iterator[Made]:
    """Seal the repeat pass as a run of its own for the main claim."""
    for number, record in subject.sealed.runs.items():
        if record.role == "repeat" and record.claim == subject.reference.claim:
            shadow = msgspec.structs.replace(record, role="claim", pass_name="measured")
            path = f"runs/{number}/record.json"
            sealed = subject.seal("forged", {path: encode(shadow)})
            yield Made(sealed, "the repeat pass")
            return
    raise NotPossibleError("no repeat pass was made")


def _other_repeat(subject: Subject) -> Iterator[Made]:
    """Seal a repeat pass that ran something else."""
    for number, record in subject.sealed.runs.items():
        if record.role == "repeat":
            command = msgspec.structs.replace(record.command, argv=("true",))
            other = msgspec.structs.replace(record, command=command)
            path = f"runs/{number}/record.json"
            yield forged(subject, "the repeat pass", {path: encode(other)})
            return
    raise NotPossibleError("no repeat pass was made")


def _claim_twice(subject: Subject) -> Iterator[Made]:
    """Freeze a policy that states one claim twice, the second time strictly."""
    claims = (Claim(name="main"), Claim(name="main", statement="It is perfect"))
    policy = msgspec.structs.replace(subject.sealed.policy, claims=claims)
    yield Made(subject.seal("forged", {POLICY: encode(policy)}), "the policy")


def _hidden_nan(subject: Subject) -> Iterator[Made]:
    """Put NaN on both sides, under summaries that count none."""
    from reprobundle.verify.selftest.of_both_sides import both_sides

    output = values.float_output(subject.reference, subject.sealed.policy)
    yield both_sides(subject, output, values.with_nan, stated=output.arrays)


CONTRADICTION_MUTATIONS = (
    Mutation(
        "took-no-time",
        "a replay that came to its end in no time at all",
        ids("copied-replay"),
        replay_with(saying(elapsed_ns=0)),
    ),
    Mutation(
        "success-with-error",
        "a success that an error ended",
        ids("exit-status"),
        replay_with(_success_with_error),
    ),
    Mutation(
        "process-without-end",
        "a success of which no process came to its end",
        ids("run-warning"),
        replay_with(_without_end),
    ),
    Mutation(
        "read-twice",
        "an input read a second time, with other content",
        ids("same-inputs"),
        replay_with(_read_twice),
    ),
    Mutation(
        "result-read",
        "a replay that read the result it was to produce",
        ids("further-input"),
        replay_with(_result_read),
    ),
    Mutation(
        "mps-on-debian",
        "a run on MPS of a Mac whose system is Debian",
        ids("standin-device"),
        replay_with(_mps_on_debian),
    ),
    Mutation(
        "cuda-on-a-cpu-build",
        "a run that says cuda, of a build for the CPU that hides what it is built with",
        ids("standin-device"),
        replay_with(_cuda_on_cpu_build),
    ),
    Mutation(
        "leak-called-flat",
        "a record that calls its memory flat, beside a series that grows",
        ids("memory-growth"),
        replay_with(_leak_called_flat),
    ),
    Mutation(
        "claim-shadowed",
        "a second sealed run for the main claim",
        ids("sealed-document"),
        _shadowed,
    ),
    Mutation(
        "repeat-of-another-command",
        "a repeat pass that ran another command",
        ids("reference-not-repeatable"),
        _other_repeat,
    ),
    Mutation(
        "policy-claim-twice",
        "a policy that states one claim twice, in two ways",
        ids("sealed-document"),
        _claim_twice,
    ),
    Mutation(
        "nan-under-a-summary",
        "NaN on both sides, and summaries that count none",
        ids("nan-in-output"),
        _hidden_nan,
    ),
)
