"""Tell whether a requirement lets a release come that is new enough."""

from __future__ import annotations

import re

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

# Stands for the newest release of all, which an open requirement gets.
_NEWEST = Version("99999")


def admits(specifier: str, since: str) -> bool:
    """Tell whether a requirement can be met by `since` or a newer release.

    Args:
        specifier: As PEP 440 writes it, such as ``>=0.41,<0.50``; empty for any.
        since: A release.

    A requirement that cannot be understood admits nothing.
    """
    try:
        wanted = SpecifierSet(specifier)
    except InvalidSpecifier:
        return False
    named = (_version(text) for text in re.findall(r"\d[\w.]*", specifier))
    known = {Version(since), _NEWEST, *(one for one in named if one is not None)}
    return any(
        wanted.contains(one, prereleases=True) for one in known if one >= Version(since)
    )


def of_poetry(text: str) -> str:
    """Return a version of a poetry project as PEP 440 writes it.

    Source: "Dependency specification" of the documentation of poetry.

    Args:
        text: Such as ``^0.45``, ``~1.2``, ``*`` or ``>=1.0,<2``.
    """
    match = re.fullmatch(r"([\^~]?)\s*(\d+(?:\.\d+)*)", text.strip())
    if match is None:
        return "" if text.strip() in {"", "*"} else text
    parts = [int(part) for part in match[2].split(".")]
    if not match[1]:
        return f"=={match[2]}"
    # Below the next version of the first number that is not 0; `~` keeps two numbers.
    kept = next((i for i, part in enumerate(parts) if part), len(parts) - 1)
    if match[1] == "~":
        kept = min(1, len(parts) - 1)
    end = ".".join(map(str, (*parts[:kept], parts[kept] + 1)))
    return f">={match[2]},<{end}"


def _version(text: str) -> Version | None:
    try:
        return Version(text.rstrip("."))
    except InvalidVersion:
        return None
