"""What a mutation is: one way to alter a bundle that must not go unnoticed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from reprobundle.sign.signers import Signers
    from reprobundle.verify.selftest.subject import Subject


class NotPossibleError(Exception):
    """This bundle holds nothing that the mutation could be made on; its text says why.

    It never leaves the package: it becomes the row's reason.
    """


class Made(NamedTuple):
    """One altered copy, and how it is to be verified.

    Attributes:
        bundle: The copy.
        what: What was altered, such as a member or a byte range.
        replay_file: Replays to judge with it.
        expect_id: The bundle id that the caller knows from elsewhere.
        signers: Whose keys are whose, where the caller says it.
    """

    bundle: Path
    what: str
    replay_file: Path | None = None
    expect_id: str | None = None
    signers: Signers | None = None


class Mutation(NamedTuple):
    """One way to alter a bundle that must not go unnoticed.

    Attributes:
        name: Stable name.
        title: What is done, in one phrase.
        reasons: Ids of findings; one of them has to be there because of it.
        make: Yields altered copies. Each is verified before the next is asked for, so
            one working copy may be altered and mended in turn.
    """

    name: str
    title: str
    reasons: frozenset[str]
    make: Callable[[Subject], Iterator[Made]]
