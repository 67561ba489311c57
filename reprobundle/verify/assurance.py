"""How far a result is vouched for: by its author alone, or by further people (V24)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from reprobundle.format.findings import Finding, Judgement
from reprobundle.format.signed import Assurance, AssuranceLevel, SignatureResult
from reprobundle.verify.checks import finding


def assess(
    results: Sequence[SignatureResult],
    judgements: Sequence[Judgement],
    *,
    has_signers: bool,
) -> Assurance:
    """Return who vouches for the result, by listed keys alone.

    A person counts once, whatever keys and names they use: names under which one key
    signed are one person, and so is one name with several keys. A replay counts if its
    verdict is REPRODUCED without a warning.

    Args:
        results: What was found about each signature.
        judgements: The judged replays that count for the verdict.
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
    reproduced = {one.replay for one in judgements if one.exit_status == 0}
    theirs = [one for one in known if one.kind == "replay"]
    others = [one for one in theirs if person[one.signer] not in own]
    counted = [one for one in others if one.subject in reproduced]
    people = tuple(dict.fromkeys(person[one.signer] for one in counted))
    accepted = {one.subject for one in theirs if person[one.signer] in own}
    return Assurance(
        level=_level(len(people)),
        authors=tuple(sorted(authors)),
        reproduced_by=people,
        countersigned=tuple(sorted({one.subject for one in counted} & accepted)),
        reason="" if people else _why_alone(judgements, reproduced, others),
    )


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
    judgements: Sequence[Judgement],
    reproduced: set[str],
    others: Sequence[SignatureResult],
) -> str:
    if not judgements:
        return "nobody replayed it yet"
    if not reproduced:
        return "no replay reproduced it without a warning"
    if others:
        return "the replays that others signed did not reproduce it without a warning"
    return "no replay is signed by another listed key than the author's"
