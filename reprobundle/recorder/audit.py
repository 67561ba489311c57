"""Pass the interpreter's audit events to the parts that want them."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from .session import Session

    Handler = Callable[[tuple[Any, ...]], None]


def install(session: Session, handlers: Mapping[str, Handler]) -> None:
    """Call the handler of each audit event from now on.

    An audit hook cannot be removed, runs in every thread and in forks, and must not
    raise: an exception of ours would become the result of the user's own call.
    """
    find = handlers.get

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        handler = find(event)
        if handler is not None:
            session.attempt("audit " + event, handler, arguments)

    sys.addaudithook(hook)
