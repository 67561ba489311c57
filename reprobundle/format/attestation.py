"""The predicate of an in-toto statement about a bundle: its verdict in its own words.

Field names are in lower camel case, as in-toto asks for. A consumer that wants "was it
reproduced, and does nothing speak against it" asks for ``exitStatus`` 0 and for the
verdicts that start with ``REPRODUCED,``; every other word is not that.
"""

from __future__ import annotations

from typing import Final

import msgspec

from reprobundle.format.signed import AssuranceLevel

PREDICATE_TYPE: Final = "urn:reprobundle:predicate:verdict:1"


class Verifier(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What verified: a program and its version."""

    name: str
    version: str


class ReplayVerdict(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename="camel",
):
    """The verdict on one attached replay.

    Attributes:
        id: BLAKE3 of its record.
        claim, pass_name: Which pass of which claim it is.
        device: Device type it ran on; empty if it used none.
        verdict, exit_status: As `verify` gave them.
    """

    id: str
    claim: str
    pass_name: str
    device: str
    verdict: str
    exit_status: int


class VerdictPredicate(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename="camel",
):
    """What `verify` said about a bundle at one moment.

    Attributes:
        verifier: What said it.
        time_verified: When, RFC 3339, UTC.
        bundle: Bundle id, BLAKE3 of the manifest.
        format_version: Version that the bundle states.
        policy_blake3: Digest of the policy that was judged by.
        verdict: One of the words of the verdict table (spec.md, section 8.2).
        exit_status: The status that belongs to it.
        reasons: Why, most important first; empty only for a plain REPRODUCED.
        not_checked: Names of the checks that were not made.
        replays: One for each judged replay.
        assurance: Who vouches for it: ``not-checked`` where nobody said whose keys
            are whose.
        authors: Who signed the bundle, by listed keys.
        reproduced_by: Who else signed a replay that reproduced it without a warning.
    """

    verifier: Verifier
    time_verified: str
    bundle: str
    format_version: str
    policy_blake3: str
    verdict: str
    exit_status: int
    reasons: tuple[str, ...]
    not_checked: tuple[str, ...]
    replays: tuple[ReplayVerdict, ...]
    assurance: AssuranceLevel
    authors: tuple[str, ...]
    reproduced_by: tuple[str, ...]
