"""Make another replay of a bundle, with one thing altered."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from reprobundle.verify.selftest.mutation import Made, NotPossibleError
from reprobundle.verify.selftest.subject import Draft, Echo, Subject

Redraft = Callable[[Subject, Draft], Draft]

OTHER_DIGEST = "0" * 64


def replay_with(redraft: Redraft) -> Callable[[Subject], Iterator[Made]]:
    """Return what judges the bundle with another replay of the reference run."""

    def make(subject: Subject) -> Iterator[Made]:
        echo = subject.echo()
        other = echo.but(redraft(subject, echo.main))
        if other == echo:
            raise NotPossibleError("the reference states nothing of the kind")
        yield judged_with(subject, other, "the replay")

    return make


def judged_with(subject: Subject, replays: Echo, what: str) -> Made:
    """Return the bundle judged with `replays` alone; `what` says what was altered."""
    return Made(subject.path, what, replays.write(subject.folder / "other.rpr.zip"))


def saying(**changes: object) -> Redraft:
    """Return what makes a replay state `changes` in its record."""
    return lambda subject, draft: draft.saying(**changes)


def ids(*names: str) -> frozenset[str]:
    """Return the findings of which one has to name the alteration."""
    return frozenset(names)
