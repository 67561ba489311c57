"""Mutations of an attached Linux reference, for a bundle packed on another system.

The bundle is sealed anew as if its reference had been made on a Mac. A record that was
made on Linux and is marked would then be the Linux reference; each mutation is one that
says so and is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from reprobundle.format.canonical import encode
from reprobundle.format.reader import open_bundle
from reprobundle.format.record import Fact, Record
from reprobundle.verify.selftest.altered_replay import OTHER_DIGEST, ids
from reprobundle.verify.selftest.mutation import Made, Mutation, NotPossibleError
from reprobundle.verify.selftest.subject import Draft, Subject, reference_member

Change = Callable[[Record, Draft], Draft]


def _attached(change: Change) -> Callable[[Subject], Iterator[Made]]:
    """Return what judges a bundle from a Mac with a changed Linux reference."""

    def make(subject: Subject) -> Iterator[Made]:
        if subject.reference.platform != "linux":
            raise NotPossibleError("the reference was not made on Linux")
        on_mac = msgspec.structs.replace(subject.reference, platform="darwin")
        changed = {reference_member("record.json"): encode(on_mac)}
        path = subject.seal("mac", changed)
        with open_bundle(path) as bundle:
            echo = subject.echo().of(bundle.id)
        marked = echo.but(change(subject.reference, _marked(echo.main)))
        target = subject.folder / "reference.rpr.zip"
        yield Made(path, "the record marked as reference", marked.write(target))

    return make


def _marked(draft: Draft) -> Draft:
    """Return what would be the Linux reference: another run, made on Linux, marked."""
    system = Fact(value="Linux", source="os.uname()")
    return draft.saying(
        reference_by="the selftest",
        environment={**draft.record.environment, "os.system": system},
    )


def _copied(reference: Record, draft: Draft) -> Draft:
    return draft.saying(elapsed_ns=reference.elapsed_ns)


def _from_mac(_: Record, draft: Draft) -> Draft:
    system = Fact(value="Darwin", source="os.uname()")
    facts = {**draft.record.environment, "os.system": system}
    return draft.saying(environment=facts)


def _unfinished(_: Record, draft: Draft) -> Draft:
    outcome = msgspec.structs.replace(draft.record.outcome, completed=False)
    return draft.saying(outcome=outcome)


_MISSING = ids("has-linux-reference")

REFERENCE_MUTATIONS = (
    Mutation(
        "reference-copied",
        "a copy of the origin, marked as the Linux reference",
        _MISSING,
        _attached(_copied),
    ),
    Mutation(
        "reference-relabelled",
        "a run on a Mac that says it is the Linux reference",
        _MISSING,
        _attached(_from_mac),
    ),
    Mutation(
        "reference-unmarked",
        "a run on Linux that nobody marked as the reference",
        _MISSING,
        _attached(lambda _, draft: draft.saying(reference_by="")),
    ),
    Mutation(
        "reference-of-other-claim",
        "a Linux reference of another claim",
        _MISSING,
        _attached(lambda _, draft: draft.saying(claim="another")),
    ),
    Mutation(
        "reference-of-other-bundle",
        "a Linux reference of another bundle",
        ids("replay-bundle"),
        _attached(lambda _, draft: draft.saying(bundle=OTHER_DIGEST)),
    ),
    Mutation(
        "reference-interrupted",
        "a Linux reference that did not come to its end",
        _MISSING,
        _attached(_unfinished),
    ),
)
