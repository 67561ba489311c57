"""Say what was found about the signatures of a file (V24)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from reprobundle.format.findings import CheckOutcome, Finding
from reprobundle.format.signed import SignatureResult
from reprobundle.verify.checks import finding

_HOLDS = frozenset(
    ("known", "unknown", "expired", "revoked", "not-permitted", "not-asked")
)


def holds(result: SignatureResult) -> bool:
    """Return whether a signature is one over what is there, by whomever."""
    return result.standing in _HOLDS


def signed_by(results: Iterable[SignatureResult], subject: str) -> tuple[str, ...]:
    """Return who signed one document, each with what is known of the signature.

    A signature that does not hold is told as well: it is no reason to trust, and hiding
    it would be none either.

    Args:
        results: What was found about each signature.
        subject: Id of the document.
    """
    return tuple(
        f"signed by {one.signer} ({one.fingerprint})"
        if one.standing == "known"
        else f"signed by {one.fingerprint or 'no key'} ({one.reason})"
        for one in results
        if one.subject == subject
    )


def check_signatures(
    results: Sequence[SignatureResult], *, has_signers: bool
) -> Iterator[Finding]:
    """Yield the findings of V24 about single signatures.

    Args:
        results: What was found about each.
        has_signers: Whether the caller said whose keys are whose.
    """
    if not results:
        nothing = "there is no signature"
        yield finding("signature-form", "not-applicable", nothing)
        yield finding("signature-holds", "not-applicable", nothing)
        yield finding("signer-known", "not-applicable", nothing)
        return
    yield from _forms(results)
    yield from _matches(results)
    yield from _owners(results, has_signers=has_signers)


def _forms(results: Sequence[SignatureResult]) -> Iterator[Finding]:
    bad = [one for one in results if one.standing in ("malformed", "other-namespace")]
    for one in bad:
        yield finding("signature-form", "fail", one.reason, where=one.name)
    if not bad:
        yield finding("signature-form", "pass")


def _matches(results: Iterable[SignatureResult]) -> Iterator[Finding]:
    for one in results:
        if one.standing in ("malformed", "other-namespace"):
            continue
        outcome: CheckOutcome = "pass" if holds(one) else "fail"
        if one.standing in ("without-subject", "not-tested"):
            outcome = "not-checked"
        reason = "" if outcome == "pass" else one.reason
        advice = "install OpenSSH" if one.standing == "not-tested" else ""
        yield finding("signature-holds", outcome, reason, where=one.name, advice=advice)


def _owners(
    results: Iterable[SignatureResult], *, has_signers: bool
) -> Iterator[Finding]:
    for one in results:
        if not holds(one):
            continue
        if not has_signers:
            yield finding(
                "signer-known",
                "not-checked",
                one.reason,
                where=one.name,
                got=one.fingerprint,
                advice="use --signers with a list of whose keys are whose",
            )
        elif one.standing == "known":
            note = f"{one.signer}, {one.fingerprint}"
            yield finding("signer-known", "pass", note, where=one.name)
        else:
            outcome: CheckOutcome = (
                "not-checked" if one.standing == "unknown" else "fail"
            )
            yield finding(
                "signer-known", outcome, one.reason, where=one.name, got=one.fingerprint
            )
