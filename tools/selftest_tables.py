"""Write the tables of docs/selftest.md from the mutations themselves.

usage: python tools/selftest_tables.py          rewrite them
       python tools/selftest_tables.py --check  fail if that would change anything
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from reprobundle.verify.selftest.mutation import Mutation
from reprobundle.verify.selftest.of_both_sides import BOTH_SIDES_MUTATIONS
from reprobundle.verify.selftest.of_bytes import BYTE_MUTATIONS
from reprobundle.verify.selftest.of_copies import COPY_MUTATIONS
from reprobundle.verify.selftest.of_devices import DEVICE_MUTATIONS
from reprobundle.verify.selftest.of_policy import POLICY_MUTATIONS
from reprobundle.verify.selftest.of_protocol import PROTOCOL_MUTATIONS
from reprobundle.verify.selftest.of_reference import REFERENCE_MUTATIONS
from reprobundle.verify.selftest.of_results import RESULT_MUTATIONS
from reprobundle.verify.selftest.of_samples import SAMPLE_MUTATIONS
from reprobundle.verify.selftest.of_seal import SEAL_MUTATIONS
from reprobundle.verify.selftest.selftest import MUTATIONS

PAGE = Path(__file__).parents[1] / "docs" / "selftest.md"
BLOCK = re.compile(r"<!-- (?P<name>[\w -]+) -->\n.*?<!-- end -->", re.DOTALL)
GROUPS: dict[str, tuple[Mutation, ...]] = {
    "bytes": BYTE_MUTATIONS,
    "seal": SEAL_MUTATIONS,
    "policy": POLICY_MUTATIONS,
    "both sides": BOTH_SIDES_MUTATIONS,
    "results": RESULT_MUTATIONS,
    "samples": SAMPLE_MUTATIONS,
    "protocol": PROTOCOL_MUTATIONS,
    "copies": COPY_MUTATIONS,
    "devices": DEVICE_MUTATIONS,
    "reference": REFERENCE_MUTATIONS,
}


def _table(mutations: Iterable[Mutation]) -> Iterator[str]:
    yield "| name | what is done | a finding that has to name it |"
    yield "|---|---|---|"
    for one in mutations:
        reasons = ", ".join(f"`{reason}`" for reason in sorted(one.reasons))
        yield f"| `{one.name}` | {one.title} | {reasons} |"


def rewritten(page: str) -> str:
    """Return the page with every table as the mutations have it now."""
    missing = set(MUTATIONS) - {one for group in GROUPS.values() for one in group}
    if missing:
        sys.exit(f"in no table: {', '.join(sorted(one.name for one in missing))}")

    def block(found: re.Match[str]) -> str:
        lines = "\n".join(_table(GROUPS[found["name"]]))
        return f"<!-- {found['name']} -->\n{lines}\n<!-- end -->"

    page = BLOCK.sub(block, page)
    return re.sub(r"\b\d+ mutations", f"{len(MUTATIONS)} mutations", page)


def main() -> None:
    """Rewrite the page, or say that it is not as it would be written."""
    before = PAGE.read_text("utf-8")
    after = rewritten(before)
    if "--check" in sys.argv[1:]:
        sys.exit(0 if before == after else "run: python tools/selftest_tables.py")
    PAGE.write_text(after, "utf-8")


if __name__ == "__main__":
    main()
