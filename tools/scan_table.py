"""Print precision and recall of `scan` on the labelled corpus, as Markdown.

    python tools/scan_table.py

One case is one line that blocks: found and labelled is a hit, found alone a false
alarm, labelled alone a miss.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from reprobundle.port.scan.scan import scan  # noqa: E402
from tests.port.corpus import CORPUS, Snippet  # noqa: E402


class Score(NamedTuple):
    """How the corpus came out.

    Attributes:
        hits, alarms, misses: Numbers of lines.
        wrong: Names of the snippets that are not as labelled.
    """

    hits: int
    alarms: int
    misses: int
    wrong: tuple[str, ...]


def found_lines(snippet: Snippet, folder: Path) -> set[int]:
    """Return the lines of one snippet that the scan calls blockers."""
    (folder / snippet.path).write_text(snippet.text, encoding="utf-8")
    report = scan(folder)
    return {one.line for one in report.findings if one.standing == "blocker"}


def measure() -> Score:
    """Scan every snippet in a folder of its own."""
    hits = alarms = misses = 0
    wrong = []
    for snippet in CORPUS:
        with tempfile.TemporaryDirectory() as folder:
            found = found_lines(snippet, Path(folder))
        wanted = set(snippet.blocks)
        hits += len(found & wanted)
        alarms += len(found - wanted)
        misses += len(wanted - found)
        if found != wanted:
            wrong.append(snippet.name)
    return Score(hits, alarms, misses, tuple(wrong))


def table(score: Score) -> str:
    """Return the score as a table."""
    precision = score.hits / (score.hits + score.alarms)
    recall = score.hits / (score.hits + score.misses)
    traps = sum(one.trap for one in CORPUS)
    head = "| snippets | traps | hits | false alarms | misses | precision | recall |"
    rule = "|---|---|---|---|---|---|---|"
    row = (
        f"| {len(CORPUS)} | {traps} | {score.hits} | {score.alarms} | {score.misses} "
        f"| {precision:.3f} | {recall:.3f} |"
    )
    return "\n".join((head, rule, row))


if __name__ == "__main__":
    score = measure()
    sys.stdout.write(f"{table(score)}\n\nnot as labelled: {', '.join(score.wrong)}\n")
