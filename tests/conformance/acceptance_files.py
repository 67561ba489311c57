"""Acceptance records for the vectors, written by hand, and bundles that hold them."""

from __future__ import annotations

import json

from tests.conformance.documents import Document, Story, bundle_id, digest
from tests.format.forge import Forged, ForgedBundle


def acceptance(accepts: str, **changes: object) -> Document:
    """Return a record that another release derived: nothing can confirm it."""
    return {
        "schema": "reprobundle/acceptance/1",
        "bundle": accepts,
        "rules": 1,
        "tool": "another 1.0",
        "when": "2026-01-01T00:00:00Z",
        "by": "A. Person",
        "where": "a laboratory",
        "assessment": {
            "replays": [],
            "verdict": "INTACT, NOT YET REPLAYED",
            "exit_status": 11,
            "acceptance": "not-decided",
            "points": [],
            "recommendation": {
                "choice": "undecided",
                "rule": "evidence-missing",
                "text": "nothing is known",
            },
            "holds_for": [],
        },
        **changes,
    }


def canonical(document: Document) -> bytes:
    """Return a document in canonical form."""
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, indent=1)
    # An empty list or object stands on one line, as everywhere.
    return f"{text}\n".encode()


def accepted(
    bundle: ForgedBundle, data: bytes, *, identifier: str = ""
) -> ForgedBundle:
    """Return the bundle with an acceptance record behind its seal."""
    name = f"acceptance/{identifier or digest(data)}.json"
    bundle.unsealed = [*bundle.unsealed, Forged(name, data)]
    return bundle


def with_record(
    *, compact: bool = False, identifier: str = "", **changes: object
) -> bytes:
    """Return the smallest complete bundle with an acceptance record.

    Args:
        compact: Whether the record is written without an indent.
        identifier: What it is named by; the digest of its bytes if empty.
        changes: Other fields of the record.
    """
    bundle = Story().forge()
    document = acceptance(bundle_id(bundle), **changes)
    data = canonical(document)
    if compact:
        data = f"{json.dumps(document, sort_keys=True)}\n".encode()
    return accepted(bundle, data, identifier=identifier).build()
