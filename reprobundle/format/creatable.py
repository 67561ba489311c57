"""Whether a file of a bundle can be made in a folder of this system.

The rules for names (`reprobundle.format.names`) see to it that a name means one and the
same file everywhere, or is refused. This is about the rest: a name may hold what one
system cannot store, or be too long behind the folder that it is to lie in. Each
function takes the system as an argument, so all of them are tested on any.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import PurePath
from typing import Literal

from reprobundle.errors import EnvironmentUnusableError

System = Literal["linux", "macos", "windows"]

# Microsoft, "Naming Files, Paths, and Namespaces"; what has a meaning in every name
# (colon, both slashes, control characters) is refused in any bundle.
_NEVER_ON_WINDOWS = '<>"|?*'
_COMPONENT_UNITS = 255
_PATH_UNITS: dict[System, int] = {
    "linux": 4095,  # PATH_MAX of linux/limits.h, without the NUL
    "macos": 1023,  # PATH_MAX of sys/syslimits.h
    "windows": 259,  # MAX_PATH, for a system that was not told to take longer ones
}


def this_system() -> System:
    """Return which system's rules hold here; those of Linux stand for any other."""
    known: dict[str, System] = {"darwin": "macos", "win32": "windows"}
    return known.get(sys.platform, "linux")


def check_creatable(names: Iterable[str], folder: PurePath, system: System) -> None:
    """Refuse names that cannot be made below `folder`, before the first one is.

    Args:
        names: Names of a bundle, which keep to its rules.
        folder: The absolute folder that they are to lie in.
        system: Where that is.

    Raises:
        EnvironmentUnusableError: One of them cannot be made; the message says why.
    """
    for name in names:
        reason = obstacle(name, system)
        if reason:
            raise EnvironmentUnusableError(
                f"{name!r} cannot be made on {system}: {reason}",
                advice="name the members that you want, or extract on another system",
            )
        longest = _PATH_UNITS[system]
        length = units(str(folder), system) + 1 + units(name, system)
        if length > longest:
            raise EnvironmentUnusableError(
                f"{name[:60]!r} would have a path of {length} characters here, "
                f"{system} takes {longest}",
                advice="extract into a folder with a shorter path",
            )


def obstacle(name: str, system: System) -> str:
    """Return why no file of that name can be on a system; nothing if it can."""
    if system == "windows":
        bad = next((one for one in name if one in _NEVER_ON_WINDOWS), "")
        if bad:
            return f"it holds {bad!r}"
    longest = max(units(component, system) for component in name.split("/"))
    if longest > _COMPONENT_UNITS:
        return f"a component has {longest} characters, {_COMPONENT_UNITS} are allowed"
    return ""


def units(text: str, system: System) -> int:
    """Return the length of a text as the system counts it.

    Windows counts units of UTF-16, of which a character beyond the first 65,536 has
    two; the others count bytes of UTF-8.
    """
    if system == "windows":
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
    return len(text.encode("utf-8", "surrogatepass"))
