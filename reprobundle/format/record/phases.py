"""Times of the parts of a run."""

from typing import Annotated, Literal

import msgspec

from reprobundle.format.record.values import Count


class Phase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Time spent in one phase of the main process.

    Attributes:
        name: ``import``, ``model``, ``transfer``, ``data``, ``forward``,
            ``backward``, ``optimizer``, ``checkpoint``, ``export``, or a name the
            script gave.
        count: How often it was entered.
        total_ns: Sum over all entries.
        median_ns: Median over the kept durations (at most 10,000 of them) after the
            warm-up; over all of them where the warm-up is not known.
        p95_ns: Their 95th percentile (nearest rank); None for fewer than 20.
        longest_ns: The longest single entry, warm-up included.
        warmup_count: Entries before the steady state (rule in docs/recorder.md); None
            when it is not known: fewer than 20 entries, or none was reached.
        warmup_ns: Sum over these entries.
        synchronized: How the device was synchronised before each clock reading:
            ``cpu`` (nothing to wait for), ``cuda``, ``mps``, or ``none``: then the
            figures are no durations of device work and are never shown as such.
        synchronizations: Number of synchronisations made, two for each entry.
        unwaited_median_ns: The self-check: median over the same entries as
            `median_ns`, each read a second time just before its last wait, which is
            what a clock that does not wait would have said. None where nothing was
            waited for, or where the warm-up is not known.
        unwaited_ratio: `unwaited_median_ns` divided by `median_ns`, as a plain number:
            0.12 says that a clock which does not wait sees 12 % of the time. None
            where one of the two is not known or the median is 0.
    """

    name: str
    count: Count
    total_ns: Count
    median_ns: Count
    p95_ns: Count | None = None
    longest_ns: Count
    warmup_count: Count | None = None
    warmup_ns: Count | None = None
    synchronized: Literal["cpu", "cuda", "mps", "none"]
    synchronizations: Count = 0
    unwaited_median_ns: Count | None = None
    unwaited_ratio: Annotated[float, msgspec.Meta(ge=0)] | None = None
