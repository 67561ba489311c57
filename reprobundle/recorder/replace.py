"""Put a wrapper in a function's place so that nobody can tell by its looks."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Function = Callable[..., Any]


# Of each name of torch: its owner, and what stood there by our doing or before it.
_known: dict[tuple[int, str], tuple[Any, list[Any]]] = {}


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
            _, stood = _known.setdefault((id(place), name), (place, []))
            stood += (original, wrapper)
    return original


def displaced(folder: str) -> list[str]:
    """Return the names of torch in whose place the script has put its own.

    What goes through them may go past the recorder. torch itself wraps some again, as
    the compiler does with ``manual_seed``.

    Args:
        folder: Where torch lies, with a final slash.
    """
    found = []
    for (_, name), (owner, stood) in _known.items():
        current = getattr(owner, name, None)
        home = getattr(owner, "__module__", "") or owner.__name__
        code = getattr(current, "__code__", None)
        is_torchs = code is not None and code.co_filename.startswith(folder)
        is_known = is_torchs or any(current is one for one in stood)
        if home.split(".")[0] == "torch" and not is_known:
            place = owner.__qualname__ if isinstance(owner, type) else owner.__name__
            found.append(f"{place}.{name}")
    return sorted(set(found))
