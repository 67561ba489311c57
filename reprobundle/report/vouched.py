"""Say in words who vouches for a result."""

from __future__ import annotations

from collections.abc import Sequence

from reprobundle.format.findings import Report
from reprobundle.format.signed import Assurance, AssuranceLevel, SignatureResult

_LEVELS: dict[AssuranceLevel, str] = {
    "not-checked": "not checked",
    "unsigned": "not signed by anyone in the list",
    "self-attested": "self-attested",
    "reproduced-by-second": "reproduced by a second person",
    "reproduced-by-several": "reproduced by several people",
}


def is_signed(report: Report) -> bool:
    """Return whether there is anything to say: a signature, or a list of signers."""
    return bool(report.signatures) or report.assurance.level != "not-checked"


def assurance_words(assurance: Assurance) -> str:
    """Return who vouches for the result, in one sentence."""
    said = _LEVELS[assurance.level]
    if assurance.authors:
        said += f": signed by {_names(assurance.authors)}"
    if assurance.reproduced_by:
        said += f", reproduced and signed by {_names(assurance.reproduced_by)}"
    if assurance.countersigned:
        said += ", countersigned by the author"
    return f"{said} ({assurance.reason})" if assurance.reason else said


def signature_words(one: SignatureResult) -> str:
    """Return what was found about one signature, in one sentence."""
    what = f"{one.kind} {one.subject[:12]}" if one.subject else one.name
    who = one.signer or one.fingerprint or "no key"
    if one.standing == "known":
        return f"{what} by {who} ({one.key_type} {one.fingerprint})"
    return f"{what} by {who}: {one.reason}"


def signed_rows(report: Report) -> list[tuple[str, str]]:
    """Return the rows of a table of facts: who vouches, and every signature."""
    if not is_signed(report):
        return []
    rows = [("assurance", assurance_words(report.assurance))]
    return rows + [("signature", signature_words(one)) for one in report.signatures]


def _names(names: Sequence[str]) -> str:
    return ", ".join(names)
