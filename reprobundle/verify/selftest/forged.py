"""A bundle under a valid seal that its author did not write: hashed all anew."""

from __future__ import annotations

from collections.abc import Mapping

from reprobundle.verify.selftest.mutation import Made
from reprobundle.verify.selftest.subject import Subject, reference_member

RECORD = reference_member("record.json")
POLICY = "policy.json"


def forged(
    subject: Subject,
    what: str,
    changed: Mapping[str, bytes] | None = None,
    *,
    without: frozenset[str] = frozenset(),
) -> Made:
    """Return a bundle sealed anew, with faithful replays of what it says now.

    Args:
        subject: The bundle under test.
        what: What was altered.
        changed: Sealed path → other content.
        without: Sealed paths to leave out.
    """
    sealed = subject.seal("forged", changed, without=without)
    own = Subject(sealed, subject.folder / "own")
    return Made(sealed, what, own.echo().write(subject.folder / "own.rpr.zip"))
