"""Mutations of a replay: another run, or another ending."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from reprobundle.format.record import Outcome, Process, Remark
from reprobundle.verify.selftest.altered_replay import (
    OTHER_DIGEST,
    Redraft,
    ids,
    judged_with,
    replay_with,
    saying,
)
from reprobundle.verify.selftest.mutation import Made, Mutation, NotPossibleError
from reprobundle.verify.selftest.subject import Draft, Subject


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


def _of_another_bundle(subject: Subject) -> Iterator[Made]:
    yield judged_with(
        subject, subject.echo().of(OTHER_DIGEST), "replays of another bundle"
    )


PROTOCOL_MUTATIONS = (
    Mutation(
        "other-bundle",
        "replays of another bundle",
        ids("replay-bundle"),
        _of_another_bundle,
    ),
    Mutation(
        "other-files",
        "a replay of other files",
        ids("same-files"),
        replay_with(saying(files_digest=OTHER_DIGEST)),
    ),
    Mutation(
        "other-command",
        "another argument",
        ids("same-command"),
        replay_with(_other_command),
    ),
    Mutation("other-seed", "another seed", ids("same-seed"), replay_with(_other_seed)),
    Mutation(
        "other-input",
        "inputs of other content",
        ids("same-inputs"),
        replay_with(_other_input),
    ),
    Mutation(
        "reduced-input",
        "inputs not read",
        ids("reduced-input"),
        replay_with(_fewer_inputs),
    ),
    Mutation(
        "standin-data",
        "data that stands in for the real one",
        ids("standin-data"),
        replay_with(_remark("standin-data", "warning")),
    ),
    Mutation(
        "skipped-steps",
        "half of the optimizer steps",
        ids("same-steps"),
        replay_with(_fewer_steps),
    ),
    Mutation(
        "masked-failure",
        "a process that failed behind status 0",
        ids("masked-failure"),
        replay_with(_remark("masked-failure", "failure")),
    ),
    Mutation(
        "unwatched-process",
        "a Python process without the recorder",
        ids("python-not-entered"),
        replay_with(_unwatched),
    ),
    Mutation(
        "unwatched-run",
        "no process with the recorder",
        ids("nothing-entered"),
        replay_with(_unwatched_all),
    ),
    Mutation(
        "interrupted",
        "a run that was interrupted",
        ids("run-completed"),
        replay_with(_ending(completed=False, stop="interrupted")),
    ),
    Mutation(
        "stopped",
        "a run stopped for want of an operator",
        ids("stopped"),
        replay_with(_ending(completed=False, stop="operator")),
    ),
    Mutation(
        "failed", "a command that failed", ids("exit-status"), replay_with(_failed)
    ),
    Mutation(
        "no-failure",
        "a success where a failure is the result",
        ids("expected-failure"),
        replay_with(_succeeded),
    ),
    Mutation(
        "other-failure",
        "another failure than the expected one",
        ids("same-failure"),
        replay_with(_other_failure),
    ),
)
