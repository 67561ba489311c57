"""Mutations of a replay: another run, other results, or a wrong claim about either."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from reprobundle.format.attach import write_replay_file
from reprobundle.format.record import (
    Devices,
    Outcome,
    Phase,
    Process,
    Remark,
)
from reprobundle.format.writer import Source
from reprobundle.verify.selftest import altered_values as values
from reprobundle.verify.selftest.mutation import Made, Mutation, NotPossibleError
from reprobundle.verify.selftest.subject import Draft, Echo, Subject, reference_member

Redraft = Callable[[Subject, Draft], Draft]

OTHER_DIGEST = "0" * 64
_TIMED = Phase(
    name="forward",
    count=1,
    total_ns=1,
    median_ns=1,
    longest_ns=1,
    synchronized="none",
)


def _replay(redraft: Redraft) -> Callable[[Subject], Iterator[Made]]:
    """Return what judges the bundle with another replay of the reference run."""

    def make(subject: Subject) -> Iterator[Made]:
        echo = subject.echo()
        other = echo.but(redraft(subject, echo.main))
        if other == echo:
            raise NotPossibleError("the reference states nothing of the kind")
        yield _with(subject, other, "the replay")

    return make


def _with(subject: Subject, replays: Echo, what: str) -> Made:
    return Made(subject.path, what, replays.write(subject.folder / "other.rpr.zip"))


def _saying(**changes: object) -> Redraft:
    return lambda subject, draft: draft.saying(**changes)


# --- other results


def _array(change: values.Change) -> Redraft:
    def redraft(subject: Subject, draft: Draft) -> Draft:
        output = values.float_output(subject.reference, subject.sealed.policy)
        data = subject.read(reference_member(output.member))
        altered = values.with_array_changed(output, data, change)
        return draft.with_output(subject.folder, output, altered)

    return redraft


def _document(subject: Subject, draft: Draft) -> Draft:
    policy = subject.sealed.policy
    output = values.document_output(subject.reference, policy)
    data = subject.read(reference_member(output.member))
    altered = values.with_number_changed(output, data, policy)
    return draft.with_output(subject.folder, output, altered)


def _stored(subject: Subject) -> tuple[str, ...]:
    names = tuple(one.name for one in subject.reference.outputs)
    if not names:
        raise NotPossibleError("the reference has no output")
    return names


def _one_missing(subject: Subject, draft: Draft) -> Draft:
    return draft.without_outputs(_stored(subject)[0])


def _all_missing(subject: Subject, draft: Draft) -> Draft:
    return draft.without_outputs(*_stored(subject))


def _all_empty(subject: Subject, draft: Draft) -> Draft:
    _stored(subject)
    for output in draft.record.outputs:
        draft = draft.with_output(subject.folder, output, b"")
    return draft


def _one_more(subject: Subject, draft: Draft) -> Draft:
    _stored(subject)
    first = msgspec.structs.replace(draft.record.outputs[0], name="zz-one-more.json")
    return draft.saying(outputs=(*draft.record.outputs, first))


def _content_edited(subject: Subject) -> Iterator[Made]:
    """Keep the record, alter what lies beside it."""
    draft = subject.echo().main
    record, sources = draft.tree()
    edited = [Source(one.path, one.role, b"edited\n") for one in sources]
    if not edited:
        raise NotPossibleError("nothing lies beside the record")
    target = subject.folder / "other.rpr.zip"
    write_replay_file(target, [(record, edited)])
    yield Made(subject.path, "what lies beside the record", target)


# --- another run


def _other_command(subject: Subject, draft: Draft) -> Draft:
    command = draft.record.command
    argv = (*command.argv, "--fast")
    return draft.saying(command=msgspec.structs.replace(command, argv=argv))


def _other_seed(subject: Subject, draft: Draft) -> Draft:
    seed = (draft.record.command.seed or 0) + 1
    return draft.saying(
        command=msgspec.structs.replace(draft.record.command, seed=seed),
        randomness=msgspec.structs.replace(draft.record.randomness, seed=seed),
    )


def _other_input(subject: Subject, draft: Draft) -> Draft:
    reads = tuple(
        msgspec.structs.replace(read, blake3=OTHER_DIGEST)
        if read.member.startswith(("inputs/", "external/"))
        else read
        for read in draft.record.reads
    )
    return draft.saying(reads=reads)


def _fewer_inputs(subject: Subject, draft: Draft) -> Draft:
    kept = (one for one in draft.record.reads if not one.member.startswith("inputs/"))
    return draft.saying(reads=tuple(kept))


def _fewer_steps(subject: Subject, draft: Draft) -> Draft:
    phases = tuple(
        msgspec.structs.replace(phase, count=phase.count // 2)
        if phase.name == "optimizer"
        else phase
        for phase in draft.record.phases
    )
    return draft.saying(phases=phases)


def _remark(name: str, severity: str) -> Redraft:
    def redraft(subject: Subject, draft: Draft) -> Draft:
        text = "put in by the selftest"
        remark = msgspec.convert(
            {"id": name, "severity": severity, "text": text}, type=Remark
        )
        return draft.saying(remarks=(*draft.record.remarks, remark))

    return redraft


def _unwatched(subject: Subject, draft: Draft) -> Draft:
    one = Process(pid=1, kind="python", argv=("python",), entered=False)
    return draft.saying(processes=(*draft.record.processes, one))


def _unwatched_all(subject: Subject, draft: Draft) -> Draft:
    none = tuple(
        msgspec.structs.replace(process, entered=False)
        for process in draft.record.processes
    )
    return draft.saying(processes=none)


# --- another ending


def _ending(**changes: object) -> Redraft:
    def redraft(subject: Subject, draft: Draft) -> Draft:
        outcome = msgspec.structs.replace(draft.record.outcome, **changes)
        return draft.saying(outcome=outcome)

    return redraft


def _failed(subject: Subject, draft: Draft) -> Draft:
    if subject.reference.outcome.expected_failure:
        raise NotPossibleError("failing is the result")
    return draft.saying(outcome=Outcome(exit_status=1))


def _succeeded(subject: Subject, draft: Draft) -> Draft:
    if not subject.reference.outcome.expected_failure:
        raise NotPossibleError("the result is not a failure")
    return draft.saying(outcome=Outcome(exit_status=0, expected_failure=True))


def _other_failure(subject: Subject, draft: Draft) -> Draft:
    error = draft.record.outcome.error
    if not subject.reference.outcome.expected_failure or error is None:
        raise NotPossibleError("the result is not a failure")
    other = msgspec.structs.replace(error, type="MemoryError")
    outcome = msgspec.structs.replace(draft.record.outcome, error=other)
    return draft.saying(outcome=outcome)


# --- a wrong claim about the device


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


def _of_another_bundle(subject: Subject) -> Iterator[Made]:
    yield _with(subject, subject.echo().of(OTHER_DIGEST), "replays of another bundle")


def _ids(*names: str) -> frozenset[str]:
    return frozenset(names)


_STRUCTURE = _ids("output-differs", "output-not-compared", "values-not-compared")

REPLAY_MUTATIONS = (
    Mutation(
        "other-value",
        "one array element outside the tolerance",
        _STRUCTURE,
        _replay(_array(values.larger)),
    ),
    Mutation(
        "other-number", "one number of a document", _STRUCTURE, _replay(_document)
    ),
    Mutation(
        "nan-in-replay",
        "NaN in the replay only",
        _STRUCTURE,
        _replay(_array(values.with_nan)),
    ),
    Mutation(
        "other-shape",
        "the same values with one axis more",
        _STRUCTURE,
        _replay(_array(values.with_axis)),
    ),
    Mutation(
        "other-dtype",
        "the same values in another dtype",
        _STRUCTURE,
        _replay(_array(values.wider)),
    ),
    Mutation(
        "zeros",
        "zeros instead of values",
        _STRUCTURE | {"output-all-zero"},
        _replay(_array(values.zeros)),
    ),
    Mutation(
        "output-missing",
        "one output missing",
        _ids("output-missing"),
        _replay(_one_missing),
    ),
    Mutation(
        "outputs-missing",
        "all outputs missing",
        _ids("output-missing"),
        _replay(_all_missing),
    ),
    Mutation(
        "outputs-empty", "all outputs empty files", _STRUCTURE, _replay(_all_empty)
    ),
    Mutation(
        "output-unexpected",
        "one output more",
        _ids("output-unexpected"),
        _replay(_one_more),
    ),
    Mutation(
        "content-edited",
        "content beside the record edited",
        _ids("replay-members", "member-digest"),
        _content_edited,
    ),
    Mutation(
        "other-bundle",
        "replays of another bundle",
        _ids("replay-bundle"),
        _of_another_bundle,
    ),
    Mutation(
        "other-files",
        "a replay of other files",
        _ids("same-files"),
        _replay(_saying(files_digest=OTHER_DIGEST)),
    ),
    Mutation(
        "other-command",
        "another argument",
        _ids("same-command"),
        _replay(_other_command),
    ),
    Mutation("other-seed", "another seed", _ids("same-seed"), _replay(_other_seed)),
    Mutation(
        "other-input",
        "inputs of other content",
        _ids("same-inputs"),
        _replay(_other_input),
    ),
    Mutation(
        "reduced-input",
        "inputs not read",
        _ids("reduced-input"),
        _replay(_fewer_inputs),
    ),
    Mutation(
        "standin-data",
        "data that stands in for the real one",
        _ids("standin-data"),
        _replay(_remark("standin-data", "warning")),
    ),
    Mutation(
        "skipped-steps",
        "half of the optimizer steps",
        _ids("same-steps"),
        _replay(_fewer_steps),
    ),
    Mutation(
        "masked-failure",
        "a process that failed behind status 0",
        _ids("masked-failure"),
        _replay(_remark("masked-failure", "failure")),
    ),
    Mutation(
        "unwatched-process",
        "a Python process without the recorder",
        _ids("python-not-entered"),
        _replay(_unwatched),
    ),
    Mutation(
        "unwatched-run",
        "no process with the recorder",
        _ids("nothing-entered"),
        _replay(_unwatched_all),
    ),
    Mutation(
        "interrupted",
        "a run that was interrupted",
        _ids("run-completed"),
        _replay(_ending(completed=False, stop="interrupted")),
    ),
    Mutation(
        "stopped",
        "a run stopped for want of an operator",
        _ids("stopped"),
        _replay(_ending(completed=False, stop="operator")),
    ),
    Mutation("failed", "a command that failed", _ids("exit-status"), _replay(_failed)),
    Mutation(
        "no-failure",
        "a success where a failure is the result",
        _ids("expected-failure"),
        _replay(_succeeded),
    ),
    Mutation(
        "other-failure",
        "another failure than the expected one",
        _ids("same-failure"),
        _replay(_other_failure),
    ),
    Mutation(
        "cpu-as-mps",
        "a CPU run that was asked for mps",
        _ids("device-asked"),
        _replay(_device(observed=("cpu",))),
    ),
    Mutation(
        "mps-on-linux",
        "an mps run on Linux",
        _ids("standin-device"),
        _replay(_device(platform="linux")),
    ),
    Mutation(
        "standin-as-mps",
        "a stand-in that says mps",
        _ids("standin-device"),
        _replay(_device(standin=True)),
    ),
    Mutation(
        "fallback",
        "operators that fell back to the CPU",
        _ids("cpu-fallback"),
        _replay(_device(fallback="seen")),
    ),
    Mutation(
        "fallback-unknown",
        "nobody looked for fallback",
        _ids("cpu-fallback"),
        _replay(_device(fallback="not-checked")),
    ),
    Mutation(
        "unsynchronised",
        "times without synchronisation",
        _ids("unsynchronised-timing"),
        _replay(_unsynchronised),
    ),
    Mutation(
        "other-memory-limits",
        "an allocator under another limit",
        _ids("memory-limits"),
        _replay(_other_limits),
    ),
    Mutation(
        "memory-leak",
        "memory that grows from step to step, and the reference's does not",
        _ids("memory-growth"),
        _replay(_leaking),
    ),
)
