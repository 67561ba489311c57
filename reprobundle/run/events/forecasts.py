"""Events of a forecast: what a run on the CPU says of a run on MPS."""

from __future__ import annotations

from typing import Literal

from reprobundle.run.events.base import Event


class SteeredOperatorEvent(Event, frozen=True, tag="steered_operator"):
    """An operator of a forecast: whether it ran on steered tensors, and where.

    `layer` names what MPS is asked for in its place, where it is part of that;
    `unlike` what its tensors are that no table of operators is about.
    """

    operator: str
    phase: str
    steered: bool
    count: int
    steps: int
    where: str
    layer: str = ""
    unlike: str = ""


class SteeredEndEvent(Event, frozen=True, tag="steered_end"):
    """How far a forecast saw, and the largest size of steered memory at one time."""

    steps: int
    peak_bytes: int
    reason: str = ""


class SteeredCrossingEvent(Event, frozen=True, tag="steered_crossing"):
    """A place where data pass between device and CPU, or where both mix."""

    kind: Literal["mixed-devices", "to-cpu", "scalar-read", "to-device"]
    operator: str
    where: str
    phase: str
    count: int
    bytes: int
    steps: int


class SteeredInputsEvent(Event, frozen=True, tag="steered_inputs"):
    """How many tensors given to outermost modules were nothing but draws."""

    drawn: int
    others: int


class SteeredInventedEvent(Event, frozen=True, tag="steered_invented"):
    """A place that asked a dry run for values."""

    where: str
    how: Literal["value", "size", "array", "list"]
    count: int


class SteeredRefusalEvent(Event, frozen=True, tag="steered_refusal"):
    """What was raised in the command in the place of MPS."""

    where: str
    error: str
