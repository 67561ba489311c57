"""Hear every warning about CPU fallback, whatever the script does with warnings.

torch warns once in a process, for the first operator only, unless
``torch.set_warn_always(True)`` is set before (``TORCH_WARN_ONCE`` in
``c10/util/Exception.h``). And a script that silences warnings silences these as well.
So a filter of ours stands before the script's own, and lets these warnings through to
us; from there each goes on as the script's filters say.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import sys

from .callers import caller
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from .phases import Clock
    from .session import Session

# aten/src/ATen/mps/MPSFallback.mm, unchanged from torch 2.0 to 2.15.
_FALLBACK = r"The operator '([^']+)' is not current(?:ly)? supported on the MPS backend"
# Kernels that leave for the CPU by themselves say so in texts of their own; the end
# tells torch's warnings from a script's.
_IN_KERNEL = r"(?s).*falling back (?:to|on) (?:the )?CPU.*Triggered internally at"
_CHANGERS = ("simplefilter", "filterwarnings", "resetwarnings")


class FallbackWarnings:
    """Count the warnings about CPU fallback by operator, place and phase.

    Args:
        session: Where events go.
        clock: Knows the step and the open phase.
    """

    def __init__(self, session: Session, clock: Clock) -> None:
        self._session = session
        self._clock = clock
        self._warnings: Any = None
        self._patterns: tuple[Any, ...] = ()
        self._filters: list[Any] = []
        self._shown: set[tuple[str, str, int]] = set()
        self._counts: dict[tuple[str, str, str], list[int]] = {}
        self._listens = False

    def start(self, torch: Any) -> None:
        """Listen from now on if this torch can use MPS; nothing else falls back."""
        if not torch.backends.mps.is_built():
            return
        # Imported here: before torch, a project's own module of that name would win.
        import re

        self._patterns = tuple(
            re.compile(text, re.IGNORECASE) for text in (_FALLBACK, _IN_KERNEL)
        )
        self._filters = [
            ("always", pattern, Warning, None, 0) for pattern in self._patterns
        ]
        self._warnings = sys.modules["warnings"]
        self._keep_first(self._warnings)
        self._go_first()
        torch.set_warn_always(True)
        self._listens = True
        self._session.emit("witness", name="warnings", looked=True)

    def continue_in_fork(self) -> None:
        """Count anew: a fork reports for itself."""
        self._counts = {}

    def _keep_first(self, warnings: ModuleType) -> None:
        """Put our filters back in front after anything that changes the list."""

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*arguments: Any, **named: Any) -> Any:
                result = original(*arguments, **named)
                self._session.attempt("fallback warnings", self._go_first)
                return result

            return wrapper

        for name in _CHANGERS:
            replace(warnings, name, make)
        replace(warnings, "_showwarnmsg", self._make_show)

    def _go_first(self) -> None:
        filters = self._warnings.filters
        if filters[: len(self._filters)] != self._filters:
            filters[:] = [*self._filters, *self._users(filters)]
            # The interpreter keeps what it decided earlier until it is told.
            for name in ("_filters_mutated", "_filters_mutated_lock_held"):
                told = getattr(self._warnings, name, None)
                if told is not None:
                    told()
                    break

    def _users(self, filters: Any) -> list[Any]:
        return [one for one in filters if one not in self._filters]

    def _make_show(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def show(message: Any) -> Any:
            text = str(message.message)
            found = next((p.match(text) for p in self._patterns if p.match(text)), None)
            if found is None:
                return original(message)
            self._session.attempt("fallback warnings", self._count, found)
            action = self._users_action(message, text)
            if action == "error":
                # The script's own wish: a fallback is to end the run.
                raise message.message
            if action == "ignore" or not self._is_due(message, text, action):
                return None
            return original(message)

        return show

    def _users_action(self, message: Any, text: str) -> str:
        """Return what the script's own filters say about a warning."""
        for action, pattern, category, module, line in self._users(
            self._warnings.filters
        ):
            if (
                (pattern is None or pattern.match(text))
                and issubclass(message.category, category)
                and module is None
                and line in (0, message.lineno)
            ):
                return str(action)
        return str(getattr(self._warnings, "defaultaction", "default"))

    def _is_due(self, message: Any, text: str, action: str) -> bool:
        """Tell whether a warning is shown again: most actions show one only once."""
        if action == "always":
            return True
        place = "" if action == "once" else message.filename
        key = (text, place, 0 if action in ("once", "module") else message.lineno)
        due = key not in self._shown
        self._shown.add(key)
        return due

    def _count(self, found: Any) -> None:
        operator = found[1] if found.re is self._patterns[0] else found[0][-200:]
        where = caller(self._session.project)
        key = (operator, where, self._clock.open_phase)
        counts = self._counts.setdefault(key, [0, 0])
        counts[0] += 1
        if counts[0] == 1:
            # At once: a run that is killed has said what it fell back on.
            self._send(key, 1)

    def finish(self) -> None:
        """Send the totals."""
        for key, counts in self._counts.items():
            if counts[0] > 1:
                self._send(key, counts[0])

    def _send(self, key: tuple[str, str, str], count: int) -> None:
        operator, where, phase = key
        self._session.emit(
            "fallback",
            witness="warnings",
            operator=operator,
            where=where,
            phase=phase,
            count=count,
        )
