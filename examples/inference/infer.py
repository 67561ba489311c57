"""Recognise the digits of a stored sample with a stored network.

Writes logits.npy, labels.json and probabilities.csv to one folder.
"""

import argparse
import csv
import json
import os
from pathlib import Path

import numpy as np
import torch
from model import DigitNet
from safetensors.torch import load_file

HERE = Path(__file__).resolve().parent
LARGEST_PIXEL = 16


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=Path, default=HERE / "model.safetensors")
    parser.add_argument("--sample", type=Path, default=HERE / "sample.csv")
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--device", choices=("cpu", "cuda", "mps"), default="cpu")
    return parser.parse_args()


def set_precision(device: str) -> None:
    """Multiply in bfloat16 if PRECISION says so, as some machines do by themselves."""
    if os.environ.get("PRECISION") == "bfloat16":
        torch.set_autocast_dtype(device, torch.bfloat16)
        torch.set_autocast_enabled(device, True)


def load_sample(path: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Return images, float32 in [0, 1] of shape (n, 1, 8, 8), and their digits."""
    table = torch.from_numpy(np.loadtxt(path, delimiter=",", dtype=np.int64))
    images = table[:, :-1].float() / LARGEST_PIXEL
    return images.reshape(-1, 1, 8, 8), table[:, -1]


@torch.inference_mode()
def classify(weights: Path, images: torch.Tensor, device: str) -> torch.Tensor:
    """Return the logits of `images` on the CPU, shape (n, 10)."""
    # On the meta device no initial weights are drawn, only to be thrown away.
    with torch.device("meta"):
        model = DigitNet()
    model.load_state_dict(load_file(weights, device=device), assign=True)
    model.eval()
    return model(images.to(device)).float().cpu()


def write_results(out: Path, logits: torch.Tensor, digits: torch.Tensor) -> float:
    """Write the three output files and return the share of right answers."""
    probabilities = logits.softmax(dim=1)
    confidence, labels = probabilities.max(dim=1)
    accuracy = (labels == digits).sum().item() / len(digits)

    np.save(out / "logits.npy", logits.numpy())
    summary = {"labels": labels.tolist(), "accuracy": accuracy}
    text = json.dumps(summary, indent=2) + "\n"
    (out / "labels.json").write_text(text, encoding="utf-8")
    with (out / "probabilities.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["image", "label", "confidence", *(f"p{n}" for n in range(10))])
        for image, row in enumerate(probabilities.tolist()):
            rows.writerow([image, labels[image].item(), confidence[image].item(), *row])
    return accuracy


def main() -> None:
    """Load, classify, write."""
    arguments = parse_arguments()
    arguments.out.mkdir(parents=True, exist_ok=True)
    set_precision(arguments.device)
    images, digits = load_sample(arguments.sample)
    logits = classify(arguments.weights, images, arguments.device)
    accuracy = write_results(arguments.out, logits, digits)
    print(f"{len(images)} images, accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
