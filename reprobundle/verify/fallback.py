"""Whether operators of a run went to the CPU: three witnesses, one answer.

The warnings of torch and the profile show a fallback itself; the census shows what the
device was asked for, and the table of the torch version what it cannot do. A run on MPS
counts as free of fallback only if all three looked and saw none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reprobundle.format.findings import Finding
from reprobundle.format.policy import Policy
from reprobundle.format.record import Fallback, OperatorUse, Record, Witness
from reprobundle.verify.checks import finding
from reprobundle.verify.mps_operators import ON_CPU, OperatorTable, base_name, table_of

# Only these devices hand operators to the CPU by themselves.
FALLS_BACK = frozenset({"mps", "mps-standin"})
WITNESSES = ("warnings", "profiler", "census")
MOST_NAMED = 8
_NOT_CENTRAL = frozenset({"data", "import", "checkpoint", "export", "transfer"})


class _Seen(NamedTuple):
    """What all witnesses of one replay saw.

    Attributes:
        witnesses: Those that looked, by name.
        passes: Seen directly, in the measured and in the traced run.
        lacking: Operators of the census that the table has no kernel for.
        refused: Operators that the device refused, so that the script did something
            else in their place.
    """

    witnesses: dict[str, Witness]
    passes: tuple[tuple[Fallback, ...], ...]
    lacking: tuple[OperatorUse, ...]
    refused: tuple[OperatorUse, ...]

    @property
    def fallbacks(self) -> tuple[Fallback, ...]:
        """All that was seen directly."""
        return tuple(item for one in self.passes for item in one)


def check_fallback(
    record: Record, traced: Record, policy: Policy, *, used: str
) -> Iterator[Finding]:
    """Yield whether operators ran on the CPU, and whether the witnesses agree.

    Args:
        record: The replay.
        traced: Its evidence pass; the replay itself where none was made.
        policy: The frozen policy.
        used: Device of the run.
    """
    can_fall_back = any(name in FALLS_BACK for name in used.split("+"))
    seen = _seen(record, traced)
    stated = "seen" in (record.devices.fallback, traced.devices.fallback)
    # A record that lists a fallback is not believed when it says that there is none.
    # Where no MPS is, it refuses whatever a script names it for.
    refused = can_fall_back and seen.refused
    if stated or seen.fallbacks or seen.lacking or refused:
        yield _mixed(seen, traced, record, policy, used)
    elif can_fall_back:
        yield _clean(seen, record, traced, used)
    elif record.devices.fallback == "none-possible":
        yield finding(
            "cpu-fallback", "pass", record.devices.reason, got="none-possible"
        )
    else:
        yield finding(
            "cpu-fallback",
            "not-applicable",
            f"{used} hands no operator to the CPU by itself",
            got=record.devices.fallback,
        )
    if can_fall_back:
        yield _agreement(seen, traced)


def _seen(record: Record, traced: Record) -> _Seen:
    pair = [record] if traced is record else [record, traced]
    witnesses: dict[str, Witness] = {
        witness.name: witness
        for one in pair
        for witness in one.devices.witnesses
        if witness.looked
    }
    passes = tuple(one.devices.fallbacks for one in pair)
    table = _table(traced)
    lacking = tuple(
        use
        for use in traced.devices.operators
        if table is not None
        and use.device == "mps"
        and table.placement(use.operator) in ON_CPU
        and use.refused < use.count
    )
    refused = tuple(
        use for use in traced.devices.operators if use.device == "mps" and use.refused
    )
    return _Seen(witnesses, passes, lacking, refused)


def _table(record: Record) -> OperatorTable | None:
    version = record.environment.get("torch.version")
    return table_of(str(version.value)) if version and version.value else None


def _mixed(
    seen: _Seen, traced: Record, record: Record, policy: Policy, used: str
) -> Finding:
    allowed = policy.intent.fallback == "allowed"
    note = "; the author allows it, it is shown all the same" if allowed else ""
    told = "; ".join(_operators(seen, traced)) or record.devices.reason
    return finding(
        "cpu-fallback",
        "warn",
        f"a mixed run: operators ran on the CPU instead of {used} ({told}){note}",
        got="seen",
        advice="this is not a result of that device alone; its times and memory are "
        "not comparable with those of a pure run",
    )


def _operators(seen: _Seen, traced: Record) -> Iterator[str]:
    """Yield one text for each operator, most frequent first."""
    names = [base_name(one.operator) for one in seen.fallbacks]
    names += [base_name(use.operator) for use in (*seen.lacking, *seen.refused)]
    counted = [(_count(seen, name), name) for name in dict.fromkeys(names)]
    for count, name in sorted(counted, reverse=True)[:MOST_NAMED]:
        uses = [u for u in traced.devices.operators if base_name(u.operator) == name]
        yield f"{name} {count} times{_details(seen, traced, name, uses)}"
    if len(counted) > MOST_NAMED:
        yield f"and {len(counted) - MOST_NAMED} more operators"


def _count(seen: _Seen, name: str) -> int:
    """Return the largest count any one witness gives in one pass."""
    counts: dict[tuple[int, str], int] = {}
    for number, found in enumerate(seen.passes):
        for one in found:
            if base_name(one.operator) == name:
                key = (number, one.witness)
                counts[key] = counts.get(key, 0) + one.count
    # No set: forks give rows that are equal, and each of them counts.
    told = [*seen.lacking, *(one for one in seen.refused if one not in seen.lacking)]
    by_table = (use.count for use in told if base_name(use.operator) == name)
    return max((*counts.values(), sum(by_table)))


def _details(
    seen: _Seen, traced: Record, name: str, uses: Sequence[OperatorUse]
) -> str:
    mine = [one for one in seen.fallbacks if base_name(one.operator) == name]
    phases = dict.fromkeys([*(u.phase for u in uses), *(one.phase for one in mine)])
    places = dict.fromkeys([*(one.where for one in mine), *(u.where for u in uses)])
    place = next(filter(None, places), "")
    parts = [f"in {' and '.join(p for p in phases if p)}"] if any(phases) else []
    moved = sum(use.bytes for use in uses)
    parts += [f"{moved:,} bytes moved"] if moved else []
    parts += ["central: in every step"] if _is_central(uses, traced) else []
    if any((_table_letter(traced, use) == "always-cpu") for use in uses):
        parts.append("whatever the fallback variable says")
    refused = sum(use.refused for use in uses)
    if refused:
        parts.append(f"refused by the device {refused} times, and the script went on")
    parts += [f"at {place}"] if place else []
    return f" ({', '.join(parts)})" if parts else ""


def _table_letter(traced: Record, use: OperatorUse) -> str:
    table = _table(traced)
    return table.placement(use.operator) if table else "unknown"


def _is_central(uses: Sequence[OperatorUse], traced: Record) -> bool:
    """Whether an operator belongs to the computation of every step."""
    steps = max((one.total_steps for one in traced.devices.witnesses), default=0)
    return any(use.steps >= steps > 0 and use.phase not in _NOT_CENTRAL for use in uses)


def _clean(seen: _Seen, record: Record, traced: Record, used: str) -> Finding:
    """Say that nothing fell back, or why that is not known."""
    table = _table(traced)
    idle = [name for name in WITNESSES if name not in seen.witnesses]
    processes = (*record.processes, *traced.processes)
    reason = ""
    if record.pass_name == "measured" and not _listened(record):
        reason = "nobody listened to the warnings of the measured run"
    elif not all(process.entered for process in processes):
        reason = "a Python process ran without the recorder"
    elif cut := _cut_of_census(traced):
        reason = f"the census is not whole: {cut}"
    elif idle:
        reason = f"these witnesses did not look: {', '.join(idle)}"
    elif traced.devices.fallback != "none-seen":
        reason = traced.devices.reason or "the operators were not traced"
    elif table is None:
        reason = "there is no table of operators for this version of torch"
    elif not traced.devices.operators:
        reason = "the census holds no operator"
    if reason:
        return finding(
            "cpu-fallback",
            "not-checked",
            f"whether operators of {used} ran on the CPU is not known: {reason}",
            got=record.devices.fallback,
            advice="replay with --passes measured,evidence",
        )
    where = "; ".join(_coverage(seen.witnesses[name]) for name in WITNESSES)
    number = sum(use.count for use in traced.devices.operators if use.device != "cpu")
    return finding(
        "cpu-fallback",
        "pass",
        f"three witnesses saw none in {number:,} operator calls: {where}",
        got="none-seen",
    )


def _cut_of_census(traced: Record) -> str:
    """Return why the census did not see the whole run; it alone sees refusals."""
    return next(
        (one.reason for one in traced.devices.witnesses if one.name == "census"), ""
    )


def _listened(record: Record) -> bool:
    return any(
        one.name == "warnings" and one.looked for one in record.devices.witnesses
    )


def _coverage(witness: Witness) -> str:
    if witness.is_whole:
        return f"{witness.name} in the whole run"
    spans = (f"{a}" if a == b else f"{a}-{b}" for a, b in witness.steps)
    why = f" ({witness.reason})" if witness.reason else ""
    if not witness.steps:
        return f"{witness.name} in part of the run{why}"
    if witness.steps == ((0, 0),):
        return f"{witness.name} at the beginning of step 1{why}"
    return f"{witness.name} in steps {', '.join(spans)} of {witness.total_steps}{why}"


def _agreement(seen: _Seen, traced: Record) -> Finding:
    """Compare what two witnesses saw where both looked."""
    if not all(name in seen.witnesses for name in WITNESSES):
        missing = ", ".join(n for n in WITNESSES if n not in seen.witnesses)
        reason = f"these witnesses did not look: {missing}"
        return finding("fallback-witnesses", "not-checked", reason)
    by_warning = _names(traced, "warnings")
    by_profile = _names(traced, "profiler")
    by_table = {base_name(use.operator) for use in seen.lacking}
    doubts = [
        f"{name} was profiled on the CPU, and no warning said so"
        for name in sorted(by_profile - by_warning)
    ]
    if seen.witnesses["profiler"].is_whole:
        doubts += [
            f"{name} warned of fallback, and the profile shows none"
            for name in sorted(by_warning - by_profile)
        ]
    doubts += [
        f"{name} has no kernel by the table, and nobody saw it fall back"
        for name in sorted(by_table - by_warning - by_profile)
    ]
    if not doubts:
        return finding("fallback-witnesses", "pass", "all three agree")
    return finding("fallback-witnesses", "warn", "; ".join(doubts[:MOST_NAMED]))


def _names(traced: Record, witness: str) -> set[str]:
    """Return what a witness saw; kernels that leave by themselves are no operators.

    Their warnings name none, and no profile shows them (`in-kernel-detour`).
    """
    return {
        base_name(one.operator)
        for one in traced.devices.fallbacks
        if one.witness == witness and "::" in one.operator.partition(" ")[0]
    }
