"""docs/standin.md: the tests it names are there, and its settings are options."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/standin.md").read_text(encoding="utf-8")
SOURCES = "".join(
    path.read_text(encoding="utf-8") for path in (ROOT / "tests/standin").glob("*.py")
)


def test_every_test_that_the_page_names_is_there():
    names = set(re.findall(r"::(test_\w+)", PAGE))
    assert len(names) >= 10
    assert {name for name in names if f"def {name}(" not in SOURCES} == set()
    files = set(re.findall(r"\b(test_\w+\.py)", PAGE))
    assert {name for name in files if not (ROOT / "tests/standin" / name).exists()} == (
        set()
    )


def test_every_setting_is_an_option_of_the_tool():
    tool = (ROOT / "tests/standin/__main__.py").read_text(encoding="utf-8")
    options = set(re.findall(r"^\| `--([\w-]+)", PAGE, re.MULTILINE))
    assert options == {"missing", "ns-per-op", "recommended-bytes", "silent-indices"}
    assert {name for name in options if name not in tool} == set()
