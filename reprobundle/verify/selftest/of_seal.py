"""Mutations under a valid seal: a forger who knows the format and hashes all anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from reprobundle.format.canonical import encode
from reprobundle.format.record import Fact, Memory, Randomness, Record
from reprobundle.verify.selftest.forged import POLICY, RECORD, forged
from reprobundle.verify.selftest.mutation import Made, Mutation, NotPossibleError
from reprobundle.verify.selftest.subject import Subject, reference_member

_UNKNOWN = Fact(unknown="taken out")


def _edit(top: str, ending: str = "") -> Callable[[Subject], Iterator[Made]]:
    """Return what edits the first file below `top` and seals the bundle anew."""

    def make(subject: Subject) -> Iterator[Made]:
        for path in subject.roles:
            if path.startswith(top) and path.endswith(ending):
                break
        else:
            raise NotPossibleError(f"the bundle holds no file {top}…{ending}")
        sealed = subject.seal("forged", {path: subject.read(path) + b"\n"})
        yield Made(sealed, f"{path} edited", expect_id=subject.id)

    return make


# --- what the reference states


def _restated(
    change: Callable[[Record], Record], *, without: tuple[str, ...] = ()
) -> Callable[[Subject], Iterator[Made]]:
    """Return what seals another reference record.

    Args:
        change: Returns the other record.
        without: Members of the reference run that are taken out with it.
    """

    def make(subject: Subject) -> Iterator[Made]:
        record = change(subject.reference)
        if record == subject.reference:
            raise NotPossibleError("the reference states nothing of the kind")
        left = tuple(one for one in record.members if one.name not in without)
        record = msgspec.structs.replace(record, members=left)
        paths = frozenset(map(reference_member, without)) & subject.roles.keys()
        yield forged(subject, "the reference", {RECORD: encode(record)}, without=paths)

    return make


def _replaced(**changes: object) -> Callable[[Record], Record]:
    return lambda record: msgspec.structs.replace(record, **changes)


def _unknown_version(record: Record) -> Record:
    facts = {**record.environment, "python.version": _UNKNOWN}
    return msgspec.structs.replace(record, environment=facts)


def _unfinished(record: Record) -> Record:
    outcome = msgspec.structs.replace(record.outcome, completed=False)
    return msgspec.structs.replace(record, outcome=outcome)


def _without_lock(subject: Subject) -> Iterator[Made]:
    locks = frozenset(path for path in subject.roles if path.startswith("lock/"))
    yield forged(subject, "the lockfiles", without=locks)


def _without_policy(subject: Subject) -> Iterator[Made]:
    sealed = subject.seal("forged", without=frozenset({POLICY}))
    yield Made(sealed, "the policy")


def _without_reference(subject: Subject) -> Iterator[Made]:
    sealed = subject.seal("forged", without=frozenset({RECORD}))
    yield Made(sealed, "the record of the reference")


def _without_inputs(subject: Subject) -> Iterator[Made]:
    tops = ("inputs/", "external/")
    paths = frozenset(path for path in subject.roles if path.startswith(tops))
    if not paths:
        raise NotPossibleError("the bundle holds no input")
    reads = tuple(
        msgspec.structs.replace(read, member="") if read.member in paths else read
        for read in subject.reference.reads
    )
    record = msgspec.structs.replace(subject.reference, reads=reads)
    yield forged(subject, "the inputs", {RECORD: encode(record)}, without=paths)


def _without_scripts(subject: Subject) -> Iterator[Made]:
    paths = frozenset(path for path in subject.roles if path.startswith("project/"))
    if not paths:
        raise NotPossibleError("the bundle holds no project file")
    reads = tuple(
        msgspec.structs.replace(read, member="") if read.member in paths else read
        for read in subject.reference.reads
    )
    record = msgspec.structs.replace(subject.reference, reads=reads)
    yield forged(subject, "the project", {RECORD: encode(record)}, without=paths)


def _output_and_record_disagree(subject: Subject) -> Iterator[Made]:
    for output in subject.reference.outputs:
        if output.stored == "here":
            path = reference_member(output.member)
            sealed = subject.seal("forged", {path: subject.read(path) + b"\n"})
            yield Made(sealed, f"{path}, the record left as it is")
            return
    raise NotPossibleError("the reference holds no output of its own")


_NO_MEMORY = Memory(peak_rss_bytes=_UNKNOWN, peak_device_bytes=_UNKNOWN)
_ID = frozenset({"expect-id"})

SEAL_MUTATIONS = (
    Mutation("forge-script", "a script edited, sealed anew", _ID, _edit("project/")),
    Mutation("forge-input", "an input edited, sealed anew", _ID, _edit("inputs/")),
    Mutation(
        "forge-output", "an output edited, sealed anew", _ID, _edit("runs/1/outputs/")
    ),
    Mutation(
        "forge-output-only",
        "an output edited, sealed anew, its record left as it was",
        frozenset({"run-members"}),
        _output_and_record_disagree,
    ),
    Mutation("no-lockfile", "no lockfile", frozenset({"has-lockfile"}), _without_lock),
    Mutation(
        "no-script",
        "no script",
        frozenset({"has-script", "run-members"}),
        _without_scripts,
    ),
    Mutation(
        "no-input",
        "no input sample",
        frozenset({"has-input-sample", "run-members"}),
        _without_inputs,
    ),
    Mutation(
        "no-seeds",
        "neither seeds nor generator states",
        frozenset({"has-seeds", "same-seed"}),
        _restated(_replaced(randomness=Randomness())),
    ),
    Mutation(
        "no-versions",
        "an unknown Python version",
        frozenset({"has-versions"}),
        _restated(_unknown_version),
    ),
    Mutation(
        "no-memory-log",
        "no memory log",
        frozenset({"has-memory-log"}),
        _restated(_replaced(memory=_NO_MEMORY), without=("memory.json",)),
    ),
    Mutation(
        "no-linux-reference",
        "a reference of another platform",
        frozenset({"has-linux-reference"}),
        _restated(_replaced(platform="darwin")),
    ),
    Mutation("no-policy", "no policy", frozenset({"sealed-document"}), _without_policy),
    Mutation(
        "no-reference",
        "no reference",
        frozenset({"sealed-document", "run-members"}),
        _without_reference,
    ),
    Mutation(
        "reference-unfinished",
        "a reference that did not come to its end",
        frozenset({"reference-ending"}),
        _restated(_unfinished),
    ),
)
