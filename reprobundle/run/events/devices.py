"""Devices, witnesses of fallback, operators and transfers."""

from typing import Literal

import msgspec

from reprobundle.run.events.base import Event


class Device(Event, frozen=True, tag="device"):
    """A device type was seen for the first time, and on what."""

    device: str
    seen_on: str


class WitnessEvent(Event, frozen=True, tag="witness"):
    """Whether and where a witness of CPU fallback looked.

    ``steps`` are inclusive ranges of optimizer steps, counted from 1; empty for a
    witness that looks at the whole run. What follows the last step counts as one more.
    """

    name: Literal["warnings", "profiler", "census"]
    looked: bool
    steps: tuple[tuple[int, int], ...] = ()
    total_steps: int = 0
    reason: str = ""


class FallbackEvent(Event, frozen=True, tag="fallback"):
    """A witness saw an operator fall back; of one key the largest count holds."""

    witness: Literal["warnings", "profiler"]
    operator: str
    count: int
    where: str = ""
    phase: str = ""


class OperatorEvent(Event, frozen=True, tag="operator"):
    """Calls of one operator on one device in one phase, and in how many steps."""

    operator: str
    device: str
    phase: str
    count: int
    bytes: int
    steps: int
    where: str
    refused: int = 0
    out_of_memory: int = 0


class TransferEvent(Event, frozen=True, tag="transfer"):
    """Copies between host and device that the script asked for, by place."""

    kind: Literal["to-device", "from-device", "scalar-read"]
    where: str
    non_blocking: bool
    count: int
    bytes: int


class IndexRange(Event, frozen=True, tag="index_range"):
    """An operator looked up indices that its table does not have."""

    operator: str
    where: str
    low: int
    high: int
    size: int


class Float64SiteEvent(Event, frozen=True, tag="float64_site"):
    """A place where float64 meets the steered device; fields as in `Float64Site`."""

    how: Literal["moved", "made", "computed"]
    operator: str
    dtype: str
    where: str
    phase: str
    count: int


class Float64SearchEvent(Event, frozen=True, tag="float64_search"):
    """How many operators and moves were looked at, and why a place may be missing."""

    operators: int
    reason: str = ""


class FormOfTensor(msgspec.Struct, frozen=True, kw_only=True):
    """Dtype, shape and strides of one argument."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...] = ()


class OperatorFormEvent(Event, frozen=True, tag="operator_form"):
    """How an operator was called; fields as in `record.OperatorForm`."""

    operator: str
    device: str
    tensors: tuple[FormOfTensor, ...]
    options: dict[str, str]
    where: str
    phase: str
    count: int


class MappedEvent(Event, frozen=True, tag="mapped"):
    """A call that names CUDA was made for another device; the largest count holds.

    Fields as in `reprobundle.format.record.MappedCall`.
    """

    call: str
    asked: str
    became: str
    where: str
    count: int
