"""Mutations of a replay that keeps samples: another value or row, or a row less."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from reprobundle.format.digests import digest_bytes
from reprobundle.format.record import Output, RowSample
from reprobundle.verify.rules import rule_for
from reprobundle.verify.selftest import altered_values as values
from reprobundle.verify.selftest.altered_replay import (
    OTHER_DIGEST,
    Redraft,
    ids,
    replay_with,
)
from reprobundle.verify.selftest.mutation import Mutation, NotPossibleError
from reprobundle.verify.selftest.subject import Draft, Subject, reference_member

_MEMBER = "samples/altered"

Retold = Callable[[RowSample], RowSample]


def _with_rows(change: Callable[[bytes], bytes], retold: Retold) -> Redraft:
    """Return what gives a replay another sample of rows, and tells so."""

    def redraft(subject: Subject, draft: Draft) -> Draft:
        output = _output_of_rows(subject)
        path = output.member
        if not path.startswith("runs/"):
            path = reference_member(path)
        sample = change(subject.read(path))
        known = output.row_sample
        assert known is not None  # noqa: S101 - by `_output_of_rows`
        blocks = (digest_bytes(sample), *known.blocks[1:])
        new = msgspec.structs.replace(
            output,
            member=_MEMBER,
            blake3=digest_bytes(sample),
            row_sample=retold(msgspec.structs.replace(known, blocks=blocks)),
        )
        outputs = tuple(
            new if one.name == output.name else one for one in draft.record.outputs
        )
        files = {**draft.files, _MEMBER: sample}
        return Draft(msgspec.structs.replace(draft.record, outputs=outputs), files)

    return redraft


def _output_of_rows(subject: Subject) -> Output:
    for output in subject.reference.outputs:
        rule = rule_for(subject.sealed.policy, output.name)
        is_compared = rule is None or rule.compare
        if output.row_sample is not None and output.row_sample.places and is_compared:
            return output
    raise NotPossibleError("no output is kept as a sample of its rows")


def _sampled_value(subject: Subject, draft: Draft) -> Draft:
    """Say that one sampled element came out otherwise, and all moments as they were."""
    for output in draft.record.outputs:
        if output.stored == "sample" and output.row_sample is None:
            name = f"samples/{output.name.replace(':', '/')}.safetensors"
            data = values.with_sample_changed(subject.read(output.member))
            new = msgspec.structs.replace(output, member=name, blake3=OTHER_DIGEST)
            outputs = (new if one is output else one for one in draft.record.outputs)
            altered = Draft(draft.record, {**draft.files, name: data})
            return altered.saying(outputs=tuple(outputs))
    raise NotPossibleError("no array is kept as a sample")


def _last_repeats_first(sample: bytes) -> bytes:
    lines = sample.splitlines(keepends=True)
    if len(lines) < 3 or lines[-1].rstrip() == lines[1].rstrip():
        raise NotPossibleError("the sampled rows are all alike")
    return b"".join([*lines[:-1], lines[1]])


def _without_last(sample: bytes) -> bytes:
    return b"".join(sample.splitlines(keepends=True)[:-1])


def _one_less(known: RowSample) -> RowSample:
    return msgspec.structs.replace(
        known, records=known.records - 1, places=known.places - 1
    )


SAMPLE_MUTATIONS = (
    Mutation(
        "sample-value",
        "one sampled element outside the tolerance",
        ids("output-differs", "output-not-compared"),
        replay_with(_sampled_value),
    ),
    Mutation(
        "sampled-row",
        "another row in the sample of a table or text",
        ids("output-differs", "output-not-compared"),
        replay_with(_with_rows(_last_repeats_first, lambda known: known)),
    ),
    Mutation(
        "sampled-row-less",
        "one row less in a table or text of which a sample is kept",
        ids("output-differs"),
        replay_with(_with_rows(_without_last, _one_less)),
    ),
)
