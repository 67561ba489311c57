"""Write a report as JSON, for another program."""

from __future__ import annotations

from reprobundle.format.canonical import encode
from reprobundle.format.findings import Report


def report_json(report: Report) -> bytes:
    """Return `report` as canonical JSON; it decodes to an equal `Report`."""
    return encode(report)
