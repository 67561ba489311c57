"""Train a small network on handwritten digits and write what it learned.

Half-way the run saves a checkpoint, forgets everything, loads the checkpoint and goes
on, so that a broken resume shows in the results. All outputs go to one folder:
metrics.json, loss_curve.csv, predictions.npy, logits.npy, halfway.pt, checkpoint.pt.
"""

import argparse
import csv
import json
import os
from pathlib import Path

import numpy as np
import torch
from data import load_digits, training_loader
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset
from trainer import Trainer

HERE = Path(__file__).resolve().parent


def pick_device(name: str) -> torch.device:
    """Return the device called `name`; for `auto` the best one of this machine."""
    if name != "auto":
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def set_precision(device: str) -> None:
    """Multiply in bfloat16 if PRECISION says so, as some machines do by themselves."""
    if os.environ.get("PRECISION") == "bfloat16":
        torch.set_autocast_dtype(device, torch.bfloat16)
        torch.set_autocast_enabled(device, True)


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", type=Path, default=HERE / "config.json")
    parser.add_argument("--data", type=Path, default=HERE / "data" / "digits.csv")
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument(
        "--device", choices=("auto", "cpu", "cuda", "mps"), default="auto"
    )
    parser.add_argument("--epochs", type=int, help="instead of the configured number")
    parser.add_argument("--seed", type=int, help="instead of the configured one")
    parser.add_argument(
        "--workers", type=int, default=0, help="processes that load data"
    )
    parser.add_argument(
        "--straight", action="store_true", help="train on without the stop half-way"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on from OUT/halfway.pt if it exists"
    )
    return parser.parse_args()


def read_config(arguments: argparse.Namespace) -> dict:
    """Return the configuration, with what the command line sets instead."""
    config = json.loads(arguments.config.read_text(encoding="utf-8"))
    for name in ("epochs", "seed"):
        value = getattr(arguments, name)
        if value is not None:
            config[name] = value
    return config


def write_results(out: Path, trainer: Trainer, test: TensorDataset) -> dict:
    """Write every output file but the checkpoints and return the metrics."""
    logits = trainer.logits(test)
    _, labels = test.tensors
    predictions = logits.argmax(dim=1)
    np.save(out / "logits.npy", logits.numpy())
    np.save(out / "predictions.npy", predictions.numpy())
    with (out / "loss_curve.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["epoch", "training_loss"])
        rows.writerows(enumerate(trainer.curve, start=1))
    metrics = {
        "loss": cross_entropy(logits, labels).item(),
        "accuracy": (predictions == labels).sum().item() / len(labels),
        "epochs": trainer.epoch,
    }
    text = json.dumps(metrics, indent=2) + "\n"
    (out / "metrics.json").write_text(text, encoding="utf-8")
    return metrics


def main() -> None:
    """Train, resume half-way, test, write."""
    arguments = parse_arguments()
    config = read_config(arguments)
    device = pick_device(arguments.device)
    set_precision(device.type)
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    # Otherwise two runs on one GPU differ: cuDNN may sum gradients in any order.
    torch.backends.cudnn.deterministic = True

    train, test = load_digits(arguments.data)
    loader = training_loader(
        train, batch_size=config["batch_size"], workers=arguments.workers
    )
    trainer = Trainer(config, device)
    halfway = max(1, config["epochs"] // 2)
    if arguments.resume and (out / "halfway.pt").exists():
        trainer.resume(out / "halfway.pt")
        print(f"resumed after epoch {trainer.epoch}")
    while trainer.epoch < config["epochs"]:
        loss = trainer.train_epoch(loader)
        print(f"epoch {trainer.epoch}/{config['epochs']}: loss {loss:.4f}")
        if trainer.epoch == halfway and not arguments.straight:
            trainer.save(out / "halfway.pt")
            trainer = Trainer(config, device)
            trainer.resume(out / "halfway.pt")
            print(f"resumed after epoch {trainer.epoch}")

    torch.save(trainer.model.state_dict(), out / "checkpoint.pt")
    metrics = write_results(out, trainer, test)
    print(f"test: loss {metrics['loss']:.4f}, accuracy {metrics['accuracy']:.4f}")


if __name__ == "__main__":
    main()
