"""Follow the edges of a ``uv.lock`` to what macOS wants of it.

Each package of the lock names what it needs, with a marker for the machines that need
it. From the project itself a package is reached on a Mac, by an extra or group only, or
not at all. Source: uv's lock as written by uv 0.5 to 0.9 (``version = 1``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Entry = Mapping[str, Any]
_OWN = ("virtual", "editable", "directory")


class Wanted(NamedTuple):
    """Whether macOS wants a package.

    Attributes:
        how: ``always``, ``extra`` (an extra or group asks for it), ``never``.
        why: Who wants it, or the marker that keeps it away.
    """

    how: str
    why: str


class LockGraph:
    """The packages of one lock that a Mac would install.

    Args:
        packages: Entries ``[[package]]``.
        on_mac: Tells whether a marker holds on a Mac.
    """

    def __init__(
        self, packages: Sequence[Entry], on_mac: Callable[[str], bool]
    ) -> None:
        self._packages = [one for one in packages if _applies(one, on_mac)]
        self._on_mac = on_mac
        self._always: dict[int, str] = {}
        self._extra: dict[int, str] = {}
        self._kept_away: dict[str, str] = {}
        roots = [one for one in self._packages if _is_own(one)]
        self.has_root = bool(roots)
        for root in roots:
            self._follow(root, self._always, "the project")
        for root in roots:
            for kind, name, edges in _groups(root):
                for edge in edges:
                    self._step(edge, self._extra, f"the {kind} {name}")

    def wanted(self, entry: Entry) -> Wanted:
        """Return whether macOS wants one package of the lock."""
        name = str(entry.get("name", ""))
        if id(entry) in self._always:
            return Wanted("always", f"wanted by {self._always[id(entry)]}")
        if id(entry) in self._extra:
            return Wanted("extra", f"is wanted by {self._extra[id(entry)]} only")
        marker = self._kept_away.get(name, "") or _own_marker(entry)
        why = f"is not wanted on macOS: {marker}" if marker else "nothing wants it"
        return Wanted("never", why)

    def _follow(self, entry: Entry, reached: dict[int, str], by: str) -> None:
        """Reach a package and everything that it needs."""
        waiting = [(entry, by)]
        while waiting:
            one, who = waiting.pop()
            if id(one) in reached or id(one) in self._always:
                continue
            reached[id(one)] = who
            name = str(one.get("name", ""))
            for edge in _edges(one.get("dependencies")):
                waiting += [(target, name) for target in self._targets(edge)]

    def _step(self, edge: Entry, reached: dict[int, str], by: str) -> None:
        for target in self._targets(edge):
            self._follow(target, reached, by)

    def _targets(self, edge: Entry) -> Iterator[Entry]:
        """Yield the packages that an edge leads to on a Mac, its extras included."""
        name = str(edge.get("name", ""))
        marker = str(edge.get("marker", ""))
        if marker and not self._on_mac(marker):
            self._kept_away.setdefault(name, marker)
            return
        version = edge.get("version")
        for one in self._packages:
            if one.get("name") == name and version in (None, one.get("version")):
                yield one
                yield from self._of_extras(one, edge)

    def _of_extras(self, entry: Entry, edge: Entry) -> Iterator[Entry]:
        optional = entry.get("optional-dependencies")
        for extra in edge.get("extra") or ():
            found = optional.get(extra) if isinstance(optional, dict) else None
            for inner in _edges(found):
                # An extra that asks for an extra of its own package would not end.
                if inner.get("name") != entry.get("name"):
                    yield from self._targets({**inner, "extra": ()})


def _applies(entry: Entry, on_mac: Callable[[str], bool]) -> bool:
    """Tell whether one of several versions of a package is the Mac's."""
    markers = entry.get("resolution-markers")
    if not isinstance(markers, list) or not markers:
        return True
    return any(on_mac(str(marker)) for marker in markers)


def _own_marker(entry: Entry) -> str:
    markers = entry.get("resolution-markers")
    return str(markers[0]) if isinstance(markers, list) and markers else ""


def _is_own(entry: Entry) -> bool:
    source = entry.get("source")
    return isinstance(source, dict) and any(kind in source for kind in _OWN)


def _groups(entry: Entry) -> Iterator[tuple[str, str, list[Entry]]]:
    for kind, key in (
        ("extra", "optional-dependencies"),
        ("group", "dev-dependencies"),
    ):
        groups = entry.get(key)
        for name, edges in groups.items() if isinstance(groups, dict) else ():
            yield kind, str(name), _edges(edges)


def _edges(value: object) -> list[Entry]:
    if not isinstance(value, list):
        return []
    return [one for one in value if isinstance(one, dict)]
