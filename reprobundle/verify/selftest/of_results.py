"""Mutations of a replay: other results."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from reprobundle.format.attach import write_replay_file
from reprobundle.format.writer import Source
from reprobundle.verify.selftest import altered_values as values
from reprobundle.verify.selftest.altered_pictures import with_other_pixel
from reprobundle.verify.selftest.altered_replay import (
    OTHER_DIGEST,
    Redraft,
    ids,
    replay_with,
)
from reprobundle.verify.selftest.mutation import Made, Mutation, NotPossibleError
from reprobundle.verify.selftest.subject import Draft, Subject, reference_member


def with_array(change: values.Change) -> Redraft:
    """Return what gives a replay other values in its first float array."""

    def redraft(subject: Subject, draft: Draft) -> Draft:
        output = values.float_output(subject.reference, subject.sealed.policy)
        data = subject.read(reference_member(values.arrays_member(output)))
        altered = values.with_array_changed(output, data, change)
        if not output.arrays_member:
            return draft.with_output(subject.folder, output, altered)
        # Nobody opens the checkpoint itself, and other values make other bytes.
        whole = subject.read(reference_member(output.member)) + b"\0"
        return draft.with_output(subject.folder, output, whole, altered)

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


def _withheld(subject: Subject, draft: Draft) -> Draft:
    """Have the first output that its author keeps come out with another digest."""
    for output in draft.record.outputs:
        if output.stored == "withheld":
            other = msgspec.structs.replace(output, blake3=OTHER_DIGEST)
            names = (other if one is output else one for one in draft.record.outputs)
            return draft.saying(outputs=tuple(names))
    raise NotPossibleError("no output is kept by its author")


def _content_edited(subject: Subject) -> Iterator[Made]:
    """Keep the record, alter what lies beside it."""
    draft = subject.echo().main
    record, sources = draft.tree()
    edited = [Source(one.path, one.role, b"edited\n") for one in sources]
    if not edited:
        raise NotPossibleError("nothing lies beside the record")
    target = subject.folder / "other.rpr.zip"
    write_replay_file(target, [(record, edited)], durable=False)
    yield Made(subject.path, "what lies beside the record", target)


_STRUCTURE = ids("output-differs", "output-not-compared", "values-not-compared")

RESULT_MUTATIONS = (
    Mutation(
        "other-value",
        "one array element outside the tolerance",
        _STRUCTURE,
        replay_with(with_array(values.larger)),
    ),
    Mutation(
        "other-number", "one number of a document", _STRUCTURE, replay_with(_document)
    ),
    Mutation(
        "nan-in-replay",
        "NaN in the replay only",
        _STRUCTURE,
        replay_with(with_array(values.with_nan)),
    ),
    Mutation(
        "other-shape",
        "the same values with one axis more",
        _STRUCTURE,
        replay_with(with_array(values.with_axis)),
    ),
    Mutation(
        "other-dtype",
        "the same values in another dtype",
        _STRUCTURE,
        replay_with(with_array(values.wider)),
    ),
    Mutation(
        "other-pixel",
        "one pixel of an image",
        _STRUCTURE,
        replay_with(with_other_pixel),
    ),
    Mutation(
        "zeros",
        "zeros instead of values",
        _STRUCTURE | {"output-all-zero"},
        replay_with(with_array(values.zeros)),
    ),
    Mutation(
        "output-missing",
        "one output missing",
        ids("output-missing"),
        replay_with(_one_missing),
    ),
    Mutation(
        "outputs-missing",
        "all outputs missing",
        ids("output-missing"),
        replay_with(_all_missing),
    ),
    Mutation(
        "outputs-empty", "all outputs empty files", _STRUCTURE, replay_with(_all_empty)
    ),
    Mutation(
        "output-unexpected",
        "one output more",
        ids("output-unexpected"),
        replay_with(_one_more),
    ),
    Mutation(
        "withheld-differs",
        "an output that its author keeps, with another digest",
        ids("output-not-compared", "values-not-compared"),
        replay_with(_withheld),
    ),
    Mutation(
        "content-edited",
        "content beside the record edited",
        ids("replay-members", "member-digest"),
        _content_edited,
    ),
)
