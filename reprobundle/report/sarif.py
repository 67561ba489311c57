"""What `scan` found as SARIF 2.1.0 (OASIS), which code hosts show beside the code."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from reprobundle import __version__
from reprobundle.format.scan_report import ScanFinding, ScanReport, Standing

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: dict[Standing, str] = {
    "blocker": "error",
    "late": "warning",
    "check": "warning",
}


def render_sarif(report: ScanReport) -> str:
    """Return one SARIF run; mentions are left out, unread files are notifications."""
    rules = sorted({one.rule for one in report.findings})
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "reprobundle scan",
                "version": __version__,
                "rules": [{"id": rule, "name": rule} for rule in rules],
            }
        },
        "results": [_result(one) for one in report.findings],
        "invocations": [
            {
                # Whether everything could be read, which is not whether nothing blocks.
                "executionSuccessful": not any(one.matters for one in report.not_read),
                "toolExecutionNotifications": [
                    {
                        "level": "warning" if one.matters else "note",
                        "message": {"text": f"{one.path} was not read: {one.reason}"},
                    }
                    for one in report.not_read
                ],
            }
        ],
        "properties": {"action": report.action, "rule": report.rule},
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _result(one: ScanFinding) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(one.path)}}
    # A line inside a cell is no line of the file.
    if one.line and not one.cell:
        place["region"] = {"startLine": one.line}
    cell = f" in cell {one.cell}, line {one.line}" if one.cell else ""
    return {
        "ruleId": one.rule,
        "level": _LEVELS.get(one.standing, "note"),
        "message": {"text": f"{one.term}{cell}: {one.because}; {one.remedy}"},
        "locations": [{"physicalLocation": place}],
        "properties": {"level": one.level, "standing": one.standing},
    }
