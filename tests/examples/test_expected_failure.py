"""examples/expected_failure fails at the step and with the words it promises."""

from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.examples.example import EXAMPLES, run_example

ERROR = "RuntimeError: Expected hidden size (1, 4, 32), got [1, 16, 32]"

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for the outputs of the run."""
    return tmp_path_factory.mktemp("failure") / "out"


@pytest.fixture(scope="module")
def ended(out: Path) -> CompletedProcess[str]:
    """The failed run."""
    return run_example("expected_failure/train.py", "--out", out)


def test_ends_with_the_documented_error(ended: CompletedProcess[str]):
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == ERROR


def test_fails_in_the_seventh_step(ended: CompletedProcess[str]):
    assert ended.stdout.splitlines()[-1] == "step 7: 4 images"


def test_keeps_the_losses_of_the_six_steps_before(
    ended: CompletedProcess[str], out: Path
):
    assert ended.returncode == 1
    rows = (out / "loss_curve.csv").read_text(encoding="utf-8").splitlines()
    assert [row.split(",")[0] for row in rows] == ["step", *"123456"]


@pytest.mark.parametrize("name", ["README.md", "train.py"])
def test_the_error_is_documented_word_for_word(name: str):
    text = (EXAMPLES / "expected_failure" / name).read_text(encoding="utf-8")
    assert ERROR in text


def test_the_images_are_the_first_100_of_the_digits():
    data = "data/digits-100.csv"
    rows = (EXAMPLES / "digits/data/digits.csv").read_bytes().splitlines()
    ours = (EXAMPLES / "expected_failure" / data).read_bytes().splitlines()
    assert ours == rows[:100]
