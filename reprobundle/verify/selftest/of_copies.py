"""Mutations of a replay: a record that is not the run it claims to be."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import msgspec

from reprobundle.format.canonical import decode, encode
from reprobundle.format.record import STAND_IN, Devices, Fact, MemorySeries, Outcome
from reprobundle.verify.claims import SMOKE
from reprobundle.verify.selftest import altered_values as values
from reprobundle.verify.selftest.altered_replay import (
    OTHER_DIGEST,
    ids,
    judged_with,
    replay_with,
    saying,
)
from reprobundle.verify.selftest.mutation import Made, Mutation, NotPossibleError
from reprobundle.verify.selftest.of_results import with_array
from reprobundle.verify.selftest.subject import (
    Draft,
    Echo,
    Subject,
    reference_member,
)

MAIN = "main"
_ANOTHER_OCCASION = "0ddba110ddba1100"


def _copy_of_reference(subject: Subject, draft: Draft) -> Draft:
    return draft.saying(elapsed_ns=subject.reference.elapsed_ns)


def _copy_of_replay(subject: Subject) -> Iterator[Made]:
    """Give somebody's replay as that of a second person, at another time."""
    echo = subject.echo()
    again = [
        draft.saying(occasion=_ANOTHER_OCCASION, started="2026-01-01T00:00:00Z")
        for draft in echo.drafts
    ]
    both = Echo([*echo.drafts, *again], echo.bundle)
    yield judged_with(subject, both, "the same replay twice")


def _traced_only(subject: Subject, draft: Draft) -> Draft:
    return draft.saying(pass_name="evidence", phases=())


def _against_repeat(subject: Subject, draft: Draft) -> Draft:
    for number, record in subject.sealed.runs.items():
        if record.role == "repeat":
            return draft.saying(runs=number, pass_name="repeat")
    raise NotPossibleError("no repeat pass was made")


def _one_claim_only(subject: Subject) -> Iterator[Made]:
    echo = subject.echo()
    kept = [one for one in echo.drafts if one.record.claim in (MAIN, SMOKE, STAND_IN)]
    if len(echo.drafts) == len(kept):
        raise NotPossibleError("the bundle has one claim only")
    yield judged_with(subject, Echo(kept, echo.bundle), "one claim of many")


def _said_to_be_expected(subject: Subject, draft: Draft) -> Draft:
    if subject.reference.outcome.expected_failure:
        raise NotPossibleError("failing is the result")
    return draft.saying(outcome=Outcome(exit_status=1, expected_failure=True))


def _without_environment(subject: Subject, draft: Draft) -> Draft:
    nudged = with_array(values.next_value)(subject, draft)
    return nudged.saying(environment={})


def _as_cuda(subject: Subject, draft: Draft) -> Draft:
    if "cuda" in subject.reference.devices.observed:
        raise NotPossibleError("the reference ran on CUDA")
    none = Fact(unknown="put in by the selftest: this build has none")
    facts = {"torch.cuda.built": none, "torch.hip.built": none}
    devices = Devices(
        requested="cuda", observed=("cpu", "cuda"), fallback="none-possible"
    )
    return draft.saying(
        devices=devices, environment={**draft.record.environment, **facts}
    )


def _without_steps(subject: Subject, draft: Draft) -> Draft:
    kept = (one for one in draft.record.phases if one.name != "optimizer")
    return draft.saying(phases=tuple(kept))


def _twice(subject: Subject, draft: Draft) -> Draft:
    return draft.saying(outputs=(*draft.record.outputs, *draft.record.outputs[:1]))


def _by_digest_only(subject: Subject, draft: Draft) -> Draft:
    outputs = tuple(
        msgspec.structs.replace(
            one, stored="none", member="", arrays_member="", blake3=OTHER_DIGEST
        )
        for one in draft.record.outputs
    )
    return draft.saying(outputs=outputs)


def _sealed_elsewhere(subject: Subject, draft: Draft) -> Draft:
    outputs = tuple(
        msgspec.structs.replace(
            one, stored="sealed", member="policy.json", arrays_member=""
        )
        for one in draft.record.outputs
    )
    return draft.saying(outputs=outputs)


def _short_series(subject: Subject, draft: Draft) -> Draft:
    name = draft.record.memory.series
    if name not in draft.files or not draft.record.memory.samples:
        raise NotPossibleError("the reference has no memory series")
    series = decode(draft.files[name], MemorySeries, where=name, rule="R-7.2")
    short = msgspec.structs.replace(series, samples=series.samples[:-1])
    return dataclasses.replace(draft, files={**draft.files, name: encode(short)})


_LOG = "stdout.txt"


def _shared_log(sealed: str) -> Callable[[Subject, Draft], Draft]:
    """Return what says that the log of a replay is a sealed member."""

    def change(subject: Subject, draft: Draft) -> Draft:
        if _LOG not in draft.files:
            raise NotPossibleError("the reference keeps no standard output")
        return draft.sharing(_LOG, sealed)

    return change


def _shared_series(subject: Subject, draft: Draft) -> Draft:
    name = draft.record.memory.series
    if name not in draft.files:
        raise NotPossibleError("the reference has no memory series")
    return draft.sharing(name, reference_member(name))


def _shared_and_beside(subject: Subject, draft: Draft) -> Draft:
    shared = _shared_log(reference_member(_LOG))(subject, draft)
    return dataclasses.replace(shared, files=draft.files)


COPY_MUTATIONS = (
    Mutation(
        "reference-as-replay",
        "the reference's own record as somebody's replay",
        ids("copied-replay"),
        replay_with(_copy_of_reference),
    ),
    Mutation(
        "replay-as-another",
        "a replay given once more as another person's",
        ids("copied-replay"),
        _copy_of_replay,
    ),
    Mutation(
        "in-the-future",
        "a replay that starts in the year 9000",
        ids("replay-time"),
        replay_with(saying(started="9000-01-01T00:00:00Z")),
    ),
    Mutation(
        "before-the-reference",
        "a replay that started before its reference",
        ids("replay-time"),
        replay_with(saying(started="2001-01-01T00:00:00Z")),
    ),
    Mutation(
        "at-no-time",
        "a replay that started at no time",
        ids("replay-time"),
        replay_with(saying(started="recently")),
    ),
    Mutation(
        "traced-only",
        "a traced pass alone, which counts no steps",
        ids("claim-replayed"),
        replay_with(_traced_only),
    ),
    Mutation(
        "reference-chosen",
        "a replay that picks the repeat pass as its reference",
        ids("claim-replayed", "same-run"),
        replay_with(_against_repeat),
    ),
    Mutation(
        "claims-dropped",
        "replays of one claim of several",
        ids("claim-replayed"),
        _one_claim_only,
    ),
    Mutation(
        "failure-said-expected",
        "a failed replay that calls its failure expected",
        ids("exit-status"),
        replay_with(_said_to_be_expected),
    ),
    Mutation(
        "environment-hidden",
        "another value within the tolerance, and no environment",
        ids("environment-drift"),
        replay_with(_without_environment),
    ),
    Mutation(
        "cpu-as-cuda",
        "a run that says cuda on a build without it",
        ids("standin-device"),
        replay_with(_as_cuda),
    ),
    Mutation(
        "no-steps",
        "no optimizer step at all",
        ids("same-steps"),
        replay_with(_without_steps),
    ),
    Mutation(
        "output-twice",
        "an output described twice",
        ids("replay-members"),
        replay_with(_twice),
    ),
    Mutation(
        "by-digest-only",
        "outputs of other digests, without their content",
        # Of plain bytes another digest is enough to know.
        ids("output-not-compared", "values-not-compared", "output-differs"),
        replay_with(_by_digest_only),
    ),
    Mutation(
        "content-elsewhere",
        "outputs whose content is said to be another member",
        ids("replay-members"),
        replay_with(_sealed_elsewhere),
    ),
    Mutation(
        "shared-with-nothing",
        "a log that is said to be a sealed member which is not there",
        ids("replay-members"),
        replay_with(_shared_log("runs/9999/stdout.txt")),
    ),
    Mutation(
        "shared-with-another",
        "a log that is said to be a sealed member of other content",
        ids("replay-members"),
        replay_with(_shared_log("policy.json")),
    ),
    Mutation(
        "shared-and-beside",
        "a log that is said to be sealed and lies beside the record as well",
        ids("replay-members"),
        replay_with(_shared_and_beside),
    ),
    Mutation(
        "series-of-the-reference",
        "a replay whose memory series is said to be that of the reference",
        ids("replay-members"),
        replay_with(_shared_series),
    ),
    Mutation(
        "replay-series-cut-short",
        "a memory series of the replay without its last sample",
        ids("replay-members"),
        replay_with(_short_series),
    ),
)
