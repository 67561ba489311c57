"""Write the tables of spec.md and docs/fields.md from the code that enforces them.

usage: python tools/spec_tables.py          rewrite both
       python tools/spec_tables.py --check  fail if it would change
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import field_tables

from reprobundle.format.findings import EXIT_STATUS, Verdict
from reprobundle.format.rules import DOCUMENT_RULES, RULES
from reprobundle.format.writer import write_bundle
from reprobundle.verify.assessment.rules import RULES as ACCEPTANCE_RULES
from reprobundle.verify.checks import CHECKS, ITEMS
from reprobundle.verify.environment import NUMERIC_FACTS

SPEC = Path(__file__).parents[1] / "spec.md"
BLOCK = re.compile(r"<!-- (?P<name>[\w -]+) -->\n.*?<!-- end -->", re.DOTALL)

MEANING = {
    Verdict.BIT_IDENTICAL: "every output is equal bit for bit; "
    "without any, the expected failure is the same",
    Verdict.WITHIN_TOLERANCE: "every output lies within the frozen tolerance",
    Verdict.INTACT: "only integrity and completeness were asked for, and hold",
    Verdict.NOT_REPRODUCED: "an output is outside, missing, or the run ended otherwise",
    Verdict.DIFFERENT_FAILURE: "an error was expected and another one came",
    Verdict.PARTIAL: "some claims were not run, or data stood in",
    Verdict.INCOMPLETE: "something required was not checked or is missing",
    Verdict.NOT_DECIDABLE_HERE: "the platform cannot answer the question",
    Verdict.NOT_RUN_HERE: "the replay stopped for a named reason",
    Verdict.NOT_YET_REPLAYED: "whole and complete; nobody has replayed it",
    Verdict.WITH_WARNINGS: "the outputs agree, and a warning stands",
    Verdict.TAMPERED: "content differs from what was sealed or recorded",
    Verdict.UNREADABLE: "no bundle, unsafe, or of a newer format",
}


def _rules(prefix: str) -> Iterable[str]:
    yield "| number | requirement |"
    yield "|---|---|"
    for number, text in {**RULES, **DOCUMENT_RULES}.items():
        if number.startswith(f"{prefix}."):
            yield f"| {number} | {text} |"


def _checks() -> Iterable[str]:
    yield "| check | rule | findings |"
    yield "|---|---|---|"
    for check in CHECKS:
        names = [
            f"`{item.id}`" for item in ITEMS.values() if item.check == check.number
        ]
        yield (f"| {check.number} {check.title} | {check.text} | {', '.join(names)} |")


def _verdicts() -> Iterable[str]:
    yield "| verdict | exit status | when |"
    yield "|---|---|---|"
    for verdict in Verdict:
        yield f"| {verdict.value} | {EXIT_STATUS[verdict]} | {MEANING[verdict]} |"
    yield ""
    yield "What each finding does to the verdict:"
    yield ""
    yield "| finding | when it is made | outcome → at most this verdict |"
    yield "|---|---|---|"
    for item in ITEMS.values():
        effects = ", ".join(
            f"{outcome} → {verdict.value}"
            for outcome, verdict in item.consequence.items()
        )
        never = "" if item.allowable else " (never allowed away)"
        yield f"| `{item.id}` | {item.text} | {effects or 'none'}{never} |"


def _acceptance() -> Iterable[str]:
    yield "| rule | recommends | fires when |"
    yield "|---|---|---|"
    for rule in ACCEPTANCE_RULES:
        yield f"| `{rule.name}` | {rule.choice} | {rule.says} |"


def _numeric() -> Iterable[str]:
    yield "| fact | counts between kinds of device | what a difference changes |"
    yield "|---|---|---|"
    for kind in NUMERIC_FACTS:
        counts = "no" if kind.inherent else "yes"
        yield f"| `{kind.pattern}` | {counts} | {kind.why} |"


def _smallest() -> Iterable[str]:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "smallest.rpb.zip"
        sealed = write_bundle(target, [])
        data = target.read_bytes()
    start = data.index(b"PK\x03\x04", 4)  # The entry behind README.txt.
    yield (
        f"{len(data):,} bytes, id `{sealed.id}`. It holds README.txt, B3SUMS and "
        f"manifest.json; from byte {start} on:"
    )
    yield ""
    yield "```"
    for offset in range(start, len(data), 16):
        piece = data[offset : offset + 16]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
        yield f"{offset:06x}  {piece.hex(' '):<47}  {shown}"
    yield "```"


TABLES: dict[str, Callable[[], Iterable[str]]] = {
    "rules R-4": lambda: _rules("R-4"),
    "rules R-5": lambda: _rules("R-5"),
    "rules R-6": lambda: _rules("R-6"),
    "rules R-7": lambda: _rules("R-7"),
    "checks": _checks,
    "verdicts": _verdicts,
    "acceptance rules": _acceptance,
    "numeric facts": _numeric,
    "smallest": _smallest,
    "record fields": field_tables.table,
}


def filled(text: str) -> str:
    """Return `text` with every marked block replaced by its table."""

    def table(match: re.Match[str]) -> str:
        name = match["name"]
        body = "\n".join(TABLES[name]())
        return f"<!-- {name} -->\n{body}\n<!-- end -->"

    return BLOCK.sub(table, text)


def main(arguments: list[str]) -> int:
    """Rewrite or check both documents."""
    changed = 0
    for path in (SPEC, field_tables.FIELDS):
        old = path.read_text(encoding="utf-8")
        new = filled(old)
        changed += old != new
        if arguments != ["--check"]:
            path.write_text(new, encoding="utf-8")
    return int(arguments == ["--check"] and changed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
