"""docs/requirements.md names tests that there are."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8")
FILE = re.compile(r"\btests/[\w/]+\.py\b")
TEST = re.compile(r"(tests/[\w/]+\.py)((?:::\w+)(?:, ::\w+)*)")


def test_every_file_it_names_is_there():
    files = set(FILE.findall(PAGE))
    assert len(files) > 60
    assert [file for file in sorted(files) if not (ROOT / file).is_file()] == []


def test_every_test_it_names_is_there():
    named = [
        (file, test)
        for file, tests in TEST.findall(PAGE)
        for test in re.findall(r"::(\w+)", tests)
    ]
    assert len(named) > 60
    missing = [
        f"{file}::{test}"
        for file, test in named
        if not re.search(rf"\bdef {test}\b", (ROOT / file).read_text(encoding="utf-8"))
    ]
    assert missing == []
