"""Each command imports what it needs and nothing more: start-up is a budget of modules.

Times differ between machines and hours; what is imported does not. A module that is not
listed for a command costs its start-up on every call, so a new one has to be entered.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

VECTORS = Path(__file__).parent.parent / "vectors"
BUNDLE = VECTORS / "container" / "complete" / "bundle.rpb.zip"

# Ends with what was imported, after all that the command prints.
PROGRAM = """
import json, sys
before = {name.partition(".")[0] for name in sys.modules}
from reprobundle.cli.group import run
status = run(sys.argv[1:])
print("\\n" + json.dumps([status, sorted(before), sorted(sys.modules)]))
"""

# What comes with these is theirs: none of it is imported by our own sources.
BASE = {"click", "colorama"}
READING = BASE | {"msgspec", "blake3", "typing_extensions"}

# Modules of the standard library that take from three to forty milliseconds.
SLOW = {
    "asyncio",
    "concurrent.futures",
    "csv",
    "ctypes",
    "email",
    "hashlib",
    "http.client",
    "importlib.metadata",
    "logging",
    "multiprocessing",
    "socket",
    "sqlite3",
    "ssl",
    "subprocess",
    "tarfile",
    "tomllib",
    "unittest",
    "urllib.request",
    "xml.etree.ElementTree",
    "zipfile",
}

NEVER = {"torch", "jsonschema", "requests", "pandas", "safetensors"}

# Command → packages it may import, slow modules of the standard library it may import.
BUDGET: dict[tuple[str, ...], tuple[set[str], set[str]]] = {
    ("--version",): (BASE, set()),
    ("--help",): (BASE, set()),
    ("pack", "--help"): (BASE, set()),
    ("verify", "--help"): (BASE, set()),
    ("replay", "--help"): (BASE, set()),
    ("selftest", "--help"): (BASE, set()),
    ("verify", "--integrity", "BUNDLE"): (READING, set()),
    ("verify", "--integrity", "--json", "BUNDLE"): (READING, set()),
    ("verify", "--integrity", "--deep", "BUNDLE"): (READING, set()),
    ("inspect", "BUNDLE"): (READING, set()),
    ("inspect", "--json", "BUNDLE"): (READING, set()),
    ("cat", "BUNDLE", "README.txt"): (READING, set()),
    ("extract", "BUNDLE", "--into", "FOLDER"): (READING, set()),
}


def imported(arguments: tuple[str, ...], folder: Path) -> tuple[set[str], set[str]]:
    """Return the packages and the slow modules that a command imports."""
    bundle = folder / "x.rpb.zip"
    shutil.copy(BUNDLE, bundle)
    words = {"BUNDLE": str(bundle), "FOLDER": str(folder / "new")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *(words.get(one, one) for one in arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    status, before, after = json.loads(done.stdout.splitlines()[-1])
    assert status in (0, 11), done.stderr
    packages = {name.partition(".")[0] for name in after}
    ours = sys.stdlib_module_names | set(before) | {"reprobundle"}
    return {one for one in packages - ours if one[0] != "_"}, SLOW & set(after)


@pytest.mark.parametrize("arguments", BUDGET, ids=" ".join)
def test_a_command_stays_within_its_budget(arguments, tmp_path):
    packages, slow = imported(arguments, tmp_path)
    may, may_slow = BUDGET[arguments]
    assert packages - may == set()
    assert slow - may_slow == set()
    assert not may & NEVER


def test_a_module_that_is_not_in_the_budget_is_seen(tmp_path, monkeypatch):
    # The failing case: without it an empty answer could mean that nothing is looked at.
    (tmp_path / "sitecustomize.py").write_text(
        "import reprobundle.cli.group as group\n"
        "run = group.run\n"
        "def more(arguments):\n"
        "    import numpy, tomllib\n"
        "    return run(arguments)\n"
        "group.run = more\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    packages, slow = imported(("--version",), tmp_path)
    assert "numpy" in packages
    assert "tomllib" in slow


# Notes which packages are there when the first line is written, and when the integrity.
NOTING = """
import io, json, sys
from reprobundle.cli.group import run
seen = []
class Noting(io.StringIO):
    def write(self, text):
        packages = sorted({name.partition(".")[0] for name in sys.modules})
        if text:
            seen.append((text.split(" ")[0], packages))
        return super().write(text)
screen, sys.stdout = sys.stdout, Noting()
status = run(["verify", sys.argv[1]])
sys.stdout = screen
print(json.dumps([status, seen]))
"""


def test_bundle_and_integrity_are_told_before_numbers_are_compared():
    bundle = VECTORS / "verdict" / "nan_in_same_places" / "bundle.rpb.zip"
    done = subprocess.run(
        [sys.executable, "-c", NOTING, str(bundle)],
        capture_output=True,
        text=True,
        check=True,
    )
    status, ((first, at_first), (second, at_second), *rest) = json.loads(done.stdout)
    assert (status, first, second) == (12, "file", "integrity")
    heavy = {"numpy", "rich", "zstandard"} | NEVER
    assert not heavy & set(at_first)
    assert not {"numpy", "rich"} & set(at_second)
    # The failing case: had they been there all the time, nothing above would mean much.
    assert "numpy" in rest[-1][1]
