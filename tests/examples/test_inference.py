"""examples/inference classifies its sample with the stored weights."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from tests.examples.example import EXAMPLES, run_example

INFERENCE = EXAMPLES / "inference"
DIGITS_FOLDER = EXAMPLES / "digits"

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The outputs of one run."""
    out = tmp_path_factory.mktemp("inference") / "out"
    ended = run_example("inference/infer.py", "--out", out)
    assert ended.returncode == 0, ended.stderr
    return out


def test_writes_exactly_the_documented_outputs(out: Path):
    names = {path.name for path in out.iterdir()}
    assert names == {"logits.npy", "labels.json", "probabilities.csv"}


def test_recognises_61_of_the_64_digits(out: Path):
    summary = json.loads((out / "labels.json").read_text(encoding="utf-8"))
    assert summary["accuracy"] == 61 / 64
    assert len(summary["labels"]) == 64


def test_each_row_of_probabilities_sums_to_one(out: Path):
    with (out / "probabilities.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    sums = [sum(float(cell) for cell in row[3:]) for row in rows]
    np.testing.assert_allclose(sums, np.ones(64), atol=1e-6)


def test_the_checkpoint_can_be_made_from_the_digits_example(tmp_path: Path):
    torch = pytest.importorskip("torch")
    safetensors = pytest.importorskip("safetensors.torch")
    stored = safetensors.load_file(INFERENCE / "model.safetensors")
    torch.save(stored, tmp_path / "checkpoint.pt")
    made = tmp_path / "model.safetensors"
    ended = run_example(
        "inference/make_checkpoint.py",
        "--trained",
        tmp_path / "checkpoint.pt",
        "--out",
        made,
    )
    assert ended.returncode == 0, ended.stderr
    assert made.read_bytes() == (INFERENCE / "model.safetensors").read_bytes()


def test_the_network_is_the_one_of_the_digits_example():
    ours = (INFERENCE / "model.py").read_bytes()
    assert ours == (DIGITS_FOLDER / "model.py").read_bytes()


def test_the_sample_is_the_first_64_test_rows():
    rows = (
        (DIGITS_FOLDER / "data" / "digits.csv").read_text(encoding="utf-8").splitlines()
    )
    sample = (INFERENCE / "sample.csv").read_text(encoding="utf-8").splitlines()
    assert sample == rows[::5][:64]


def test_the_checkpoint_stays_below_200_kilobytes():
    assert (INFERENCE / "model.safetensors").stat().st_size < 200_000
