"""The documents of a bundle: its policy, its sealed runs, its attached replays."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from reprobundle.errors import BundleError, MissingMemberError
from reprobundle.format.canonical import decode
from reprobundle.format.findings import Finding
from reprobundle.format.lock import LOCK_MEMBER, Lock
from reprobundle.format.policy import Policy
from reprobundle.format.reader import Bundle
from reprobundle.format.record import Record
from reprobundle.verify.checks import finding

_RUN = re.compile(r"runs/([1-9][0-9]*)/record\.json")
REFERENCE_RUN = 1
POLICY = "policy.json"
_RULES = {POLICY: "R-7.1", LOCK_MEMBER: "R-7.3"}

Document = TypeVar("Document")


class Sealed(NamedTuple):
    """What the sealed part of a bundle states, decoded.

    Attributes:
        policy: The frozen policy.
        lock: The lock of the live environment, if the bundle holds one.
        runs: Number → sealed record; 1 is the reference.
    """

    policy: Policy
    lock: Lock | None
    runs: Mapping[int, Record]

    @property
    def reference(self) -> Record:
        """The measured pass of the main command."""
        return self.runs[REFERENCE_RUN]

    @property
    def repeats(self) -> tuple[tuple[int, Record], ...]:
        """Number and record of each repeat pass of the main command, in order."""
        return self._of_main("repeat")

    @property
    def truth(self) -> tuple[int, Record] | None:
        """Number and record of the float64 run of the main command, if it was made."""
        return next(iter(self._of_main("truth")), None)

    @property
    def counterparts(self) -> tuple[tuple[int, Record], ...]:
        """Number and record of the main command's run on each further device."""
        return tuple(
            one
            for one in self._of_main("counterpart")
            if one[1].pass_name == "measured"
        )

    @property
    def mains(self) -> tuple[tuple[int, Record], ...]:
        """Number and record of the main command's measured run on each device."""
        return ((REFERENCE_RUN, self.reference), *self.counterparts)

    def fellows(self, main: Record, pass_name: str) -> tuple[tuple[int, Record], ...]:
        """Return the other passes of one measured run, on its device, in order.

        Args:
            main: A sealed measured run.
            pass_name: Which of them: ``repeat`` or ``evidence``.
        """
        further = main.role == "counterpart"
        wanted = main.role if further else pass_name
        return tuple(
            (number, record)
            for number, record in sorted(self.runs.items())
            if (record.role, record.pass_name) == (wanted, pass_name)
            and record.claim == main.claim
            and (not further or record.devices.requested == main.devices.requested)
        )

    def _of_main(self, role: str) -> tuple[tuple[int, Record], ...]:
        return tuple(
            (number, record)
            for number, record in sorted(self.runs.items())
            if record.role == role and record.claim == self.reference.claim
        )

    @property
    def claims(self) -> tuple[str, ...]:
        """Claims that need a run of their own, the main one first."""
        names = [record.claim for _, record in sorted(self.runs.items())]
        stated = [claim.name for claim in self.policy.claims]
        return tuple(dict.fromkeys([*names, *stated]))


def read_sealed(bundle: Bundle) -> tuple[Sealed | None, list[Finding]]:
    """Return the decoded documents, or None and the findings that say why not."""
    findings: list[Finding] = []
    policy = _document(bundle, POLICY, Policy, findings)
    lock = None
    if LOCK_MEMBER in bundle.members:
        lock = _document(bundle, LOCK_MEMBER, Lock, findings)
    runs = _runs(bundle, findings)
    if policy is None or findings:
        return None, findings
    findings.extend(_twice(policy))
    findings.extend(_roles(runs))
    if findings:
        return None, findings
    count = len(runs)
    return (
        Sealed(policy=policy, lock=lock, runs=runs),
        [finding("sealed-document", "pass", f"policy, lock and {count} run records")],
    )


def _document(
    bundle: Bundle, path: str, kind: type[Document], findings: list[Finding]
) -> Document | None:
    try:
        return decode(bundle.read(path), kind, where=path, rule=_RULES[path])
    except BundleError as error:
        findings.append(_unsound(path, error))
        return None


def _runs(bundle: Bundle, findings: list[Finding]) -> dict[int, Record]:
    runs: dict[int, Record] = {}
    for path in bundle.members:
        match = _RUN.fullmatch(path)
        if match is None:
            continue
        try:
            data = bundle.read(path)
            runs[int(match[1])] = decode(data, Record, where=path, rule="R-7.2")
        except BundleError as error:
            findings.append(_unsound(path, error))
    return runs


def _unsound(path: str, error: BundleError) -> Finding:
    if isinstance(error, MissingMemberError):
        # What is not there cannot be wrong: the bundle is not whole, but readable.
        reason = "the bundle does not hold it"
        return finding("sealed-document", "not-checked", reason, where=path)
    reason = error.message.removeprefix(f"{error.where}: ")
    return finding("sealed-document", "fail", reason, where=path)


def _twice(policy: Policy) -> list[Finding]:
    """Refuse a policy of which one half would never be looked at."""
    claims = [f"the claim {one.name!r}" for one in policy.claims]
    rows = [f"{one.dtype}, {one.devices} devices" for one in policy.tolerances]
    named = [*claims, *rows]
    return [
        finding("sealed-document", "fail", f"it states {one} twice", where=POLICY)
        for one in dict.fromkeys(named)
        if named.count(one) > 1
    ]


def _roles(runs: Mapping[int, Record]) -> list[Finding]:
    """Refuse sealed runs that could not have been made by one packing."""
    reference = runs.get(REFERENCE_RUN)
    if reference is None:
        reason = "the bundle has no reference run"
        where = "runs/1/record.json"
        return [finding("sealed-document", "not-checked", reason, where=where)]
    found = []
    for number, record in runs.items():
        where = f"runs/{number}/record.json"
        is_first = number == REFERENCE_RUN
        if record.role == "replay" or (record.role == "reference") != is_first:
            reason = "only run 1 is the reference, and no sealed run is a replay"
            found.append(
                finding("sealed-document", "fail", reason, where=where, got=record.role)
            )
        elif record.role == "counterpart" and _is_no_counterpart(record, runs):
            reason = "it is no pass of the main command on another device"
            found.append(
                finding(
                    "sealed-document",
                    "fail",
                    reason,
                    where=where,
                    got=record.devices.requested,
                )
            )
        elif record.role == "claim" and _is_shadow(number, record, runs):
            reason = "another sealed run serves this claim: a claim has one command"
            found.append(
                finding(
                    "sealed-document", "fail", reason, where=where, got=record.claim
                )
            )
        elif record.bundle:
            reason = "a sealed record cannot name a bundle"
            found.append(
                finding(
                    "sealed-document", "fail", reason, where=where, got=record.bundle
                )
            )
    return found


def _is_shadow(number: int, record: Record, runs: Mapping[int, Record]) -> bool:
    """Tell whether a claim's run stands beside another one of the same claim.

    A replay of the cheaper one would then count for both.
    """
    return any(
        other.claim == record.claim and other.role in ("reference", "claim")
        for one, other in runs.items()
        if one != number
    )


def _is_no_counterpart(record: Record, runs: Mapping[int, Record]) -> bool:
    """Tell whether a counterpart is not what it says: one device has one run.

    Its other passes belong to that run.
    """
    first, device = runs[REFERENCE_RUN], record.devices.requested
    measured = [
        one
        for one in runs.values()
        if one.devices.requested == device
        and (one.role == "reference" or _is_measured_counterpart(one))
    ]
    return (
        len(measured) != 1
        or measured[0].role == "reference"
        or record.claim != first.claim
        or record.pass_name not in ("measured", "repeat", "evidence")
    )


def _is_measured_counterpart(record: Record) -> bool:
    return (record.role, record.pass_name) == ("counterpart", "measured")
