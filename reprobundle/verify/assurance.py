"""How far a result is vouched for: by its author alone, or by further people (V24)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from reprobundle.format.findings import Finding, Judgement
from reprobundle.format.signed import Assurance, AssuranceLevel, SignatureResult
from reprobundle.verify.checks import finding
from reprobundle.verify.claims import Replay


class Occasion(NamedTuple):
    """What one occasion showed about one claim: one run, whoever signed its records.

    Attributes:
        claim: The claim.
        replays: Ids of its records.
        reproduced: Whether each of them is REPRODUCED without a warning.
    """

    claim: str
    replays: frozenset[str]
    reproduced: bool

    def shown_by(self, signed: set[str]) -> bool:
        """Return whether a signature over one of these ids vouches for the result."""
        return self.reproduced and bool(self.replays & signed)


def occasions_of(
    counted: Mapping[str, Sequence[Replay]], judgements: Mapping[str, Judgement]
) -> list[Occasion]:
    """Return the occasions of the replays that count, oldest first in each claim.

    Args:
        counted: Claim → its replays that count, from `claims.counting`.
        judgements: Record id → judgement.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for replays in counted.values():
        for one in replays:
            groups.setdefault(one.group, []).append(one.id)
    return [
        Occasion(
            claim,
            frozenset(ids),
            reproduced=all(judgements[one].exit_status == 0 for one in ids),
        )
        for (_, claim), ids in groups.items()
    ]


def assess(
    results: Sequence[SignatureResult],
    occasions: Sequence[Occasion],
    *,
    claims: Collection[str],
    decided: bool,
    has_signers: bool,
) -> Assurance:
    """Return who vouches for the result, by listed keys alone.

    A person counts once, whatever keys and names they use: names under which one key
    signed are one person, and so is one name with several keys. A person counts who
    signed a reproduction of every claim that has to be replayed. An occasion is one
    run, so two people who sign the records of one reproduced it once.

    Args:
        results: What was found about each signature.
        occasions: The replays that count, newest last.
        claims: Those that have to be replayed.
        decided: Whether those that decide for the verdict reproduced the result.
        has_signers: Whether the caller said whose keys are whose.
    """
    if not has_signers:
        reason = "nobody said whose keys are whose" if results else "nobody signed it"
        return Assurance(level="not-checked", reason=reason)
    known = [one for one in results if one.standing == "known"]
    authors = {one.signer for one in known if one.kind == "bundle"}
    if not authors:
        return Assurance(level="unsigned", reason=_why_unsigned(results))
    person = _persons(known)
    own = {person[name] for name in authors}
    signed: dict[str, set[str]] = {}
    for one in known:
        if one.kind == "replay":
            signed.setdefault(person[one.signer], set()).add(one.subject)
    accepted = set().union(*(signed.pop(name, set()) for name in own))
    people = {
        name: [one for one in occasions if decided and one.shown_by(ids)]
        for name, ids in signed.items()
    }
    vouching = {
        name: seen
        for name, seen in people.items()
        if seen and {one.claim for one in seen}.issuperset(claims)
    }
    counted = {
        replay
        for name, seen in vouching.items()
        for one in seen
        for replay in one.replays & signed[name]
    }
    return Assurance(
        level=_level(min((_runs(vouching, claim) for claim in claims), default=0)),
        authors=tuple(sorted(authors)),
        reproduced_by=tuple(vouching),
        countersigned=tuple(sorted(counted & accepted)),
        reason="" if vouching else _why_alone(occasions, people, claims, decided),
    )


def _runs(people: Mapping[str, Sequence[Occasion]], claim: str) -> int:
    """Return how many people can each be given a run of a claim of their own."""
    runs = {
        name: [one.replays for one in seen if one.claim == claim]
        for name, seen in people.items()
    }
    taken: dict[frozenset[str], str] = {}

    def place(name: str, tried: set[frozenset[str]]) -> bool:
        for run in runs[name]:
            if run not in tried:
                tried.add(run)
                if run not in taken or place(taken[run], tried):
                    taken[run] = name
                    return True
        return False

    return sum(place(name, set()) for name in runs)


def check_assurance(assurance: Assurance) -> Iterator[Finding]:
    """Yield who signed the bundle, and the second person of the acceptance list."""
    if assurance.level == "not-checked":
        yield finding(
            "author-signed",
            "not-checked",
            assurance.reason,
            advice="sign it: reprobundle sign; check it: verify --signers",
        )
    elif assurance.authors:
        yield finding("author-signed", "pass", ", ".join(assurance.authors))
    else:
        yield finding(
            "author-signed",
            "fail",
            assurance.reason,
            advice="ask its author to sign it, or check the list of signers",
        )


def check_second_person(assurance: Assurance, replay_count: int) -> Finding:
    """Return point 11 of the acceptance list: did a second person reproduce it?"""
    if assurance.reproduced_by:
        names = ", ".join(assurance.reproduced_by)
        note = f"signed by {names}; the bundle by {', '.join(assurance.authors)}"
        return finding("lists-second-person", "pass", note)
    if not replay_count:
        return finding("lists-second-person", "not-checked", "nobody replayed it yet")
    return finding(
        "lists-second-person",
        "not-checked",
        f"who made the {replay_count} attached replays is not proven: "
        f"{assurance.reason}",
        advice="sign the bundle and the replay, and verify with --signers",
    )


def _level(people: int) -> AssuranceLevel:
    if people > 1:
        return "reproduced-by-several"
    return "reproduced-by-second" if people else "self-attested"


def _persons(known: Sequence[SignatureResult]) -> dict[str, str]:
    """Return for each signer the first signer that is the same person.

    Two signers are one person if they share a name or a key. A signer is all names
    that the list gives a key.
    """
    person = {one.signer: one.signer for one in known}
    for first, second in combinations(known, 2):
        same_key = first.fingerprint == second.fingerprint
        if same_key or _names(first) & _names(second):
            kept, gone = person[first.signer], person[second.signer]
            person = {k: kept if v == gone else v for k, v in person.items()}
    return person


def _names(one: SignatureResult) -> set[str]:
    return set(one.signer.split(", "))


def _why_unsigned(results: Sequence[SignatureResult]) -> str:
    about = [one for one in results if one.kind == "bundle"]
    if not about:
        return "nobody signed the bundle"
    return f"no listed key signed the bundle: {about[-1].reason}"


def _why_alone(
    occasions: Sequence[Occasion],
    people: Mapping[str, Sequence[Occasion]],
    claims: Collection[str],
    decided: bool,
) -> str:
    if not occasions:
        return "nobody replayed it yet"
    if not decided:
        return "the replay that decides did not reproduce it"
    if not any(one.reproduced for one in occasions):
        return "no replay reproduced it without a warning"
    if not people:
        return "no replay is signed by another listed key than the author's"
    done = {one.claim for seen in people.values() for one in seen}
    if not done:
        return "the replays that others signed did not reproduce it without a warning"
    missing = ", ".join(sorted(set(claims) - done)) or "all claims together"
    return f"nobody else signed a reproduction of {missing}"
