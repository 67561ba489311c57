"""Remember which files were reported, across the forks of one process.

A data loader forks its workers anew for every epoch, and each of them opens the same
images again. Without a memory that the forks share, a long run would report a million
files a hundred times.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap

# Eight bytes a place; pages that nobody touches take no memory.
_PLACES = 1 << 20
_PROBES = 16
_PLACE_BYTES = 8
_MASK = (1 << 64) - 1


class OpenedOnce:
    """A set of (path, mode) pairs that keeps 64-bit hashes only.

    The process that made it keeps a set of its own. Its forks inherit that set, and
    share what they add in a table of anonymous shared memory. Two forks that add at
    the same instant may both report a file, which does no harm. A full table forgets,
    which costs repeated events and loses none.
    """

    def __init__(self) -> None:
        self._own: set[int] = set()
        self._shared: mmap | None = None
        self._in_fork = False
        self._table = _shared_table()

    def continue_in_fork(self) -> None:
        """Use the table that the forks share from now on."""
        self._in_fork = True

    def contains(self, path: str, write: bool) -> bool:
        """Tell whether the pair was added here or by a sibling fork."""
        key = hash((path, write))
        return key in self._own or (self._in_fork and self._find(key))

    def add(self, path: str, write: bool) -> None:
        """Add a pair."""
        key = hash((path, write))
        self._own.add(key)
        if self._in_fork and self._table is not None:
            place = self._place(key, wanted=0)
            if place >= 0:
                self._table[place] = key & _MASK

    def _find(self, key: int) -> bool:
        return self._place(key, wanted=key & _MASK) >= 0

    def _place(self, key: int, *, wanted: int) -> int:
        """Return the first place that holds `wanted` among those `key` may take."""
        if self._table is None:
            return -1
        for step in range(_PROBES):
            place = (key + step) % _PLACES
            if self._table[place] == wanted:
                return place
        return -1


def _shared_table() -> memoryview | None:
    try:
        from mmap import mmap

        return memoryview(mmap(-1, _PLACES * _PLACE_BYTES)).cast("Q")
    except (ImportError, OSError, ValueError, TypeError):
        return None
