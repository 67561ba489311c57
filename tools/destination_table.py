"""Write the table of destinations in docs/destinations.md from the code.

usage: python tools/destination_table.py          rewrite it
       python tools/destination_table.py --check  fail if that would change the page
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from reprobundle.format.destinations import DESTINATIONS, Limit  # noqa: E402

PAGE = ROOT / "docs" / "destinations.md"
BEGIN = "<!-- destinations -->\n"
END = "<!-- end -->\n"


def _row(name: str, limit: Limit) -> str:
    most = f"{limit.most:,}" if limit.most is not None else ""
    kind = "refused" if limit.refuses else "a warning"
    return (
        f"| `{name}` | `{limit.id}` | {limit.text} | {most} | {kind} "
        f"| {limit.source} | {limit.date} |"
    )


def table() -> str:
    """Return the table: one row for each limit of each destination."""
    rows = [
        _row(name, limit)
        for name, destination in DESTINATIONS.items()
        for limit in destination.limits
    ]
    head = (
        "| `--for` | limit | what is asked | at most | otherwise | source | read |",
        "|---|---|---|---|---|---|---|",
    )
    return "\n".join([*head, *rows, ""])


def renewed(page: str) -> str:
    """Return the page with the table of the code."""
    before, _, rest = page.partition(BEGIN)
    _, _, behind = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{behind}"


def main(arguments: list[str]) -> int:
    """Rewrite or check the page; return the exit status."""
    page = PAGE.read_text(encoding="utf-8")
    new = renewed(page)
    if arguments == ["--check"]:
        return 0 if new == page else 1
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
