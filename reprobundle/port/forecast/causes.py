"""Find the forward operator that is refused first, of which another is the backward."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from reprobundle.format.forecast_report import ForecastOperator
from reprobundle.verify.mps_operators import base_name

_BACKWARD = re.compile(r"(.+)_backward(_data)?")
_FORWARD = re.compile(r"_forward(_only)?$")


def with_causes(operators: Iterable[ForecastOperator]) -> list[ForecastOperator]:
    """Return the operators, each backward with the forward that MPS refuses before it.

    Both stand for one cause: on a Mac the command ends at the forward, or both run on
    the CPU under the fallback variable.

    Args:
        operators: As judged.
    """
    found = list(operators)
    refused = [one for one in found if one.place == "missing"]
    forward = {_stem(one.operator): one.operator for one in refused}
    return [_with_cause(one, forward) for one in found]


def _stem(name: str) -> str:
    return _FORWARD.sub("", base_name(name).strip("_"))


def _with_cause(one: ForecastOperator, forward: dict[str, str]) -> ForecastOperator:
    match = _BACKWARD.fullmatch(base_name(one.operator).strip("_"))
    if one.place != "missing" or match is None:
        return one
    # `_embedding_bag_dense_backward` belongs to `_embedding_bag`.
    names = [stem for stem in forward if f"{match[1]}_".startswith(f"{stem}_")]
    if not names:
        return one
    cause = forward[max(names, key=len)]
    shown = cause.removeprefix("aten.").removesuffix(".default")
    note = f"the backward of {shown}, which is refused first: one cause"
    return msgspec.structs.replace(one, follows=cause, note=note)
