"""examples/digits trains, resumes, and repeats itself on one machine."""

import csv
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from tests.examples.example import EXAMPLES, train_digits

DIGITS_FOLDER = EXAMPLES / "digits"
OUTPUTS = {
    "checkpoint.pt",
    "halfway.pt",
    "logits.npy",
    "loss_curve.csv",
    "metrics.json",
    "predictions.npy",
}

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The outputs of two epochs without the stop in between."""
    out = tmp_path_factory.mktemp("straight") / "out"
    return train_digits(out, "--epochs", "2", "--straight")


def test_writes_exactly_the_documented_outputs(digits: Path):
    assert {path.name for path in digits.iterdir()} == OUTPUTS


def test_recognises_more_than_95_percent_of_the_test_digits(digits: Path):
    metrics = json.loads((digits / "metrics.json").read_text(encoding="utf-8"))
    assert metrics.keys() == {"loss", "accuracy", "epochs"}
    assert metrics["accuracy"] > 0.95
    assert metrics["epochs"] == 8


def test_predictions_are_the_places_of_the_largest_logits(digits: Path):
    logits = np.load(digits / "logits.npy")
    predictions = np.load(digits / "predictions.npy")
    assert (logits.dtype, logits.shape) == (np.float32, (360, 10))
    assert predictions.dtype == np.int64
    np.testing.assert_array_equal(predictions, logits.argmax(axis=1))


def test_the_loss_falls_from_the_first_epoch_to_the_last(digits: Path):
    with (digits / "loss_curve.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == [str(n) for n in range(1, 9)]
    assert float(rows[-1]["training_loss"]) < 0.2 * float(rows[0]["training_loss"])


def test_the_checkpoint_is_a_state_dict_that_needs_no_unpickling(digits: Path):
    torch = pytest.importorskip("torch")
    state = torch.load(digits / "checkpoint.pt", weights_only=True)
    assert sum(tensor.numel() for tensor in state.values()) == 38_282


def test_the_inference_example_stores_these_weights(digits: Path):
    # They were trained on one machine: on another CPU rounding sends training another
    # way, but not to other weights altogether.
    torch = pytest.importorskip("torch")
    safetensors = pytest.importorskip("safetensors.torch")
    trained = torch.load(digits / "checkpoint.pt", weights_only=True)
    stored = safetensors.load_file(EXAMPLES / "inference" / "model.safetensors")
    assert stored.keys() == trained.keys()
    sides = [
        torch.cat([state[name].float().flatten() for name in sorted(stored)])
        for state in (stored, trained)
    ]
    assert torch.nn.functional.cosine_similarity(*sides, dim=0) > 0.9


def test_the_state_saved_half_way_is_that_of_epoch_four(digits: Path):
    torch = pytest.importorskip("torch")
    state = torch.load(digits / "halfway.pt", weights_only=True)
    assert state["epoch"] == 4
    assert len(state["curve"]) == 4


@pytest.mark.parametrize("name", sorted(OUTPUTS - {"halfway.pt"}))
def test_a_resumed_run_gives_the_bytes_of_a_straight_one(
    name: str, short: Path, straight: Path
):
    assert (short / name).read_bytes() == (straight / name).read_bytes()


def test_a_run_that_finds_a_state_goes_on_from_it(short: Path, tmp_path: Path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "halfway.pt").write_bytes((short / "halfway.pt").read_bytes())
    resumed = train_digits(out, "--epochs", "2", "--resume")
    for name in sorted(OUTPUTS):
        assert (resumed / name).read_bytes() == (short / name).read_bytes(), name


def test_a_straight_run_saves_no_state_half_way(straight: Path):
    assert not (straight / "halfway.pt").exists()


def test_another_seed_gives_other_logits(short: Path, tmp_path: Path):
    other = train_digits(tmp_path / "out", "--epochs", "2", "--seed", "8")
    logits = [np.load(folder / "logits.npy") for folder in (short, other)]
    assert not np.array_equal(*logits)


def test_two_workers_load_the_same_batches(short: Path, tmp_path: Path):
    helped = train_digits(tmp_path / "out", "--epochs", "2", "--workers", "2")
    logits = [(folder / "logits.npy").read_bytes() for folder in (short, helped)]
    assert logits[0] == logits[1]


def test_the_data_are_those_their_readme_names():
    data = (DIGITS_FOLDER / "data" / "digits.csv").read_bytes()
    readme = (DIGITS_FOLDER / "data" / "README.md").read_text(encoding="utf-8")
    assert hashlib.sha256(data).hexdigest() in readme
    assert len(data.splitlines()) == 1797


def test_the_scripts_import_nothing_of_this_package():
    sources = sorted(EXAMPLES.rglob("*.py"))
    assert len(sources) >= 8
    guilty = [path for path in sources if "reprobundle" in path.read_text("utf-8")]
    assert guilty == []
