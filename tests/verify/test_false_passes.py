"""The table of known false passes names mutations and tests that exist."""

import re
from pathlib import Path

from reprobundle.verify.selftest.selftest import MUTATIONS

ROOT = Path(__file__).parents[2]


def answers():
    text = (ROOT / "docs" / "selftest.md").read_text("utf-8")
    for line in text.splitlines():
        if found := re.match(r"\| F(\d+) \|[^|]+\| ([^|]+) \| ([^|]+) \|$", line):
            assert found[3].strip(), line
            yield int(found[1]), found[2].split(", ")


def test_each_known_false_pass_has_an_answer_that_exists():
    names = {f"`{mutation.name}`" for mutation in MUTATIONS}
    table = dict(answers())
    assert sorted(table) == list(range(1, 17))
    for number, given in table.items():
        for one in given:
            path, _, name = one.partition("::")
            is_test = path.startswith("tests/") and (ROOT / path).exists()
            text = (ROOT / path).read_text("utf-8") if is_test else ""
            assert one in names or (is_test and f"def {name}" in text), (number, one)
