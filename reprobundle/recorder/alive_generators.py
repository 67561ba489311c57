"""Find numpy's generators whose making nobody can see, by asking the garbage collector.

``RandomState`` and ``Generator`` are immutable types without a hook. What is left is
to look, at the end, at what is still alive: which kind it is and how it stands, so that
two runs can be set side by side. Where it was made, and of which seed, stays unknown.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import gc
import sys

from .facts import UnknownFactError
from .generators import fingerprint
from .made_generators import flat, numpy_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_MOST = 16


def alive(known: Iterable[Any]) -> list[str]:
    """Return type, bit generator and state of each, sorted.

    Args:
        known: Generators that are reported already.

    Raises:
        UnknownFactError: numpy's generators were not loaded.
    """
    module = sys.modules.get("numpy.random")
    if module is None:
        message = "numpy.random was not imported"
        raise UnknownFactError(message)
    told = {id(one) for one in (*known, module.mtrand._rand)}
    kinds = (module.RandomState, module.Generator)
    # The type, not isinstance(): that one may run code of the object's own.
    found = [
        one
        for one in gc.get_objects()
        if issubclass(type(one), kinds) and id(one) not in told
    ]
    texts = sorted(map(_text, found))
    more = len(texts) - _MOST
    return [*texts[:_MOST], *([f"and {more} more"] if more > 0 else [])]


def _text(generator: Any) -> str:
    bits = generator.bit_generator if hasattr(generator, "bit_generator") else None
    if bits is None:
        # A RandomState has it under another name.
        state = generator.get_state(legacy=False)
        return f"numpy.random.RandomState {state['bit_generator']} {_digest(state)}"
    name = type(bits).__name__
    return f"numpy.random.Generator {name} {numpy_state(generator)}"


def _digest(state: Any) -> str:
    return fingerprint(*flat(state))
