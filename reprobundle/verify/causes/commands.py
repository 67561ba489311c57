"""The one change to try next, as a command line that can be pasted.

Whatever a record or a file name brings is quoted: the line goes into a shell.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from fnmatch import fnmatchcase

from reprobundle.format.findings import EnvironmentDifference
from reprobundle.verify.causes.case import Case

# Fact → the switch of ``--set`` that brings it back.
_SWITCHES: tuple[tuple[str, str], ...] = (
    ("torch.matmul_precision", "matmul_precision"),
    ("torch.*allow_tf32", "allow_tf32"),
    ("torch.*fp32_precision", "allow_tf32"),
    ("torch.*reduced_precision*", "reduced_precision_sums"),
    ("torch.deterministic", "deterministic"),
    ("torch.cudnn.deterministic", "deterministic"),
    ("torch.mkldnn.deterministic", "deterministic"),
    ("torch.cudnn.benchmark", "benchmark"),
    ("env.PYTORCH_MPS_FAST_MATH", "fast_math"),
)
_TRUE = frozenset({"true", "tf32", "1"})
_FALSE = frozenset({"false", "ieee", "none", "0", "(unset)"})
_PRECISIONS = frozenset({"highest", "high", "medium"})


def replayed(case: Case, options: str = "") -> str:
    """Return a replay of the bundle with these options."""
    return f"reprobundle replay {case.bundle} {options}".rstrip()


def packed(case: Case, options: str) -> str:
    """Return how the reference's own command is packed with these options."""
    command = shlex.join(case.reference.command.argv)
    return f"reprobundle pack {options} -- {command}"


def with_setting(case: Case, name: str, value: str) -> str:
    """Return a replay with one variable or switch of a numeric library set."""
    return replayed(case, f"--set {shlex.quote(f'{name}={value}')}")


def back(case: Case, one: EnvironmentDifference) -> str:
    """Return the replay in which a fact is as in the reference, or nothing.

    A variable that the reference did not have is not set by a plain replay either.
    """
    name = one.name.removeprefix("end.")
    switch = next((to for pattern, to in _SWITCHES if fnmatchcase(name, pattern)), "")
    if switch:
        value = _value(switch, one.reference)
        return with_setting(case, switch, value) if value else ""
    if name.startswith("env.") and one.reference == "(unset)":
        return replayed(case)
    if name.startswith("env."):
        return with_setting(case, name.removeprefix("env."), one.reference)
    return ""


def _value(switch: str, fact: str) -> str:
    plain = fact.lower()
    if switch == "matmul_precision":
        return plain if plain in _PRECISIONS else ""
    return "true" if plain in _TRUE else "false" if plain in _FALSE else ""


def filled(case: Case, command: str, values: Mapping[str, str] | None = None) -> str:
    """Return a command of the table with the bundle and other values put in."""
    quoted = {name: shlex.quote(value) for name, value in (values or {}).items()}
    return command.format(bundle=case.bundle, **quoted)
