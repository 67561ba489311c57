"""Every requirement leads to findings, vectors and code."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def table():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return import_module("trace_table")
    finally:
        sys.path.pop(0)


# Their findings are those of the rules, which have vectors of their own.
BY_RULES = {"V1", "V2", "V3"}
# Ticks of a list; the vectors of V9 and of whole bundles show them.
BY_LISTS = {"V10"}


def test_every_requirement_has_code_and_a_vector_or_a_reason(table):
    rows = list(table.rows())
    assert {number[0] for number, *_ in rows} == {"R", "V"}
    assert [number for number, _, _, code in rows if not code] == []
    bare = {number for number, _, vectors, _ in rows if not vectors}
    assert bare <= BY_RULES | BY_LISTS


def test_every_finding_is_reported_somewhere(table):
    modules = table.sources()
    findings = [one for _, findings, *_ in table.rows() for one in findings]
    assert len(findings) > 60
    assert [one for one in findings if not table.naming([one], modules)] == []


def test_a_requirement_that_nobody_names_has_no_code(table):
    assert table.naming(["R-9.9"], table.sources()) == []
    assert table.naming([], table.sources()) == []


def test_the_page_lists_every_requirement(table):
    page = (ROOT / "docs" / "traceability.md").read_text("utf-8")
    missing = [number for number, *_ in table.rows() if f"| {number} |" not in page]
    assert missing == []
