"""No page of docs names a place of the machine that made it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INTERPRETER = re.compile(r"(?<![\w.~])/(?:[\w.+-]+/)+bin/python[\w.]*")
# Where systems keep their own one.
USUAL = re.compile(r"/(usr|opt)(/local|/homebrew)?/bin/python")


def own_places(text: str) -> list[str]:
    return [one for one in INTERPRETER.findall(text) if not USUAL.match(one)]


def test_an_interpreter_of_somebody_is_found():
    assert own_places("(/home/a/.venv/bin/python run.py)") == [
        "/home/a/.venv/bin/python"
    ]


def test_no_page_names_an_interpreter_of_one_machine():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    assert len(pages) > 20
    assert {page.name: own_places(page.read_text()) for page in pages} == {
        page.name: [] for page in pages
    }
