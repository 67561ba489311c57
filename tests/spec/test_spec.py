"""spec.md and the code must state the same rules, checks and verdicts."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from reprobundle.format.findings import EXIT_STATUS, Verdict
from reprobundle.format.rules import DOCUMENT_RULES, RULES
from reprobundle.verify.checks import CHECKS, ITEMS

ROOT = Path(__file__).parents[2]
SPEC = (ROOT / "spec.md").read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_code():
    done = subprocess.run(
        [sys.executable, "tools/spec_tables.py", "--check"], cwd=ROOT, check=False
    )
    assert done.returncode == 0, "run: python tools/spec_tables.py"


def test_the_check_of_the_tables_can_fail(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    spec_tables = importlib.import_module("spec_tables")
    changed = tmp_path / "spec.md"
    changed.write_text(SPEC.replace("| R-4.1 |", "| R-4.1x |"), encoding="utf-8")
    monkeypatch.setattr(spec_tables, "SPEC", changed)
    assert spec_tables.main(["--check"]) == 1


@pytest.mark.parametrize(("number", "text"), {**RULES, **DOCUMENT_RULES}.items())
def test_every_rule_stands_in_the_specification(number, text):
    assert f"| {number} | {text} |" in SPEC


def test_every_check_and_finding_stands_in_the_specification():
    for check in CHECKS:
        assert check.text in SPEC
    for name in ITEMS:
        assert f"`{name}`" in SPEC


def test_every_verdict_stands_there_with_its_status():
    for verdict in Verdict:
        assert f"| {verdict.value} | {EXIT_STATUS[verdict]} |" in SPEC


def test_the_limits_of_the_text_are_those_of_the_code():
    from reprobundle.format import limits

    table = SPEC[SPEC.index("### 4.4 Limits") : SPEC.index("### 4.5")]
    numbers = {int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", table)}
    assert {
        limits.MEMBER_COUNT,
        limits.ENTRY_COUNT,
        limits.DOCUMENT_BYTES >> 20,
        limits.DOCUMENT_DEPTH,
        limits.CHUNK_BYTES >> 20,
        limits.WINDOW_BYTES >> 20,
        limits.NAME_BYTES,
        limits.NAME_LEVELS,
        limits.COMPONENT_BYTES,
    } <= numbers


def test_the_help_texts_name_options_that_the_readme_documents():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for option in ("--seed", "--input", "--metric", "--policy", "--expect-failure"):
        assert f"`{option}" in readme
