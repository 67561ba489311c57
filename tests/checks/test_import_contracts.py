"""Each import contract is broken by the import it forbids.

A small package with the project's module names stands in for the real one, so that a
contract is seen to fail whatever the real modules import today.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONTRACTS = Path(__file__).resolve().parents[2] / ".importlinter"
LINTER = shutil.which("lint-imports", path=Path(sys.executable).parent)
MODULES = (
    "__init__ __main__ cli errors "
    "pack/__init__ replay/__init__ port/__init__ run/__init__ "
    "report/__init__ export/__init__ "
    "handoff/__init__ handoff/far/__init__ "
    "verify/__init__ sign/__init__ outputs/__init__ remote/__init__ format/__init__ "
    "temporary/__init__ recorder/__init__"
)

pytestmark = pytest.mark.skipif(LINTER is None, reason="import-linter is not installed")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """An empty package of the project's shape."""
    folder = tmp_path / "reprobundle"
    for name in MODULES.split():
        module = folder / f"{name}.py"
        module.parent.mkdir(parents=True, exist_ok=True)
        module.touch()
    shutil.copy(CONTRACTS, tmp_path)
    return folder


def broken_contracts(package: Path) -> set[str]:
    """Return the names of the contracts that `package` breaks."""
    assert LINTER is not None
    ended = subprocess.run(
        [LINTER, "--no-cache", "--no-logo"],
        cwd=package.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    lines = ended.stdout.splitlines()
    broken = {line.removesuffix(" BROKEN") for line in lines if "BROKEN" in line}
    # The linter's exit status is what `make test` sees: it has to agree.
    assert ended.returncode == (1 if broken else 0), ended.stdout + ended.stderr
    return broken


def test_the_layers_alone_break_nothing(package: Path):
    assert broken_contracts(package) == set()


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("verify/__init__", "from reprobundle import pack", "Arrows run downward only"),
        (
            "replay/__init__",
            "from reprobundle import handoff",
            "Arrows run downward only",
        ),
        (
            "temporary/__init__",
            "from reprobundle import format",
            "Arrows run downward only",
        ),
        (
            "report/__init__",
            "from reprobundle import export",
            "Arrows run downward only",
        ),
        (
            "handoff/far/__init__",
            "from reprobundle import errors",
            "What is sent to another machine imports the standard library only",
        ),
        ("pack/__init__", "from reprobundle import replay", "Arrows run downward only"),
        (
            "verify/__init__",
            "def f():\n    import torch",
            "Only the recorder imports torch",
        ),
        ("__init__", "def f():\n    import torch", "Only the recorder imports torch"),
        (
            "recorder/__init__",
            "import msgspec",
            "The recorder imports the standard library, torch and numpy only",
        ),
        (
            "recorder/__init__",
            "def f():\n    from ..format import x",
            "The recorder imports the standard library, torch and numpy only",
        ),
        (
            "run/__init__",
            "from reprobundle import recorder",
            "Nothing imports the recorder",
        ),
        (
            "__init__",
            "def f():\n    from . import recorder",
            "Nothing imports the recorder",
        ),
        (
            "format/__init__",
            "import click",
            "Only the command line knows click",
        ),
        ("unlisted", "", "Arrows run downward only"),
    ],
    ids=[
        "upward",
        "replay-takes-handoff",
        "temporary-takes-format",
        "report-takes-export",
        "far-takes-ours",
        "sideways",
        "lazy-torch",
        "torch-at-the-top",
        "recorder-takes-msgspec",
        "recorder-takes-format",
        "run-takes-recorder",
        "top-takes-recorder",
        "click-below-cli",
        "module-without-layer",
    ],
)
def test_a_forbidden_import_breaks_its_contract(
    package: Path, module: str, line: str, contract: str
):
    (package / f"{module}.py").write_text(line + "\n", encoding="utf-8")
    assert contract in broken_contracts(package)


@pytest.mark.parametrize(
    ("module", "line"),
    [("recorder/__init__", "import torch"), ("cli", "import click")],
    ids=["recorder-takes-torch", "cli-takes-click"],
)
def test_an_allowed_import_breaks_nothing(package: Path, module: str, line: str):
    (package / f"{module}.py").write_text(line + "\n", encoding="utf-8")
    assert broken_contracts(package) == set()
