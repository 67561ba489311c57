"""JSON Schemas of every document, generated from the types that decode them.

The types decide at run time; ``schema/*.schema.json`` is what other implementations
read. A test holds the two together: ``python -m reprobundle.format.schema schema``
writes the files anew.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from reprobundle.format.acceptance_record import AcceptanceRecord
from reprobundle.format.attestation import VerdictPredicate
from reprobundle.format.difference_report import DifferenceReport
from reprobundle.format.doctor_report import DoctorReport
from reprobundle.format.findings import Report
from reprobundle.format.fit_report import FitReport
from reprobundle.format.forecast_report import ForecastReport
from reprobundle.format.lock import Lock
from reprobundle.format.manifest import Manifest
from reprobundle.format.part import Part
from reprobundle.format.policy import Policy
from reprobundle.format.record import MemorySeries, Record
from reprobundle.format.scan_report import ScanReport
from reprobundle.format.selftest_report import SelftestReport

DIALECT = "https://json-schema.org/draft/2020-12/schema"

# File stem → the type, and the sentence that says what the document is.
DOCUMENTS: dict[str, tuple[type, str]] = {
    "manifest": (Manifest, "manifest.json: every sealed member and its digests"),
    "part": (Part, "part.json: which members lie in the other part of a bundle"),
    "record": (Record, "record.json: one run of a command"),
    "policy": (Policy, "policy.json: what counts as the same result"),
    "lock": (Lock, "lock/environment.json: the live environment of the run"),
    "memory": (MemorySeries, "memory.json: all memory samples of one run"),
    "acceptance": (
        AcceptanceRecord,
        "acceptance/ID.json: who accepted a result, and on what evidence",
    ),
    "report": (Report, "What verify prints with --json"),
    "difference": (DifferenceReport, "What diff prints with --json"),
    "doctor": (DoctorReport, "What doctor prints with --json"),
    "forecast": (ForecastReport, "What forecast prints with --json"),
    "fit": (FitReport, "What check prints with --json"),
    "scan": (ScanReport, "What scan prints with --json"),
    "predicate": (
        VerdictPredicate,
        "The predicate of the in-toto statement that export in-toto writes",
    ),
    "selftest": (SelftestReport, "What selftest prints with --json"),
}

# What a JSON Schema cannot express and the decoder enforces all the same.
SCHEMA_CANNOT_SEE = (
    "an object must not hold one key twice",
    "nesting is limited",
    "1.0 is no integer",
    "a fact has either a value or the reason why it is unknown",
    "an output rule states a reason",
    "a finding that is not a pass states a reason",
    "a point that is met states its evidence, any other its reason",
    "manifest members are sorted, unique and have as many chunks as their size needs",
)


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the document called `name`.

    Raises:
        KeyError: There is no such document.
    """
    kind, title = DOCUMENTS[name]
    (reference,), components = msgspec.json.schema_components(
        [kind], ref_template="#/$defs/{name}"
    )
    return {
        "$schema": DIALECT,
        "$id": f"urn:reprobundle:schema:{name}:1",
        "title": title,
        **reference,
        "$defs": dict(sorted(components.items())),
    }


def schema_text(name: str) -> str:
    """Return `schema_of` as the text of the published file."""
    return json.dumps(schema_of(name), indent=2, sort_keys=False) + "\n"


def write_schemas(folder: Path) -> list[Path]:
    """Write every schema into `folder`, which exists, and return the files."""
    written = []
    for name in DOCUMENTS:
        path = folder / f"{name}.schema.json"
        path.write_text(schema_text(name), encoding="utf-8")
        written.append(path)
    return written


if __name__ == "__main__":
    for path in write_schemas(Path(sys.argv[1])):
        sys.stdout.write(f"{path}\n")
