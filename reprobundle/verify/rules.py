"""Which rule of the frozen policy applies to an output, a dtype, a key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Literal

from reprobundle.format.policy import MOST_RULES, OutputRule, Policy, Tolerance

DevicePair = Literal["same", "different"]

_SPLIT_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# A unit at the end of a key says how a quantity is written, not what it is.
_UNITS = frozenset(
    {"s", "sec", "secs", "ms", "us", "ns", "min", "mins", "h", "b", "kb", "mb", "gb"}
    | {"kib", "mib", "gib", "bytes"}
)


def rule_for(policy: Policy, name: str) -> OutputRule | None:
    """Return the first rule whose pattern matches the output `name`."""
    return next((rule for rule in policy.outputs if matches(name, rule.match)), None)


def matches(name: str, pattern: str) -> bool:
    """Return whether `name` matches a shell pattern, case and all."""
    return _compiled(pattern).match(name) is not None


# The standard library keeps 256 patterns up to Python 3.10: a policy may have more, and
# each would be compiled again for each output.
@lru_cache(maxsize=2 * MOST_RULES)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))


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
    not. What the rule keeps is never left out for its ending.
    """
    rule = rule_for(policy, name)
    exact = frozenset(rule.ignore if rule is not None else ())
    kept = frozenset(rule.keep if rule is not None else ())
    always = frozenset(" ".join(_words(key)) for key in policy.ignore_keys)
    longest = max((ending.count(" ") + 1 for ending in always), default=0)
    known: dict[str, bool] = {}

    def one(key: str) -> bool:
        if key not in known:
            known[key] = key in exact or (
                key not in kept and _ends_with(_words(key), always, longest)
            )
        return known[key]

    return lambda keys: any(one(key) for key in keys)


def _words(key: str) -> list[str]:
    spaced = _SPLIT_CASE.sub(" ", key).lower()
    return [word for word in re.split(r"[^0-9a-z]+", spaced) if word]


def _ends_with(words: list[str], endings: frozenset[str], longest: int) -> bool:
    """Return whether the last words are one of `endings`, of so many words at most."""
    candidates = [words]
    if len(words) > 1 and words[-1] in _UNITS:
        candidates.append(words[:-1])
    return any(
        " ".join(candidate[start:]) in endings
        for candidate in candidates
        for start in range(max(0, len(candidate) - longest), len(candidate))
    )


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Whether `name` matches one of the shell patterns; no pattern matches all."""
    wanted = tuple(patterns)
    return not wanted or any(matches(name, pattern) for pattern in wanted)
