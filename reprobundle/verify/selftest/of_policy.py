"""Mutations of the policy: loosened after the fact, or such that it cannot say no.

Sealed anew, every digest is right again. What gives a later policy away is that the
bundle has another id than the replays name; each field is altered once. A policy that
was empty from the start is found by what it leaves to compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from reprobundle.format.canonical import encode
from reprobundle.format.policy import (
    Band,
    Claim,
    DataRules,
    EndTest,
    Metric,
    OutputRule,
    Policy,
    RoleRule,
    Tolerance,
)
from reprobundle.verify.selftest import altered_values as values
from reprobundle.verify.selftest.altered_replay import ids
from reprobundle.verify.selftest.forged import POLICY, forged
from reprobundle.verify.selftest.mutation import Made, Mutation, NotPossibleError
from reprobundle.verify.selftest.of_results import with_array
from reprobundle.verify.selftest.subject import Subject

Loosen = Callable[[Policy], Policy]

_LOOSE = Tolerance(rtol=0.5, atol=1.0, share=0.4)


def _with(**changes: object) -> Loosen:
    return lambda policy: msgspec.structs.replace(policy, **changes)


def _rule(**changes: object) -> Loosen:
    """Return what puts a rule for every output in front of all others."""

    def loosen(policy: Policy) -> Policy:
        said = {"match": "*", "reason": "so that it passes", **changes}
        rule = msgspec.convert(said, type=OutputRule)
        return msgspec.structs.replace(policy, outputs=(rule, *policy.outputs))

    return loosen


def _tolerances(**changes: object) -> Loosen:
    """Return what changes every row of the table of tolerances."""

    def loosen(policy: Policy) -> Policy:
        rows = tuple(
            msgspec.structs.replace(
                row, tolerance=msgspec.structs.replace(row.tolerance, **changes)
            )
            for row in policy.tolerances
        )
        return msgspec.structs.replace(policy, tolerances=rows)

    return loosen


def _claims(**changes: object) -> Loosen:
    """Return what changes every claim; without one, that of everything."""

    def loosen(policy: Policy) -> Policy:
        claims = policy.claims or (Claim(name="main"),)
        changed = tuple(msgspec.structs.replace(one, **changes) for one in claims)
        return msgspec.structs.replace(policy, claims=changed)

    return loosen


def _intent(**changes: object) -> Loosen:
    def loosen(policy: Policy) -> Policy:
        intent = msgspec.structs.replace(policy.intent, **changes)
        return msgspec.structs.replace(policy, intent=intent)

    return loosen


# Path of a field → a policy that admits more by it, or says something else.
LOOSENED: dict[str, Loosen] = {
    "profile": _with(profile="compat"),
    "author": _with(author="a forger"),
    "reason": _with(reason="so that it passes"),
    "tolerances": lambda policy: msgspec.structs.replace(
        policy,
        tolerances=tuple(
            msgspec.structs.replace(row, tolerance=_LOOSE) for row in policy.tolerances
        ),
    ),
    "tolerances.rtol": _tolerances(rtol=0.75),
    "tolerances.atol": _tolerances(atol=0.75),
    "tolerances.floor": _tolerances(floor=0.75),
    "tolerances.share": _tolerances(share=0.45),
    "ignore_keys": lambda policy: msgspec.structs.replace(
        policy, ignore_keys=(*policy.ignore_keys, "accuracy", "loss")
    ),
    "outputs.compare": _rule(compare=False),
    "outputs.tolerance": _rule(tolerance={"rtol": 0.5, "atol": 1.0}),
    "outputs.dtypes": _rule(dtypes={"float32": {"rtol": 0.5, "atol": 1.0}}),
    "outputs.ignore": _rule(ignore=["accuracy", "loss"]),
    "outputs.keep": _rule(keep=["time"], rows=1),
    "outputs.rows": _rule(rows=1),
    "outputs.ties": _rule(ties="values"),
    "outputs.signs": _rule(signs="columns"),
    "metrics": _with(metrics=(Metric(name="forged", pattern="([0-9]+)"),)),
    "roles": _with(roles=(RoleRule(match="*", role="log"),)),
    "claims": lambda policy: msgspec.structs.replace(
        policy, claims=() if policy.claims else (Claim(name="main", statement="?"),)
    ),
    "claims.outputs": _claims(outputs=("nothing of the kind",)),
    "claims.bands": _claims(bands=(Band(metric="forged#x", least=-1e9, most=1e9),)),
    "claims.ends": _claims(ends=(EndTest(metric="forged#x", alpha=1e-9),)),
    "claims.command": _claims(command=("true",)),
    "intent.accepting_platforms": lambda policy: _intent(
        accepting_platforms=() if policy.intent.accepting_platforms else ("linux-cpu",)
    )(policy),
    "intent.fallback": _intent(fallback="allowed"),
    "data": _with(data=DataRules(data_class="public", reason="so that it travels")),
}


def _after_the_fact(loosen: Loosen) -> Callable[[Subject], Iterator[Made]]:
    """Return what judges true replays by another policy."""

    def make(subject: Subject) -> Iterator[Made]:
        policy = loosen(subject.sealed.policy)
        if policy == subject.sealed.policy:
            raise NotPossibleError("the policy admits that already")
        sealed = subject.seal("forged", {POLICY: encode(policy)})
        replays = subject.echo().write(subject.folder / "true.rpr.zip")
        yield Made(sealed, "with replays of the true bundle", replays)

    return make


def _with_another_id(loosen: Loosen) -> Callable[[Subject], Iterator[Made]]:
    """Return what looks at another policy with the id known from elsewhere."""

    def make(subject: Subject) -> Iterator[Made]:
        policy = loosen(subject.sealed.policy)
        sealed = subject.seal("forged", {POLICY: encode(policy)})
        yield Made(sealed, "with the id from elsewhere", expect_id=subject.id)

    return make


def _from_the_start(
    loosen: Loosen, *, about: str = ""
) -> Callable[[Subject], Iterator[Made]]:
    """Return a bundle that was packed with this policy, faithfully replayed.

    Args:
        loosen: Makes the policy.
        about: ``outputs`` if it says something only where the reference has some.
    """

    def make(subject: Subject) -> Iterator[Made]:
        if about == "outputs" and not subject.reference.outputs:
            raise NotPossibleError("the reference has no output")
        if about == "outputs" and subject.reference.outcome.expected_failure:
            raise NotPossibleError("failing is the result, not an output")
        if any(output.stored == "sample" for output in subject.reference.outputs):
            # The places of a sample follow from the policy: another one has others.
            raise NotPossibleError("the bundle holds samples at places of its policy")
        policy = loosen(subject.sealed.policy)
        signed = msgspec.structs.replace(policy, author="?", reason="so that it passes")
        yield forged(subject, "the policy", {POLICY: encode(signed)})

    return make


def _further_claim(policy: Policy) -> Policy:
    further = Claim(name="put-in-by-the-selftest", statement="It works elsewhere")
    return msgspec.structs.replace(policy, claims=(*policy.claims, further))


def _share_used(subject: Subject) -> Iterator[Made]:
    """Let four elements in ten be anything, and have them be anything."""
    output = values.float_output(subject.reference, subject.sealed.policy)
    if any(one.stored == "sample" for one in subject.reference.outputs):
        raise NotPossibleError("the bundle holds samples at places of its policy")
    rule = OutputRule(
        match=output.name,
        tolerance=Tolerance(rtol=1e-3, atol=0.0, share=0.49),
        reason="so that it passes",
    )
    policy = msgspec.structs.replace(
        subject.sealed.policy,
        outputs=(rule, *subject.sealed.policy.outputs),
        author="?",
        reason="so that it passes",
    )
    sealed = subject.seal("forged", {POLICY: encode(policy)})
    own = Subject(sealed, subject.folder / "own")
    echo = own.echo()
    other = echo.but(with_array(values.four_in_ten_wrong)(own, echo.main))
    yield Made(sealed, output.name, other.write(subject.folder / "own.rpr.zip"))


# A sample's places follow from the policy, so another one is a contradiction at once.
_LATER = ids("replay-bundle", "run-members")
_VACUOUS = ids("vacuous-tolerance")
_NOTHING = ids("nothing-compared")

POLICY_MUTATIONS = (
    *(
        Mutation(
            f"loosen-{field.replace('.', '-').replace('_', '-')}",
            f"the policy's {field} altered after the fact",
            _LATER,
            _after_the_fact(loosen),
        )
        for field, loosen in LOOSENED.items()
    ),
    Mutation(
        "loosen-and-keep-the-name",
        "tolerances loosened after the fact, given under the true bundle's id",
        ids("expect-id", "run-members"),
        _with_another_id(LOOSENED["tolerances"]),
    ),
    Mutation(
        "vacuous-tolerance",
        "tolerances that any value meets",
        _VACUOUS,
        _from_the_start(_tolerances(rtol=1e9, atol=1e9)),
    ),
    Mutation(
        "vacuous-share",
        "a share that any number of wrong elements meets",
        _VACUOUS,
        _from_the_start(_tolerances(share=1.0)),
    ),
    Mutation(
        "vacuous-floor",
        "a floor that makes a small tolerance a large one",
        _VACUOUS,
        _from_the_start(_tolerances(rtol=1e-3, floor=1e9)),
    ),
    Mutation(
        "vacuous-rule",
        "an output's own tolerance that any value meets",
        _VACUOUS,
        _from_the_start(_rule(tolerance={"rtol": 1e9, "atol": 0.0})),
    ),
    Mutation(
        "vacuous-dtype",
        "a dtype's own tolerance that any value meets",
        _VACUOUS,
        _from_the_start(_rule(dtypes={"float32": {"rtol": 1e9, "atol": 0.0}})),
    ),
    Mutation(
        "share-used",
        "four elements in ten that may be anything, and are",
        ids("large-error"),
        _share_used,
    ),
    Mutation(
        "claim-stated-only",
        "a claim that has no run, and nobody replayed",
        ids("claim-replayed"),
        _from_the_start(_further_claim),
    ),
    Mutation(
        "compare-nothing",
        "a rule that leaves out every output",
        _NOTHING,
        _from_the_start(_rule(compare=False), about="outputs"),
    ),
    Mutation(
        "claim-nothing",
        "a claim that no output belongs to",
        _NOTHING,
        _from_the_start(_claims(outputs=("nothing of the kind",)), about="outputs"),
    ),
    Mutation(
        "compare-structure",
        "the profile that compares no values",
        ids("values-not-compared"),
        _from_the_start(_with(profile="compat"), about="outputs"),
    ),
)
