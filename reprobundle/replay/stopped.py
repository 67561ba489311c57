"""The record of a replay that stopped before its command could start."""

from __future__ import annotations

import datetime

import msgspec

from reprobundle import __version__
from reprobundle.format.record import (
    Devices,
    Fact,
    Memory,
    Randomness,
    Record,
)
from reprobundle.run.accessed import Accesses
from reprobundle.run.availability import Obstacle
from reprobundle.run.command import platform_name
from reprobundle.run.finished import Assembled, PassName
from reprobundle.run.placeholders import Names


def record(
    reference: Record,
    *,
    bundle: str,
    compared_run: int,
    pass_name: PassName,
    occasion: str,
    found: Obstacle,
    device: str = "as-is",
) -> Assembled:
    """Return a replay record that says why nothing was run.

    Args:
        reference: The sealed record that was to be repeated.
        bundle: As in `Record`.
        compared_run: As `runs` in `Record`.
        pass_name: As in `Record`.
        occasion: As in `Record`.
        found: Holds the stop reason, and what is known all the same.
        device: The device asked for.
    """
    nothing = Fact(unknown="the command was not started")
    now = datetime.datetime.now(tz=datetime.timezone.utc)
    stopped = msgspec.structs.replace(
        reference,
        bundle=bundle,
        role="replay",
        pass_name=pass_name,
        runs=compared_run,
        occasion=occasion,
        tool=f"reprobundle {__version__}",
        started=now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        elapsed_ns=0,
        platform=platform_name(),
        environment=dict(found.facts),
        randomness=Randomness(seed=reference.command.seed),
        processes=(),
        phases=(),
        memory=Memory(peak_rss_bytes=nothing, peak_device_bytes=nothing),
        devices=Devices(requested=device, reason="the command was not started"),
        reads=(),
        sources=(),
        outputs=(),
        outcome=msgspec.structs.replace(
            found.outcome, stop_detail=Names.here().hidden(found.outcome.stop_detail)
        ),
        remarks=(),
        members=(),
    )
    return Assembled(record=stopped, content={}, accesses=Accesses())
