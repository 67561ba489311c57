"""Mutations that pass a part of a bundle off as the whole."""

from __future__ import annotations

from collections.abc import Iterator

from reprobundle.format.parting import split_bundle
from reprobundle.format.reader import open_bundle
from reprobundle.verify.selftest.mutation import Made, Mutation
from reprobundle.verify.selftest.subject import Subject


def _one_of_each_role(subject: Subject) -> Iterator[Made]:
    """Take away one member of each role, the largest, and say so in part.json."""
    with open_bundle(subject.path) as bundle:
        largest = {}
        for member in sorted(bundle.members.values(), key=lambda one: one.size_bytes):
            largest[member.role] = member.path
        for role, path in sorted(largest.items()):
            first = subject.folder / "first.rpb.zip"
            rest = subject.folder / "rest.rpb.zip"
            split_bundle(bundle, [path], first=first, rest=rest)
            yield Made(first, f"{path} ({role}) moved to another file")


def _all_results(subject: Subject) -> Iterator[Made]:
    """Take away everything that a replay is compared with."""
    with open_bundle(subject.path) as bundle:
        moved = [
            member.path
            for member in bundle.members.values()
            if member.path.startswith("runs/") and member.role != "record"
        ]
        first = subject.folder / "first.rpb.zip"
        rest = subject.folder / "rest.rpb.zip"
        if moved:
            split_bundle(bundle, moved, first=first, rest=rest)
            yield Made(first, f"{len(moved):,} members moved to another file")
            yield Made(rest, "the other part alone")


PART_MUTATIONS = (
    Mutation(
        "part-of-each-role",
        "a member left to another part, which is not here",
        frozenset({"all-parts"}),
        _one_of_each_role,
    ),
    Mutation(
        "part-without-results",
        "all results left to another part, which is not here",
        frozenset({"all-parts"}),
        _all_results,
    ),
)
