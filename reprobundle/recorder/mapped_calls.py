"""Count the calls that were given another device than the one they name.

Each place in the user's code is reported at its first call, then when the number of its
calls is a power of two, and once more at the end: a process that is killed has said
what it mapped.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from .callers import caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from .session import Session

REFUSED = "refused"
# run/stops.py knows a run that ended in this error by these words.
_NO_COUNTERPART = "has no counterpart on {target}: the run cannot be mapped from CUDA"
_MOST_PLACES = 2000

Key = tuple[str, str, str, str]


def is_name_of(kind: str, text: str) -> bool:
    """Tell whether a text names a device of a type: ``cuda`` or ``cuda:<number>``."""
    head, colon, number = text.partition(":")
    return head == kind and (number.isdigit() if colon else True)


def is_cuda_name(text: str) -> bool:
    """Tell whether a text names a CUDA device."""
    return is_name_of("cuda", text)


class MappedCalls:
    """What was mapped in this process, by call and place.

    Attributes:
        target: The device type that takes the place of CUDA.
    """

    def __init__(self, session: Session, target: str) -> None:
        self._session = session
        self.target = target
        self._counts: dict[Key, int] = {}
        self._sent: dict[Key, int] = {}

    def note(self, call: str, asked: str, became: str = "") -> None:
        """Count one mapped call.

        Args:
            call: As the user wrote it, such as ``torch.zeros``.
            asked: The device it names, such as ``cuda:0``; may be empty.
            became: What was done in its place; the target by default.
        """
        self._session.attempt("mapping", self._note, call, asked, became)

    def _note(self, call: str, asked: str, became: str) -> None:
        key = (call, asked, became or self.target, caller(self._session.project))
        if key not in self._counts and len(self._counts) >= _MOST_PLACES:
            text = f"only the first {_MOST_PLACES} places of mapped calls are recorded"
            self._session.trouble("mapping", text)
            return
        count = self._counts[key] = self._counts.get(key, 0) + 1
        if not count & (count - 1):
            self._send(key, count)

    def refuse(self, call: str, why: str = "") -> NoReturn:
        """End a call that only CUDA can answer, and say so.

        Args:
            call: As the user wrote it.
            why: What is known about it besides, in a few words.

        Raises:
            RuntimeError: Always.
        """
        self.note(call, "", REFUSED)
        reason = f" ({why})" if why else ""
        told = _NO_COUNTERPART.format(target=self.target)
        message = f"{call} {told}{reason}"
        raise RuntimeError(message)

    def report_end(self) -> None:
        """Send the counts that were not sent yet."""
        for key, count in list(self._counts.items()):
            if self._sent.get(key) != count:
                self._send(key, count)

    def continue_in_fork(self) -> None:
        """Count anew: a fork reports for itself."""
        self._counts.clear()
        self._sent.clear()

    def _send(self, key: Key, count: int) -> None:
        call, asked, became, where = key
        self._sent[key] = count
        self._session.emit(
            "mapped", call=call, asked=asked, became=became, where=where, count=count
        )


def device_text(device: Any) -> str:
    """Return how a call names a device: text, a number, or a ``torch.device``."""
    return str(device)
