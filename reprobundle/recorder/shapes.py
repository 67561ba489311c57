"""Count the shapes of model inputs: growth of memory may follow them."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .session import Session

_MOST_KEPT = 1000
_MOST_SENT = 50
_MOST_TENSORS = 8


class Shapes:
    """A histogram over the calls of a model: dtypes and shapes of all its tensors.

    Attributes:
        distinct: Number of different inputs so far.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._plain: tuple[type, ...] = ()
        self._is_tracing: Callable[[], Any] = bool
        self.continue_in_fork()

    def continue_in_fork(self) -> None:
        """Count anew: a fork reports for itself."""
        self._counts: dict[Any, int] = {}
        # The input of the last call, and how often it came again since.
        self._last: Any = ()
        self._again = 0
        self._other = 0
        self._sent = -1
        self.distinct = 0

    def use_torch(self, torch: Any) -> None:
        """Learn what a plain tensor is."""
        # Subclasses stay out: the shape of a fake tensor may hold symbols, and looking
        # at one would write a condition into the exported program.
        self._plain = (torch.Tensor, torch.nn.Parameter)
        self._is_tracing = torch._C._get_tracing_state

    def count(self, arguments: Any, named: Any) -> None:
        """Count one call of a model with these arguments."""
        try:
            if self._is_tracing():
                # A trace notes every look at a shape as an operator.
                return
            if not named and len(arguments) == 1 and type(arguments[0]) in self._plain:
                # The usual call, without a generator.
                key = ((arguments[0].dtype, arguments[0].shape),)
            else:
                key = tuple(self._shapes((*arguments, *named.values())))
            if key == self._last:
                # To compare is cheaper than to hash; most loops have one shape.
                self._again += 1
            else:
                self._count(key)
        except Exception as error:
            self._session.trouble("shapes", error)

    def _count(self, key: Any) -> None:
        self._settle()
        self._last = key
        if key in self._counts:
            self._counts[key] += 1
        elif key:
            self._add(key)

    def _settle(self) -> None:
        again, self._again = self._again, 0
        if self._last in self._counts:
            self._counts[self._last] += again
        elif self._last:
            self._other += again

    def _shapes(self, values: Any) -> Iterator[Any]:
        plain = self._plain
        for value in values:
            if type(value) in plain:
                yield value.dtype, value.shape
            elif isinstance(value, (list, tuple)):
                yield from self._shapes(value[:_MOST_TENSORS])
            elif isinstance(value, dict):
                yield from self._shapes(list(value.values())[:_MOST_TENSORS])

    def _add(self, key: Any) -> None:
        self.distinct += 1
        if len(self._counts) < _MOST_KEPT:
            self._counts[key] = 1
        else:
            # From here on one that was seen before counts as new: more would be a
            # leak of our own.
            self._other += 1

    def send(self) -> None:
        """Send the most frequent shapes if any call was counted since."""
        self._settle()
        calls = sum(self._counts.values()) + self._other
        if not calls or calls == self._sent:
            return
        self._sent = calls
        ordered = sorted(self._counts.items(), key=lambda item: -item[1])
        shown = [
            {"shape": _text(key), "count": count} for key, count in ordered[:_MOST_SENT]
        ]
        rest = sum(count for _, count in ordered[_MOST_SENT:]) + self._other
        self._session.emit("shapes", shapes=shown, other=rest, distinct=self.distinct)


def _text(key: Any) -> str:
    parts = (
        f"{str(dtype).removeprefix('torch.')}{list(shape)}" for dtype, shape in key
    )
    return ", ".join(parts)
