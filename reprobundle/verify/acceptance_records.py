"""Whether an attached acceptance record is what it says, and still holds (V25)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from reprobundle.errors import BundleError, DigestError
from reprobundle.format.canonical import check_form, decode
from reprobundle.format.findings import Finding
from reprobundle.format.pairing import acceptance_name
from reprobundle.verify.checks import finding
from reprobundle.verify.integrity import bare_message

if TYPE_CHECKING:
    from reprobundle.format.acceptance_record import AcceptanceRecord
    from reprobundle.format.assessment import AttachedAcceptance
    from reprobundle.format.reader import Bundle
    from reprobundle.verify.assessment.evidence import Known

RULE = "R-7.5"


class ReadAcceptance(NamedTuple):
    """An acceptance record that is sound by itself: its id and the record."""

    id: str
    record: AcceptanceRecord


def read_acceptances(
    bundle: Bundle,
) -> tuple[list[ReadAcceptance], list[Finding]]:
    """Return the sound acceptance records of a bundle, and the findings about all."""
    if not bundle.acceptance_ids:
        reason = "no acceptance record is attached"
        return [], [finding("acceptance-record", "not-applicable", reason)]
    read = [_read(bundle, one) for one in bundle.acceptance_ids]
    sound = [one for one, _ in read if one is not None]
    return sound, [found for _, about in read for found in about]


def _read(
    bundle: Bundle, identifier: str
) -> tuple[ReadAcceptance | None, list[Finding]]:
    where = acceptance_name(identifier)
    try:
        data = bundle.read_unsealed(where)
        record = decode_acceptance(data, where=where)
    except DigestError as error:
        return None, [
            finding(
                "acceptance-name",
                "fail",
                "the record was altered: its digest is not its name",
                where=where,
                expected=error.expected,
                got=error.got,
            )
        ]
    except BundleError as error:
        reason = bare_message(error)
        return None, [finding("acceptance-record", "fail", reason, where=where)]
    if record.bundle != bundle.id:
        return None, [
            finding(
                "acceptance-bundle",
                "fail",
                "it accepts another bundle",
                where=where,
                expected=bundle.id,
                got=record.bundle,
            )
        ]
    names = ("acceptance-record", "acceptance-name", "acceptance-bundle")
    return (
        ReadAcceptance(identifier, record),
        [finding(name, "pass", where=where) for name in names],
    )


def decode_acceptance(data: bytes, *, where: str) -> AcceptanceRecord:
    """Return an acceptance record.

    Raises:
        BundleError: It breaks its schema, or is not in canonical form.
    """
    from reprobundle.format.acceptance_record import AcceptanceRecord

    record = decode(data, AcceptanceRecord, where=where, rule=RULE)
    check_form(data, where=where, rule=RULE)
    return record


def check_accepted(
    known: Known, accepted: Sequence[ReadAcceptance]
) -> tuple[tuple[AttachedAcceptance, ...], list[Finding]]:
    """Derive each record again, compare it with the newest runs, and say what holds."""
    from reprobundle.verify.assessment.holding import hold

    shown, findings = [], []
    for one in accepted:
        said, about = hold(known, one.id, one.record)
        shown.append(said)
        findings += about
    return tuple(shown), findings


def not_derived(accepted: Sequence[ReadAcceptance]) -> Iterator[Finding]:
    """Yield that nothing was derived, where only integrity was asked for."""
    reason = "only integrity and completeness were asked for"
    for one in accepted:
        where = acceptance_name(one.id)
        yield finding("acceptance-derived", "not-checked", reason, where=where)
