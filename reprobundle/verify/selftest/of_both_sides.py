"""Mutations of reference and replay alike: agreement that shows nothing.

The bundle is sealed anew with another reference, and the replay repeats it faithfully.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from reprobundle.format.canonical import decode, encode
from reprobundle.format.digests import digest_bytes
from reprobundle.format.manifest import STAND_INS
from reprobundle.format.record import (
    ArraySummary,
    ContentMember,
    MemorySeries,
    Output,
    Record,
)
from reprobundle.verify.rules import rule_for
from reprobundle.verify.selftest import altered_values as values
from reprobundle.verify.selftest.altered_replay import OTHER_DIGEST, ids
from reprobundle.verify.selftest.forged import RECORD, forged
from reprobundle.verify.selftest.mutation import Made, Mutation, NotPossibleError
from reprobundle.verify.selftest.subject import Subject, described, reference_member


def _values(
    change: values.Change, *, every: bool = False
) -> Callable[[Subject], Iterator[Made]]:
    """Return what changes a float array on both sides, or every array of an output."""
    changed = values.with_every_array_changed if every else values.with_array_changed

    def make(subject: Subject) -> Iterator[Made]:
        output = values.float_output(subject.reference, subject.sealed.policy)
        yield both_sides(subject, output, change, changed)

    return make


def both_sides(
    subject: Subject,
    output: Output,
    change: values.Change,
    changed: values.Changed = values.with_array_changed,
    *,
    stated: tuple[ArraySummary, ...] | None = None,
) -> Made:
    """Return the bundle with other arrays in one output, faithfully replayed.

    Args:
        subject: The bundle under test.
        output: The output of its reference.
        change: What is done to an array.
        changed: Which of the arrays it is done to.
        stated: What the records state about the arrays; the truth if None.
    """
    member = values.arrays_member(output)
    path = reference_member(member)
    data = changed(output, subject.read(path), change)
    new = described(subject.folder, output, data, member)
    arrays = new.arrays if stated is None else stated
    # A checkpoint itself stays as it is: nobody opens it.
    new = output if output.arrays_member else new
    new = msgspec.structs.replace(new, arrays=arrays)
    return _both(subject, output.name, new, member, data)


def _text(data: bytes, *formats: str) -> Callable[[Subject], Iterator[Made]]:
    """Return what puts a text in the place of the first output of these formats."""

    def make(subject: Subject) -> Iterator[Made]:
        for output in subject.reference.outputs:
            rule = rule_for(subject.sealed.policy, output.name)
            is_compared = rule is None or (rule.compare and not rule.ignore)
            held = output.stored == "here" and output.format in formats
            if held and is_compared:
                new = described(subject.folder, output, data, output.member)
                yield _both(subject, output.name, new, output.member, data)
                return
        raise NotPossibleError(f"no output whose content is held is {formats[0]}")

    return make


def _empty(subject: Subject) -> Iterator[Made]:
    output = _compared(subject)
    new = described(subject.folder, output, b"", output.member)
    yield _both(subject, output.name, new, output.member, b"")


def _both(subject: Subject, name: str, new: Output, member: str, data: bytes) -> Made:
    """Return the bundle with another content of one output, faithfully replayed."""
    record = msgspec.structs.replace(
        subject.reference,
        outputs=tuple(
            new if one.name == name else one for one in subject.reference.outputs
        ),
        members=_members(subject.reference, member, data),
    )
    path = reference_member(member)
    changed = {path: data, RECORD: encode(record)}
    return forged(
        subject, f"{name} on both sides", changed, without=_sharing(subject, path)
    )


def _members(record: Record, name: str, data: bytes) -> tuple[ContentMember, ...]:
    """Return the members of a record, one of which holds `data` now."""
    new = ContentMember(name=name, size_bytes=len(data), blake3=digest_bytes(data))
    return tuple(new if one.name == name else one for one in record.members)


def _compared(subject: Subject) -> Output:
    """Return the first compared output whose content is a member of its own.

    Raises:
        NotPossibleError: There is none.
    """
    for output in subject.reference.outputs:
        rule = rule_for(subject.sealed.policy, output.name)
        if output.stored == "here" and (rule is None or rule.compare):
            return output
    raise NotPossibleError("the reference holds no compared output of its own")


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


def _nothing(subject: Subject) -> Iterator[Made]:
    outputs = subject.reference.outputs
    if not outputs:
        raise NotPossibleError("the reference has no output")
    if subject.reference.outcome.expected_failure:
        raise NotPossibleError("failing is the result, not an output")
    gone = {name for one in outputs for name in (one.member, one.arrays_member) if name}
    record = msgspec.structs.replace(
        subject.reference,
        outputs=(),
        members=tuple(one for one in subject.reference.members if one.name not in gone),
    )
    others = (number for number in subject.sealed.runs if number != 1)
    tops = tuple(f"runs/{number}/" for number in others)
    paths = (
        frozenset(map(reference_member, gone))
        | frozenset(one for one in subject.roles if one.startswith(tops))
        # A sample in the place of an output stands for nothing then.
        | frozenset(f"{STAND_INS}{one.name}" for one in outputs)
    )
    yield forged(
        subject,
        "every output",
        {RECORD: encode(record)},
        without=paths & subject.roles.keys(),
    )


# --- what the sealed records state


def _failing_turned_on(subject: Subject) -> Iterator[Made]:
    if subject.reference.outcome.expected_failure:
        raise NotPossibleError("failing is the result")
    outcome = msgspec.structs.replace(subject.reference.outcome, expected_failure=True)
    record = msgspec.structs.replace(subject.reference, outcome=outcome)
    yield forged(subject, "a success called a failure", {RECORD: encode(record)})


def _copied_repeat(subject: Subject) -> Iterator[Made]:
    for number, record in subject.sealed.runs.items():
        if record.role == "repeat":
            copied = msgspec.structs.replace(
                record, elapsed_ns=subject.reference.elapsed_ns
            )
            path = f"runs/{number}/record.json"
            yield forged(subject, "the repeat pass", {path: encode(copied)})
            return
    raise NotPossibleError("no repeat pass was made")


def _short_series(subject: Subject) -> Iterator[Made]:
    name = subject.reference.memory.series
    if not name or not subject.reference.memory.samples:
        raise NotPossibleError("the reference has no memory series")
    path = reference_member(name)
    series = decode(subject.read(path), MemorySeries, where=path, rule="R-7.2")
    data = encode(msgspec.structs.replace(series, samples=series.samples[:-1]))
    record = msgspec.structs.replace(
        subject.reference, members=_members(subject.reference, name, data)
    )
    yield forged(subject, "its last sample", {path: data, RECORD: encode(record)})


def _other_places(subject: Subject) -> Iterator[Made]:
    outputs = tuple(
        msgspec.structs.replace(one, sample_key=OTHER_DIGEST)
        if one.stored == "sample"
        else one
        for one in subject.reference.outputs
    )
    if outputs == subject.reference.outputs:
        raise NotPossibleError("no output is kept as a sample")
    record = msgspec.structs.replace(subject.reference, outputs=outputs)
    yield forged(subject, "places of another policy", {RECORD: encode(record)})


BOTH_SIDES_MUTATIONS = (
    Mutation(
        "nan-on-both-sides",
        "NaN in the same place of reference and replay",
        ids("nan-in-output"),
        _values(values.with_nan),
    ),
    Mutation(
        "zeros-on-both-sides",
        "zeros in the place of every value of reference and replay",
        ids("output-all-zero"),
        _values(values.zeros, every=True),
    ),
    Mutation(
        "empty-on-both-sides",
        "an empty file as output of reference and replay",
        ids("output-empty", "output-not-compared"),
        _empty,
    ),
    Mutation(
        "nan-in-text-on-both-sides",
        "NaN for a number of a JSON document, in the same bytes of both",
        ids("nan-in-output"),
        _text(b'{"loss": NaN, "steps": 3}', "json"),
    ),
    Mutation(
        "zeros-in-text-on-both-sides",
        "zeros for every number of a JSON document, in the same bytes of both",
        ids("output-all-zero"),
        _text(b'{"loss": 0.0, "score": -0.0}', "json"),
    ),
    Mutation(
        "nothing-in-text-on-both-sides",
        "a JSON document that holds nothing, in the same bytes of both",
        ids("output-empty"),
        _text(b"{}", "json"),
    ),
    Mutation(
        "nothing-on-both-sides",
        "no output in reference and replay",
        ids("has-output-summary", "nothing-compared"),
        _nothing,
    ),
    Mutation(
        "failure-turned-on",
        "a reference that succeeded, said to fail as expected",
        ids("reference-ending"),
        _failing_turned_on,
    ),
    Mutation(
        "repeat-copied",
        "a repeat pass that is a copy of the reference",
        ids("copied-run"),
        _copied_repeat,
    ),
    Mutation(
        "series-cut-short",
        "a memory series without its last sample",
        ids("run-members"),
        _short_series,
    ),
    Mutation(
        "sample-places",
        "a sample at the places of another policy",
        ids("run-members"),
        _other_places,
    ),
)
