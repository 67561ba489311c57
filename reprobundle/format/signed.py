"""Who vouches for a bundle and its replays: data only, part of the report."""

from __future__ import annotations

from typing import Literal

import msgspec

SubjectKind = Literal["bundle", "replay", "acceptance", "unknown"]

Standing = Literal[
    "known",
    "unknown",
    "expired",
    "revoked",
    "not-permitted",
    "not-asked",
    "not-tested",
    "changed",
    "other-namespace",
    "malformed",
    "without-subject",
]

AssuranceLevel = Literal[
    "not-checked",
    "unsigned",
    "self-attested",
    "reproduced-by-second",
    "reproduced-by-several",
]


class SignatureResult(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What was found about one signature.

    Attributes:
        name: Its entry in the file.
        subject: Id of what it signs.
        kind: What that is.
        key_type, fingerprint: The key, as the signature states it.
        standing: ``known`` if it holds and its key is listed and valid; ``unknown``,
            ``expired``, ``revoked`` or ``not-permitted`` if it holds, but its key is
            not listed, not valid at that time, withdrawn, or listed for other purposes;
            ``not-asked`` if it holds and nobody said whose keys are whose;
            ``not-tested`` without an ssh-keygen; ``changed`` if it does not hold for
            what is there; ``other-namespace`` if it was made for another
            purpose; ``malformed`` if it is no such signature; ``without-subject`` if
            what it signs is not in the file.
        signer: All names that the list of signers gives the key, ``, `` between them;
            empty unless known.
        reason: Why it is not ``known``.
    """

    name: str
    subject: str
    kind: SubjectKind
    key_type: str = ""
    fingerprint: str = ""
    standing: Standing
    signer: str = ""
    reason: str = ""


class Assurance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who vouches for the result, by listed keys alone.

    Attributes:
        level: ``unsigned`` if no listed key signed the bundle; ``self-attested`` if its
            author did; ``reproduced-by-second`` and ``-by-several`` if besides that one
            other person, or several with a run each, signed a replay that reproduced it
            without a warning; ``not-checked`` without a list of signers.
        authors: Who signed the bundle.
        reproduced_by: Who else signed a replay that reproduced it.
        countersigned: Ids of those replays that an author signed as well.
        reason: Why the level is no higher.
    """

    level: AssuranceLevel = "not-checked"
    authors: tuple[str, ...] = ()
    reproduced_by: tuple[str, ...] = ()
    countersigned: tuple[str, ...] = ()
    reason: str = ""
