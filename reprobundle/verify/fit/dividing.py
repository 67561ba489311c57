"""Which members of a bundle stay in its first part, so that this fits a destination.

What a second person needs to read and judge it always stays: documents, the project's
files, the memory series. Of the rest as much stays as fits, the most useful first: what
a replay needs to run, the smallest results of the reference, logs, the lock for other
systems, the results of further runs. The choice depends on the bundle alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from reprobundle.errors import BadCallError
from reprobundle.format.archive import CENTRAL
from reprobundle.format.content import Content
from reprobundle.format.destinations import DESTINATIONS
from reprobundle.format.inline import text_characters
from reprobundle.format.limits import ALIGN_BYTES
from reprobundle.format.lock import PYLOCK_MEMBER
from reprobundle.format.manifest import MANIFEST_PATH, Member
from reprobundle.format.reader import Bundle
from reprobundle.verify.fit.subject import TEXT_BYTES

_MOVABLE = frozenset({"output", "log", "external", "input", "stand-in"})
_REPLAYS_NEED = frozenset({"external", "input", "stand-in"})
# Room for part.json and the end of the file, and for a text's head.
_SPARE_BYTES = 2_048
_TEXT_SHARE = 0.97
# An entry's headers as text: names and digests are in the manifest as well.
_HEADER_CHARACTERS = 24


class Budget(NamedTuple):
    """What the first part may take.

    Attributes:
        most: Bytes, or characters as text.
        as_text: Which of both.
    """

    most: int
    as_text: bool = False


def budget_of(destination: str) -> Budget:
    """Return what a destination takes at most."""
    limits = {limit.id: limit.most for limit in DESTINATIONS[destination].limits}
    characters = limits.get("text-characters")
    if characters is not None:
        return Budget(characters, as_text=True)
    return Budget(limits["file-bytes"] or 0)


def can_be_split(bundle: Bundle, destination: str) -> bool:
    """Tell whether a first part of a whole bundle would fit there."""
    try:
        return bool(moved_members(bundle, budget_of(destination)))
    except BadCallError:
        return False


def moved_members(bundle: Bundle, budget: Budget) -> tuple[str, ...]:
    """Return the members that have to lie in the second part, in layout order.

    Raises:
        BadCallError: It is a part already, it fits as it is, or not even the rest of
            it fits.
    """
    if bundle.part is not None:
        raise BadCallError(
            "this is one part of a bundle already", advice="split the whole again"
        )
    movable = sorted(_movable(bundle), key=lambda member: _rank(bundle, member))
    paths = [member.path for member in movable]
    may_move = frozenset(paths)
    fixed = [path for path in bundle.members if path not in may_move]
    size = _Size(bundle, budget, movable)
    base = size.of(fixed)
    if base > budget.most:
        unit = "characters" if budget.as_text else "bytes"
        raise BadCallError(
            f"what has to stay together takes {base:,} {unit}, at most {budget.most:,}",
            advice="leave something out: reprobundle check BUNDLE --for …",
        )
    kinds = [
        [member.path for member in group]
        for _, group in itertools.groupby(movable, lambda one: _rank(bundle, one)[0])
    ]
    left = may_move.difference(_kept(size, fixed, kinds, budget.most))
    moved = tuple(path for path in bundle.members if path in left)
    if not moved:
        raise BadCallError(
            "the bundle fits as it is", advice="there is nothing to split"
        )
    return moved


def _kept(
    size: _Size, fixed: Sequence[str], kinds: Sequence[Sequence[str]], most: int
) -> list[str]:
    """Return which members stay beside `fixed`: of each kind as many as fit.

    They come smallest first; behind the first one that does not fit none is tried.
    What a member adds is counted as if it stood alone. As text members share what they
    have in common, so all of them together are measured again, and what is left of the
    room is given away once more, until nothing else fits.
    """
    kept: dict[str, None] = {}
    added = -1
    while added != len(kept):
        added = len(kept)
        taken = size.of([*fixed, *kept])
        for kind in kinds:
            for path in kind:
                if path in kept:
                    continue
                taken += size.added(path)
                if taken > most:
                    taken -= size.added(path)
                    break
                kept[path] = None
    return list(kept)


def _movable(bundle: Bundle) -> Iterable[Member]:
    for member in bundle.members.values():
        is_code = member.path.startswith("project/")
        if member.path == PYLOCK_MEMBER or (member.role in _MOVABLE and not is_code):
            yield member


def _rank(bundle: Bundle, member: Member) -> tuple[int, int, str]:
    """Return the place of a member in the order in which room is given away."""
    entry = bundle.content(member.path).entry
    if member.role in _REPLAYS_NEED:
        kind = 0
    elif member.path.startswith("runs/1/"):
        kind = 1
    else:
        kind = 2 if member.path == PYLOCK_MEMBER else 3
    return kind, entry.size_bytes, member.path


class _Size:
    """How much a first part with some members takes, on the safe side."""

    def __init__(
        self, bundle: Bundle, budget: Budget, movable: Sequence[Member]
    ) -> None:
        self._bundle = bundle
        self._budget = budget
        self._added: dict[str, int] = {}
        # What part.json lists: at worst every member that may be moved.
        self._spare_bytes = _SPARE_BYTES + sum(
            len(member.path.encode()) + 8 for member in movable
        )

    def added(self, path: str) -> int:
        """Return the most that one more member adds."""
        if path not in self._added:
            content = self._bundle.content(path)
            taken = _taken(content)
            if self._budget.as_text and taken <= TEXT_BYTES:
                alone = b"".join(map(content.stored, content.spans()))
                taken = int(text_characters(alone) / _TEXT_SHARE) + _HEADER_CHARACTERS
            self._added[path] = taken
        return self._added[path]

    def of(self, paths: Sequence[str]) -> int:
        """Return the bytes, or characters, of a part with the members `paths`."""
        contents = [self._bundle.content(path) for path in (*paths, MANIFEST_PATH)]
        contents += self._bundle.unsealed_contents().values()
        size_bytes = self._spare_bytes + sum(map(_taken, contents))
        if not self._budget.as_text:
            return size_bytes
        if size_bytes > TEXT_BYTES:
            return size_bytes
        stored = b"".join(
            content.stored(span) for content in contents for span in content.spans()
        )
        headers = _HEADER_CHARACTERS * len(contents) + self._spare_bytes // 3
        return int(text_characters(stored) / _TEXT_SHARE) + headers


def _taken(content: Content) -> int:
    """Return the most bytes that an entry takes, with its record in the directory."""
    name_bytes = len(content.entry.name.encode())
    whole = content.entry.end - content.entry.offset
    return whole + ALIGN_BYTES + CENTRAL.size + name_bytes
