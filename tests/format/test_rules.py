"""The list of rules and the rules that the code names are the same."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import reprobundle.format
from reprobundle.format.rules import RULES

FOLDER = Path(reprobundle.format.__file__).parent
PATTERN = re.compile(r"R-[456]\.\d+")


def named_in_code():
    found: set[str] = set()
    for path in FOLDER.glob("*.py"):
        if path.name == "rules.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.update({node.value} if PATTERN.fullmatch(node.value) else ())
    return found


def test_every_rule_the_code_names_is_listed():
    assert named_in_code() - RULES.keys() == set()


def test_every_listed_rule_is_named_in_the_code():
    assert RULES.keys() - named_in_code() == set()


def test_every_rule_is_named_in_a_test():
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("*.py"))
    assert [rule for rule in RULES if f'"{rule}"' not in tests] == []


def test_rules_are_whole_sentences_in_order():
    assert all(text.endswith(".") and text[0].isupper() for text in RULES.values())
    numbers = [tuple(map(int, rule[2:].split("."))) for rule in RULES]
    assert numbers == sorted(numbers)
