"""Put a wrapper in a function's place so that nobody can tell by its looks."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Function = Callable[..., Any]


def replace(
    owner: Any, name: str, make: Callable[[Function], Function], *aliases: Any
) -> Function | None:
    """Replace ``owner.name`` by ``make(original)`` and return the original.

    Args:
        owner: A module or class.
        name: Attribute; nothing happens when the owner has none of this name.
        make: Gets the original and returns the wrapper.
        aliases: Other modules that offer the same object under the same name.

    A pickled function is found again by module and name, so both must lead to the
    wrapper; its signature is read through ``__wrapped__``.
    """
    original: Function | None = getattr(owner, name, None)
    if original is None:
        return None
    wrapper: Any = make(original)
    wrapper.__dict__.update(getattr(original, "__dict__", {}))
    wrapper.__name__ = wrapper.__qualname__ = name
    wrapper.__doc__ = getattr(original, "__doc__", None)
    wrapper.__annotations__ = getattr(original, "__annotations__", {})
    wrapper.__wrapped__ = original
    if isinstance(owner, type):
        wrapper.__module__ = owner.__module__
        wrapper.__qualname__ = f"{owner.__qualname__}.{name}"
    else:
        wrapper.__module__ = owner.__name__
    for place in (owner, *aliases):
        if place is owner or getattr(place, name, None) is original:
            setattr(place, name, wrapper)
    return original
