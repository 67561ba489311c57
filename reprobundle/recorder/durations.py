"""Add up the durations of one phase: total, median, p95, and where warm-up ends."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_KEPT = 10_000
# A 95th percentile of fewer values is one of the two largest, and no percentile.
_FEWEST = 20
_STEADY_IN_A_ROW = 5
_SLACK = 1.25


class Total:
    """Sums over all entries of one phase, and a thinned series of durations.

    Attributes:
        pending: Durations in nanoseconds that are not added up yet. Between two
            kernels nothing of ours is in the caches, and appending to a list is the
            least that can be done there; `absorb` does the rest, many at a time.
    """

    __slots__ = (
        "_kept",
        "_stride",
        "_unwaited",
        "_warmup",
        "count",
        "longest_ns",
        "name",
        "pending",
        "synchronizations",
        "synchronized",
        "total_ns",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.total_ns = 0
        self.longest_ns = 0
        self.synchronized = "cpu"
        self.synchronizations = 0
        self.pending: list[int] = []
        self._kept: list[int] = []
        # The same entries as `_kept`, as a clock without the last wait has them; None
        # once an entry was not waited for.
        self._unwaited: list[int] | None = []
        self._stride = 1
        # Number and sum of the warm-up entries, decided at the first thinning.
        self._warmup: tuple[int, int] | None = None

    def absorb(self) -> None:
        """Add up what is pending. Another thread may append at the same time."""
        taken = self.pending[:]
        del self.pending[: len(taken)]
        while taken:
            first = -self.count % self._stride
            last = first + (_KEPT - len(self._kept) - 1) * self._stride
            now, taken = taken[: last + 1], taken[last + 1 :]
            self._absorb(now, now[first :: self._stride])

    def _absorb(self, entries: list[int], kept: list[int]) -> None:
        """Add entries of which these are kept; none of them was waited for."""
        self.count += len(entries)
        self.total_ns += sum(entries)
        self.longest_ns = max(self.longest_ns, *entries)
        if kept:
            self._kept += kept
            self._unwaited = None
        if len(self._kept) >= _KEPT:
            self._thin()

    def add(
        self, elapsed_ns: int, *, counted: bool = True, unwaited_ns: int | None = None
    ) -> None:
        """Add this time, and count it as an entry unless told otherwise.

        Args:
            elapsed_ns: Between two waits for the device.
            counted: Whether it was an entry; else only its time is added.
            unwaited_ns: The same entry, its end read before the last wait.
        """
        if self.pending:
            self.absorb()
        if counted:
            self._add(elapsed_ns, unwaited_ns)
        else:
            self.total_ns += elapsed_ns

    def _add(self, elapsed_ns: int, unwaited_ns: int | None) -> None:
        self.total_ns += elapsed_ns
        if self.count % self._stride == 0:
            self._kept.append(elapsed_ns)
            if unwaited_ns is None:
                self._unwaited = None
            elif self._unwaited is not None:
                self._unwaited.append(unwaited_ns)
            if len(self._kept) >= _KEPT:
                self._thin()
        self.count += 1
        if elapsed_ns > self.longest_ns:
            self.longest_ns = elapsed_ns

    def _thin(self) -> None:
        """Keep every second duration, evenly over the whole run.

        Keeping only the first ones would make the median that of the beginning. What
        the warm-up was is decided before, while every duration is still there.
        """
        if self._stride == 1:
            first = first_steady(self._kept)
            if first is not None:
                self._warmup = (first, sum(self._kept[:first]))
                for series in self._series():
                    del series[:first]
        for series in self._series():
            del series[1::2]
        self._stride *= 2

    def _series(self) -> tuple[list[int], ...]:
        kept, unwaited = self._kept, self._unwaited
        return (kept,) if unwaited is None else (kept, unwaited)

    def note(self, how: str) -> None:
        """Note how the device was synchronised for one clock reading."""
        if how == "cpu":
            return
        if how in ("none", "capturing") or self.synchronized == "none":
            self.synchronized = "none"
        else:
            self.synchronized = how
            self.synchronizations += 1

    def fields(self) -> dict[str, object]:
        """Return the totals as the event contract wants them."""
        self.absorb()
        warmup, durations = self._warmup, self._kept
        unwaited = self._unwaited or []
        if self._stride == 1:
            first = first_steady(durations)
            if first is not None:
                warmup = (first, sum(durations[:first]))
                durations = durations[first:]
                unwaited = unwaited[first:]
        ordered = sorted(durations)
        steady = warmup is not None and self.synchronized != "none"
        median_ns = _median(ordered) or 0
        unwaited_ns = _median(unwaited) if steady else None
        return {
            "name": self.name,
            "count": self.count,
            "total_ns": self.total_ns,
            "median_ns": median_ns,
            "p95_ns": percentile_95(ordered) if len(ordered) >= _FEWEST else None,
            "longest_ns": self.longest_ns,
            "warmup_count": warmup[0] if warmup else None,
            "warmup_ns": warmup[1] if warmup else None,
            "synchronized": self.synchronized,
            "synchronizations": self.synchronizations,
            "unwaited_median_ns": unwaited_ns,
            "unwaited_ratio": _ratio(unwaited_ns, median_ns),
        }


def _median(values: Sequence[int]) -> int | None:
    return sorted(values)[len(values) // 2] if values else None


def _ratio(unwaited_ns: int | None, median_ns: int) -> float | None:
    return unwaited_ns / median_ns if unwaited_ns is not None and median_ns else None


def percentile_95(ordered: Sequence[int]) -> int:
    """Return the 95th percentile of sorted values, by the nearest rank."""
    return ordered[-(-95 * len(ordered) // 100) - 1]


def first_steady(durations: Sequence[int]) -> int | None:
    """Return the number of entries before the steady state; None if it is not known.

    The steady state begins at the first of five entries in a row that are no slower
    than 1.25 times the 95th percentile of the second half. A run of entries instead of
    a fixed number of them is the rule of Georges, Buytaert and Eeckhout (Statistically
    rigorous Java performance evaluation, OOPSLA 2007, section 4.2); comparing with
    the end and not with each other follows Barrett et al. (Virtual machine warmup
    blows hot and cold, OOPSLA 2017): a slow stretch can be even too. The limit has one
    side only, for validation passes between training steps are quicker and no warm-up.

    Args:
        durations: In order, in nanoseconds; fewer than 20 decide nothing.
    """
    if len(durations) < _FEWEST:
        return None
    half = len(durations) // 2
    limit = _SLACK * percentile_95(sorted(durations[half:]))
    in_a_row = 0
    for position, duration in enumerate(durations):
        in_a_row = in_a_row + 1 if duration <= limit else 0
        if in_a_row == _STEADY_IN_A_ROW:
            first = position + 1 - _STEADY_IN_A_ROW
            return first if first <= half else None
    return None
