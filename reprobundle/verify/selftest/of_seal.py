"""Mutations under a valid seal: a forger who knows the format and hashes all anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from reprobundle.format.canonical import encode
from reprobundle.format.digests import digest_bytes
from reprobundle.format.policy import Tolerance
from reprobundle.format.record import ContentMember, Fact, Memory, Randomness, Record
from reprobundle.verify.selftest import altered_values as values
from reprobundle.verify.selftest.mutation import Made, Mutation, NotPossibleError
from reprobundle.verify.selftest.subject import Subject, described, reference_member

RECORD = reference_member("record.json")
POLICY = "policy.json"
_UNKNOWN = Fact(unknown="taken out")


def _forged(
    subject: Subject,
    what: str,
    changed: Mapping[str, bytes] | None = None,
    *,
    without: frozenset[str] = frozenset(),
) -> Made:
    """Return a bundle sealed anew, with faithful replays of what it says now."""
    forged = subject.seal("forged", changed, without=without)
    own = Subject(forged, subject.folder / "own")
    return Made(forged, what, own.echo().write(subject.folder / "own.rpr.zip"))


def _edit(top: str, ending: str = "") -> Callable[[Subject], Iterator[Made]]:
    """Return what edits the first file below `top` and seals the bundle anew."""

    def make(subject: Subject) -> Iterator[Made]:
        for path in subject.roles:
            if path.startswith(top) and path.endswith(ending):
                break
        else:
            raise NotPossibleError(f"the bundle holds no file {top}…{ending}")
        forged = subject.seal("forged", {path: subject.read(path) + b"\n"})
        yield Made(forged, f"{path} edited", expect_id=subject.id)

    return make


# --- the policy


def _loosened(subject: Subject, tolerance: Tolerance) -> dict[str, bytes]:
    policy = subject.sealed.policy
    if not policy.tolerances:
        raise NotPossibleError("the policy holds no tolerance")
    rows = tuple(
        msgspec.structs.replace(row, tolerance=tolerance) for row in policy.tolerances
    )
    reason = {"author": "a forger", "reason": "so that it passes"}
    changed = msgspec.structs.replace(policy, tolerances=rows, **reason)
    return {POLICY: encode(changed)}


def _loosened_later(subject: Subject) -> Iterator[Made]:
    loose = _loosened(subject, Tolerance(rtol=0.5, atol=1.0, share=0.5))
    forged = subject.seal("forged", loose)
    yield Made(forged, "with the id from elsewhere", expect_id=subject.id)
    replays = subject.echo().write(subject.folder / "true.rpr.zip")
    yield Made(forged, "with replays of the true bundle", replays)


def _vacuous(subject: Subject) -> Iterator[Made]:
    loose = _loosened(subject, Tolerance(rtol=1e9, atol=1e9))
    yield _forged(subject, "rtol and atol of 1e9", loose)


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
        yield _forged(subject, "the reference", {RECORD: encode(record)}, without=paths)

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
    yield _forged(subject, "the lockfiles", without=locks)


def _without_policy(subject: Subject) -> Iterator[Made]:
    forged = subject.seal("forged", without=frozenset({POLICY}))
    yield Made(forged, "the policy")


def _without_reference(subject: Subject) -> Iterator[Made]:
    forged = subject.seal("forged", without=frozenset({RECORD}))
    yield Made(forged, "the record of the reference")


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
    yield _forged(subject, "the inputs", {RECORD: encode(record)}, without=paths)


def _without_scripts(subject: Subject) -> Iterator[Made]:
    paths = frozenset(path for path in subject.roles if path.startswith("project/"))
    if not paths:
        raise NotPossibleError("the bundle holds no project file")
    reads = tuple(
        msgspec.structs.replace(read, member="") if read.member in paths else read
        for read in subject.reference.reads
    )
    record = msgspec.structs.replace(subject.reference, reads=reads)
    yield _forged(subject, "the project", {RECORD: encode(record)}, without=paths)


def _output_and_record_disagree(subject: Subject) -> Iterator[Made]:
    for output in subject.reference.outputs:
        if output.stored == "here":
            path = reference_member(output.member)
            forged = subject.seal("forged", {path: subject.read(path) + b"\n"})
            yield Made(forged, f"{path}, the record left as it is")
            return
    raise NotPossibleError("the reference holds no output of its own")


def _nan_on_both_sides(subject: Subject) -> Iterator[Made]:
    output = values.float_output(subject.reference, subject.sealed.policy)
    member = values.arrays_member(output)
    path = reference_member(member)
    data = values.with_array_changed(output, subject.read(path), values.with_nan)
    new = described(subject.folder, output, data, member)
    if output.arrays_member:
        # The checkpoint itself stays as it is: nobody opens it.
        new = msgspec.structs.replace(output, arrays=new.arrays)
    record = msgspec.structs.replace(
        subject.reference,
        outputs=tuple(
            new if one.name == output.name else one for one in subject.reference.outputs
        ),
        members=tuple(
            ContentMember(
                name=one.name, size_bytes=len(data), blake3=digest_bytes(data)
            )
            if one.name == member
            else one
            for one in subject.reference.members
        ),
    )
    changed = {path: data, RECORD: encode(record)}
    what = f"{output.name} with NaN in reference and replay"
    yield _forged(subject, what, changed, without=_sharing(subject, path))


def _sharing(subject: Subject, path: str) -> frozenset[str]:
    """Return the members of the other runs that take their content from `path`."""
    tops = tuple(
        f"runs/{number}/"
        for number, record in subject.sealed.runs.items()
        if any(
            path in (output.member, output.arrays_member) for output in record.outputs
        )
    )
    return frozenset(one for one in subject.roles if one.startswith(tops))


_NO_MEMORY = Memory(peak_rss_bytes=_UNKNOWN, peak_device_bytes=_UNKNOWN)
_ID = frozenset({"expect-id"})
_REPLAYED = frozenset({"replay-bundle", "expect-id"})

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
    Mutation(
        "loosen-later",
        "tolerances loosened after the fact, sealed anew",
        _REPLAYED,
        _loosened_later,
    ),
    Mutation(
        "vacuous-tolerance",
        "tolerances that any value meets",
        # The places of samples were derived from the policy that was there before.
        frozenset({"vacuous-tolerance", "run-members"}),
        _vacuous,
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
    Mutation(
        "nan-on-both-sides",
        "NaN in the same place of reference and replay",
        frozenset({"nan-in-output"}),
        _nan_on_both_sides,
    ),
)
