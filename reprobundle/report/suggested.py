"""Show a suggested policy as the file that `pack --policy` takes."""

from __future__ import annotations

import msgspec

from reprobundle.format.policy import Claim
from reprobundle.verify.suggest import Suggestion


def policy_file(suggestion: Suggestion, bundle: str) -> dict[str, object]:
    """Return only what the suggestion states; the author is for a person to fill in.

    Args:
        suggestion: From `reprobundle.verify.suggest`.
        bundle: Name of the bundle it was derived from.
    """
    fields: dict[str, object] = {
        "author": "",
        "reason": f"derived from {suggestion.runs} runs in {bundle}",
    }
    if suggestion.tolerances:
        fields["tolerances"] = msgspec.to_builtins(suggestion.tolerances)
    if suggestion.outputs:
        fields["outputs"] = [
            {"match": rule.match, "rows": rule.rows, "reason": rule.reason}
            for rule in suggestion.outputs
        ]
    if suggestion.claims:
        fields["claims"] = [_claim(one) for one in suggestion.claims]
    return fields


def _claim(claim: Claim) -> dict[str, object]:
    command = {"command": list(claim.command)} if claim.command else {}
    bands = msgspec.to_builtins(claim.bands)
    return {"name": claim.name, **command, "bands": bands}
