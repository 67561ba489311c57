"""examples/demo.sh ends with success only when every step ended as it should."""

import shutil
import subprocess
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo.sh"

# Stands in for reprobundle: notes its call and ends with the next planned status.
SCRIPT = """\
#!/bin/sh
echo "$PWD|$*" >> "{calls}"
set -- $(cat "{plan}")
status=$1
shift
echo "$@" > "{plan}"
exit "$status"
"""

pytestmark = pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell")


def run_demo(folder: Path, plan: str) -> subprocess.CompletedProcess[str]:
    """Run the demo with a reprobundle that ends with the statuses of `plan`."""
    commands = folder / "bin"
    commands.mkdir()
    script = commands / "reprobundle"
    names = {"calls": folder / "calls", "plan": folder / "plan"}
    script.write_text(SCRIPT.format(**names), encoding="utf-8")
    script.chmod(0o755)
    names["plan"].write_text(plan, encoding="utf-8")
    return subprocess.run(
        ["sh", DEMO, commands, folder / "results"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_names_the_verdict_and_the_file_at_the_end(tmp_path: Path):
    ended = run_demo(tmp_path, "0 11 0 0 0")
    assert ended.returncode == 0, ended.stderr
    bundle = tmp_path / "results" / "digits.rpb.zip"
    last = ended.stdout.splitlines()[-1]
    assert last == f"REPRODUCED (status 0). The bundle is {bundle}"


def test_packs_verifies_replays_verifies_and_tests_the_verifier(tmp_path: Path):
    run_demo(tmp_path, "0 11 0 0 0")
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    bundle = tmp_path / "results" / "digits.rpb.zip"
    digits = DEMO.parent / "digits"
    options = f"--project . -o {bundle} --seed 7 --policy policy.json"
    command = "python train.py --device cpu"
    assert calls == [
        f"{digits}|pack {options} -- {command}",
        f"{digits}|verify {bundle}",
        f"{digits}|replay {bundle} --env fresh --yes",
        f"{digits}|verify {bundle}",
        f"{digits}|selftest {bundle}",
    ]


@pytest.mark.parametrize(
    ("plan", "step"),
    [
        ("22", "reprobundle pack"),
        ("0 0", "reprobundle verify"),
        ("0 21", "reprobundle verify"),
        ("0 11 20", "reprobundle replay"),
        ("0 11 0 10", "reprobundle verify"),
        ("0 11 0 11", "reprobundle verify"),
        ("0 11 0 12", "reprobundle verify"),
        ("0 11 0 0 10", "reprobundle selftest"),
    ],
)
def test_any_other_status_fails_the_demo(tmp_path: Path, plan: str, step: str):
    ended = run_demo(tmp_path, plan)
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"demo failed: '{step}")


def test_a_failed_demo_names_no_verdict(tmp_path: Path):
    assert "REPRODUCED" not in run_demo(tmp_path, "0 11 0 10").stdout
