"""Write docs/traceability.md: requirement, findings, vectors, code.

usage: python tools/trace_table.py          rewrite it
       python tools/trace_table.py --check  fail if it would change
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from reprobundle.format.rules import DOCUMENT_RULES, RULES
from reprobundle.verify.checks import CHECKS, ITEMS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "traceability.md"
HEAD = """# From requirement to code

Written by `python tools/trace_table.py`; tests see that no row lacks code, and none a
vector or the reason why it has none. *Findings* are what `verify` reports, *vectors*
lie in `tests/vectors`, *code* is every module of the package that judges by the
requirement or reports one of its findings.

| requirement | findings | vectors | code |
|---|---|---|---|
"""
# Where numbers and findings are listed, shown or provoked, not judged.
ASIDE = (
    "format/rules.py",
    "verify/items.py",
    "verify/checks.py",
    "verify/selftest/",
    "report/",
)
MOST_VECTORS = 4


def sources() -> dict[str, str]:
    """Return the package's modules by their path below it."""
    top = ROOT / "reprobundle"
    found = {path.relative_to(top).as_posix(): path for path in top.rglob("*.py")}
    return {name: found[name].read_text("utf-8") for name in sorted(found)}


def naming(words: list[str], modules: dict[str, str]) -> list[str]:
    """Return the modules in which one of the words stands as a string of its own."""
    pattern = re.compile("|".join(f'"{re.escape(word)}"' for word in words))
    return [
        name
        for name, text in modules.items()
        if not name.startswith(ASIDE) and words and pattern.search(text)
    ]


def vectors() -> dict[str, list[str]]:
    """Return requirement → its vectors, or the reason why it has none."""
    index = json.loads((ROOT / "tests" / "vectors" / "index.json").read_text("utf-8"))
    found: dict[str, list[str]] = {}
    for one in index["vectors"]:
        found.setdefault(one["requirement"], []).append(f"`{one['id']}`")
    for one in index["not_by_vector"]:
        found.setdefault(one["requirement"], [f"none: {one['reason']}"])
    return found


def rows() -> Iterator[tuple[str, list[str], list[str], list[str]]]:
    """Yield requirement, findings, vectors and modules."""
    modules, by_vector = sources(), vectors()
    for number in (*RULES, *DOCUMENT_RULES):
        yield number, [], by_vector.get(number, []), naming([number], modules)
    for check in CHECKS:
        ids = [one.id for one in ITEMS.values() if one.check == check.number]
        code = naming([*ids, check.number], modules)
        yield check.number, ids, by_vector.get(check.number, []), code


def page() -> str:
    """Return the whole page."""
    lines = []
    for number, findings, found, code in rows():
        more = len(found) - MOST_VECTORS
        shown = ", ".join(found[:MOST_VECTORS]) + (f" and {more} more" * (more > 0))
        names = ", ".join(f"`{one}`" for one in findings)
        modules = ", ".join(f"`{one}`" for one in code)
        lines.append(f"| {number} | {names} | {shown} | {modules} |\n")
    return HEAD + "".join(lines)


def main(arguments: list[str]) -> int:
    """Rewrite the page, or tell whether it is up to date."""
    text = page()
    if "--check" in arguments:
        return int(not PAGE.exists() or PAGE.read_text("utf-8") != text)
    PAGE.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
