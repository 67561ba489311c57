"""Put the observers of a forecast together, by what it was asked for."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os

from .asked_device import AskedByValue
from .drawn_inputs import DrawnInputs
from .dry import Dry
from .float64_sites import Float64Sites
from .jsontext import decode
from .named_mps import NamedMps
from .operator_forms import OperatorForms
from .refusals import Refusals
from .steered_census import SteeredCensus
from .steered_crossings import SteeredCrossings
from .told_device import ToldDevice
from .whole_layers import WholeLayers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .evidence import Observer
    from .operators import OperatorStream
    from .phases import Clock
    from .session import Session

_ASKED = "forecast.json"


class Forecasting:
    """The observers of one process of a forecast.

    Args:
        session: Whose folder holds what was asked for: ``dry``, whether MPS is
            ``named`` in the command or its files, and the operators to ``refuse``.
        clock: Knows the step and the open phase.

    Attributes:
        observers: In the order they are called in.
    """

    def __init__(self, session: Session, clock: Clock) -> None:
        asked = _asked(session.folder)
        sites = Float64Sites(session, clock)
        crossings = SteeredCrossings(session, clock, sites.steered)
        sites.on_arrival = crossings.arrived
        self._sites = sites
        layers = WholeLayers()
        self._refusals: Refusals | None = None
        if asked.get("refuse") is not None:
            operators = frozenset(asked["refuse"])
            self._refusals = Refusals(session, operators, sites.holds)
            sites.on_site = self._refusals.float64
            crossings.on_mixed = self._refusals.mixed
            sites.steered.after = self._refusals.after
        self.observers: list[Observer] = [
            self._named(session, asked) if asked.get("named") else ToldDevice(session),
            *([Dry(session)] if asked.get("dry") else []),
            layers,
            sites,
            crossings,
            SteeredCensus(session, clock, sites.holds, layers.layer_of),
            OperatorForms(session, clock, sites.holds, layers.layer_of),
            DrawnInputs(session),
        ]

    def _named(self, session: Session, asked: dict[str, Any]) -> Observer:
        """Return what lets the CPU stand for MPS, before anything else looks."""
        sites = self._sites
        named = NamedMps(session, sites.holds, dry=bool(asked.get("dry")))
        sites.steered.asked = AskedByValue(session.project, sites.holds, named)
        return named

    def attach(self, stream: OperatorStream) -> None:
        """Have the stream raise what MPS would."""
        refusals = self._refusals
        if refusals is None:
            return

        def before(operator: Any, arguments: Any, named: Any) -> None:
            refusals.before(operator, _tensors((*arguments, *named.values())))

        stream.before = before
        stream.after = refusals.after


def _tensors(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _tensors(value)
        elif hasattr(value, "untyped_storage"):
            yield value


def _asked(folder: str) -> dict[str, Any]:
    with open(os.path.join(folder, _ASKED), encoding="utf-8") as file:
        asked: dict[str, Any] = decode(file.read())
    return asked
