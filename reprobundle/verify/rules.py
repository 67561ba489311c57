"""Which rule of the frozen policy applies to an output, a dtype, a key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Literal

from reprobundle.format.policy import OutputRule, Policy, Tolerance

DevicePair = Literal["same", "different"]

_SPLIT_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# A unit at the end of a key says how a quantity is written, not what it is.
_UNITS = frozenset(
    {"s", "sec", "secs", "ms", "us", "ns", "min", "mins", "h", "b", "kb", "mb", "gb"}
    | {"kib", "mib", "gib", "bytes"}
)


def rule_for(policy: Policy, name: str) -> OutputRule | None:
    """Return the first rule whose pattern matches the output `name`."""
    return next(
        (rule for rule in policy.outputs if fnmatchcase(name, rule.match)), None
    )


def tolerance_for(
    policy: Policy, name: str, dtype: str, devices: DevicePair
) -> Tolerance | None:
    """Return the tolerance of a dtype in the output `name`.

    Returns:
        The output's own tolerance for the dtype, else its own for all but `pixel`, else
        that of the dtype for this kind of device pair, else None: what the policy does
        not mention is compared exactly.
    """
    rule = rule_for(policy, name)
    if rule is not None:
        # A rule meant for numbers must not loosen the figures that it happens to match.
        own = rule.dtypes.get(dtype, None if dtype == "pixel" else rule.tolerance)
        if own is not None:
            return own
    for row in policy.tolerances:
        if (row.dtype, row.devices) == (dtype, devices):
            return row.tolerance
    return None


def ignores(policy: Policy, name: str) -> Callable[[Sequence[str]], bool]:
    """Return a test whether one of some keys is left out of the output `name`.

    A key is left out if the output's rule names it exactly, or if it is, or ends
    with, one of the policy's `ignore_keys` in any case and with any unit:
    ``train_seconds``, ``wallTime`` and ``elapsed_ms`` are times, ``time_constant`` is
    not.
    """
    rule = rule_for(policy, name)
    exact = frozenset(rule.ignore if rule is not None else ())
    always = frozenset(" ".join(_words(key)) for key in policy.ignore_keys)
    known: dict[str, bool] = {}

    def one(key: str) -> bool:
        if key not in known:
            known[key] = key in exact or _ends_with(_words(key), always)
        return known[key]

    return lambda keys: any(one(key) for key in keys)


def _words(key: str) -> list[str]:
    spaced = _SPLIT_CASE.sub(" ", key).lower()
    return [word for word in re.split(r"[^0-9a-z]+", spaced) if word]


def _ends_with(words: list[str], endings: frozenset[str]) -> bool:
    candidates = [words]
    if len(words) > 1 and words[-1] in _UNITS:
        candidates.append(words[:-1])
    return any(
        " ".join(candidate[start:]) in endings
        for candidate in candidates
        for start in range(len(candidate))
    )


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Whether `name` matches one of the shell patterns; no pattern matches all."""
    wanted = tuple(patterns)
    return not wanted or any(fnmatchcase(name, pattern) for pattern in wanted)
