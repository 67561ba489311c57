"""Write the tables of docs/selftest.md, verdict.md and acceptance.md from the code.

usage: python tools/verify_tables.py          rewrite them
       python tools/verify_tables.py --check  fail if that would change anything
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from reprobundle.verify.assessment.rules import RULES as ACCEPTANCE_RULES
from reprobundle.verify.causes.rules import RULES
from reprobundle.verify.selftest.mutation import Mutation
from reprobundle.verify.selftest.of_acceptance import ACCEPTANCE_MUTATIONS
from reprobundle.verify.selftest.of_both_sides import BOTH_SIDES_MUTATIONS
from reprobundle.verify.selftest.of_bytes import BYTE_MUTATIONS
from reprobundle.verify.selftest.of_contradictions import CONTRADICTION_MUTATIONS
from reprobundle.verify.selftest.of_copies import COPY_MUTATIONS
from reprobundle.verify.selftest.of_devices import DEVICE_MUTATIONS
from reprobundle.verify.selftest.of_parts import PART_MUTATIONS
from reprobundle.verify.selftest.of_policy import POLICY_MUTATIONS
from reprobundle.verify.selftest.of_protocol import PROTOCOL_MUTATIONS
from reprobundle.verify.selftest.of_reference import REFERENCE_MUTATIONS
from reprobundle.verify.selftest.of_results import RESULT_MUTATIONS
from reprobundle.verify.selftest.of_samples import SAMPLE_MUTATIONS
from reprobundle.verify.selftest.of_seal import SEAL_MUTATIONS
from reprobundle.verify.selftest.of_signatures import SIGNATURE_MUTATIONS
from reprobundle.verify.selftest.selftest import MUTATIONS

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"<!-- (?P<name>[\w -]+) -->\n.*?<!-- end -->", re.DOTALL)
GROUPS: dict[str, tuple[Mutation, ...]] = {
    "bytes": BYTE_MUTATIONS,
    "seal": SEAL_MUTATIONS,
    "parts": PART_MUTATIONS,
    "policy": POLICY_MUTATIONS,
    "both sides": BOTH_SIDES_MUTATIONS,
    "results": RESULT_MUTATIONS,
    "samples": SAMPLE_MUTATIONS,
    "protocol": PROTOCOL_MUTATIONS,
    "copies": COPY_MUTATIONS,
    "contradictions": CONTRADICTION_MUTATIONS,
    "devices": DEVICE_MUTATIONS,
    "reference": REFERENCE_MUTATIONS,
    "acceptance": ACCEPTANCE_MUTATIONS,
    "signatures": SIGNATURE_MUTATIONS,
}


def _table(mutations: Iterable[Mutation]) -> Iterator[str]:
    yield "| name | what is done | a finding that has to name it |"
    yield "|---|---|---|"
    for one in mutations:
        reasons = ", ".join(f"`{reason}`" for reason in sorted(one.reasons))
        yield f"| `{one.name}` | {one.title} | {reasons} |"


def _causes() -> Iterator[str]:
    yield "| cause | what it says | source |"
    yield "|---|---|---|"
    for rule in RULES:
        yield f"| `{rule.id}` | {rule.text} | {rule.source} |"


def with_mutations(page: str) -> str:
    """Return the page about the selftest as the mutations are now."""
    missing = set(MUTATIONS) - {one for group in GROUPS.values() for one in group}
    if missing:
        sys.exit(f"in no table: {', '.join(sorted(one.name for one in missing))}")

    def block(found: re.Match[str]) -> str:
        lines = "\n".join(_table(GROUPS[found["name"]]))
        return f"<!-- {found['name']} -->\n{lines}\n<!-- end -->"

    page = BLOCK.sub(block, page)
    return re.sub(r"\b\d+ mutations", f"{len(MUTATIONS)} mutations", page)


def with_causes(page: str) -> str:
    """Return the page about the verdict as the rules are now."""
    table = "\n".join(("<!-- causes -->", *_causes(), "<!-- end -->"))
    return BLOCK.sub(lambda one: table if one["name"] == "causes" else one[0], page)


def with_acceptance(page: str) -> str:
    """Return the page about acceptance as the rules are now."""
    lines = ["| rule | recommends | fires when | from |", "|---|---|---|---|"]
    lines += [
        f"| `{one.name}` | {one.choice} | {one.says} | {one.source} |"
        for one in ACCEPTANCE_RULES
    ]
    table = "\n".join(("<!-- acceptance rules -->", *lines, "<!-- end -->"))
    return BLOCK.sub(table.replace("\\", ""), page)


def main() -> None:
    """Rewrite the pages, or say that they are not as they would be written."""
    pages = {
        "selftest.md": with_mutations,
        "verdict.md": with_causes,
        "acceptance.md": with_acceptance,
    }
    stale = []
    for name, rewrite in pages.items():
        before = (DOCS / name).read_text("utf-8")
        after = rewrite(before)
        stale += [name] if before != after else []
        if "--check" not in sys.argv[1:]:
            (DOCS / name).write_text(after, "utf-8")
    if stale and "--check" in sys.argv[1:]:
        sys.exit(f"{', '.join(stale)}: run python tools/verify_tables.py")


if __name__ == "__main__":
    main()
