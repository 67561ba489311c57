"""What a traced run met that MPS has not, or does in its own way."""

from __future__ import annotations

from reprobundle.format.record import (
    Float64Search,
    Float64Site,
    OperatorForm,
    TensorForm,
)
from reprobundle.run.events import (
    EventFile,
    Float64SearchEvent,
    Float64SiteEvent,
    OperatorFormEvent,
)
from reprobundle.run.facts import events_of
from reprobundle.run.paths_in_text import replace_all

Hide = list[tuple[str, str]]


def float64_search(files: tuple[EventFile, ...], hide: Hide) -> Float64Search:
    """Return where float64 met the steered device, over all processes.

    Args:
        files: Events of all processes.
        hide: Pairs of text and replacement applied to every place.
    """
    searches = [event for _, event in events_of(files, Float64SearchEvent)]
    reasons = dict.fromkeys(event.reason for event in searches if event.reason)
    return Float64Search(
        operators=sum(event.operators for event in searches),
        reason="; ".join(reasons),
        sites=tuple(
            Float64Site(
                how=event.how,
                operator=event.operator,
                dtype=event.dtype,
                where=replace_all(event.where, hide),
                phase=event.phase,
                count=event.count,
            )
            for _, event in events_of(files, Float64SiteEvent)
        ),
    )


def operator_forms(
    files: tuple[EventFile, ...], hide: Hide
) -> tuple[OperatorForm, ...]:
    """Return how the watched operators were called; arguments as above."""
    return tuple(
        OperatorForm(
            operator=event.operator,
            device=event.device,
            tensors=tuple(
                TensorForm(dtype=one.dtype, shape=one.shape, stride=one.stride)
                for one in event.tensors
            ),
            options=event.options,
            where=replace_all(event.where, hide),
            phase=event.phase,
            count=event.count,
        )
        for _, event in events_of(files, OperatorFormEvent)
    )
