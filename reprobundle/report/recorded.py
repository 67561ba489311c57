"""Show what the recorder wrote down about one run besides its inputs and outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from reprobundle.format.record import (
    Fact,
    FactValue,
    Randomness,
    Record,
    Remark,
)
from reprobundle.report import text
from reprobundle.report.layout import (
    LABEL_WIDTH,
    flow,
    more,
    paragraph,
)
from reprobundle.report.ranked import STATES, seed_owner, whose
from reprobundle.report.screen import Line, Screen, Span, Style
from reprobundle.verify.environment import numeric_kind

# What one screen holds of each kind; all of it with ``verbose``.
MOST_CALLS = 4
MOST_UNKNOWN = 4
MOST_REMARKS = 8
LONGEST_FACT = 44

# What says which machine and which code it was.
_IDENTIFYING = (
    "cpu.logical",
    "cpu.model",
    "git.",
    "gpu.",
    "machine.",
    "memory.total_bytes",
    "os.name",
    "os.version",
    "os.build",
    "os.kernel",
    "python.version",
    "python.platform",
    "recorder.",
)

_SEVERITY: dict[str, Style] = {"gap": "dim", "warning": "warn", "failure": "bad"}
_SERIOUS_FIRST = ("failure", "warning", "gap")


def randomness_lines(record: Record, screen: Screen, *, verbose: bool) -> list[Line]:
    """Return who set which seed, and which generators were fingerprinted."""
    randomness = record.randomness
    calls = randomness.calls
    shown = calls if verbose else calls[:MOST_CALLS]
    words = [
        f"{seed_owner(call, record)}{call.function}({call.value}) "
        f"at {call.where or 'an unknown place'}"
        for call in shown
    ]
    if randomness.seed is not None:
        words.insert(0, f"{randomness.seed} set before the command's own code")
    if len(calls) > len(shown):
        words.append(f"and {text.count(len(calls) - len(shown))} more calls")
    lines = flow(screen, "seeds", [(Span(word),) for word in words or ["none set"]])
    hash_seed = randomness.python_hash_seed or "not set"
    facts: list[Line] = [(Span(f"PYTHONHASHSEED {hash_seed}"),)]
    for title, states in (
        ("initial state", randomness.initial),
        ("final state", randomness.final),
        ("test draws", randomness.draws),
    ):
        facts.append((Span(f"{title}: {', '.join(states) or 'not recorded'}"),))
    if randomness.absent:
        facts.append((Span(f"never loaded: {', '.join(randomness.absent)}"),))
    return [
        *lines,
        *flow(screen, "generators", facts),
        *whose(record, screen, STATES),
        *_beginning_lines(randomness, screen),
    ]


def _beginning_lines(randomness: Randomness, screen: Screen) -> list[Line]:
    """Return what was kept of the run's start, and how its data was loaded."""
    kinds = Counter(tensor.kind for tensor in randomness.start if tensor.fingerprint)
    words = [text.plural(count, f"{kind} tensor") for kind, count in kinds.items()]
    unread = sum(not tensor.fingerprint for tensor in randomness.start)
    if unread:
        words.append(f"{text.count(unread)} not read")
    for one in randomness.loaders[:1]:
        workers = text.plural(one.workers, "worker")
        method = f" by {one.start_method}" if one.start_method else ""
        words.append(
            f"data loader: base seed {one.base_seed}, batch size {one.batch_size}, "
            f"{workers}{method}"
        )
    return flow(screen, "started from", [(Span(word),) for word in words])


def environment_lines(
    environment: Mapping[str, Fact], screen: Screen, *, verbose: bool
) -> list[Line]:
    """Return the known facts by group, then the unknown ones with the reason.

    Without `verbose` only those that name the machine or are known to change numbers.
    """
    known = {name: fact for name, fact in environment.items() if not fact.unknown}
    shown = known if verbose else {n: f for n, f in known.items() if _is_telling(n)}
    groups: dict[str, list[Line]] = {}
    for name, fact in shown.items():
        group, rest = _grouped(name)
        value = _fact(name, fact.value)
        if not verbose:
            value = text.shorten(
                screen.safe(value), LONGEST_FACT, screen.marks.ellipsis
            )
        item = (Span(f"{rest} ", "dim"), Span(value))
        groups.setdefault(group, []).append(item)
    lines: list[Line] = []
    for group, items in groups.items():
        lines += flow(screen, group, items)
    lines += more(screen, len(known) - len(shown), "known fact")
    return [*lines, *_unknown(environment, screen, verbose=verbose)]


def _grouped(name: str) -> tuple[str, str]:
    """Return the heading of a fact and its name below it.

    A heading stands at the left edge, where nothing a stranger wrote may stand.
    """
    group, _, rest = name.partition(".")
    plain = group.isascii() and group.isalpha() and group.islower()
    if rest and plain and len(group) < LABEL_WIDTH:
        return group, rest
    return "other", name


def _is_telling(name: str) -> bool:
    return name.startswith(_IDENTIFYING) or numeric_kind(name) is not None


def _fact(name: str, value: FactValue) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    if name.endswith("_bytes") and isinstance(value, int) and value >= 0:
        return text.size(value)
    return "empty" if value == "" else str(value)


def _unknown(
    environment: Mapping[str, Fact], screen: Screen, *, verbose: bool
) -> list[Line]:
    reasons: dict[str, list[str]] = {}
    for name, fact in environment.items():
        if fact.unknown:
            reasons.setdefault(fact.unknown, []).append(name)
    shown = list(reasons.items())
    shown = shown if verbose else shown[:MOST_UNKNOWN]
    lines: list[Line] = []
    for at, (reason, names) in enumerate(shown):
        words = f"{', '.join(names)}: {reason}"
        lines += paragraph(screen, "" if at else "unknown", words)
    return [*lines, *more(screen, len(reasons) - len(shown), "reason")]


def remark_lines(record: Record, screen: Screen, *, verbose: bool) -> list[Line]:
    """Return what the run showed that a reader must know, the serious things first."""
    remarks = sorted(
        record.remarks, key=lambda remark: _SERIOUS_FIRST.index(remark.severity)
    )
    if not remarks:
        return paragraph(screen, "remarks", "none")
    shown = remarks if verbose else remarks[:MOST_REMARKS]
    lines: list[Line] = []
    for at, remark in enumerate(shown):
        style = _SEVERITY[remark.severity]
        label = "" if at else "remarks"
        lines += paragraph(screen, label, _remark(remark), style=style, whole=verbose)
    return [*lines, *more(screen, len(remarks) - len(shown), "remark")]


def _remark(remark: Remark) -> str:
    place = f" at {remark.where}" if remark.where else ""
    return f"{remark.severity}: {remark.id}{place}: {remark.text}"
