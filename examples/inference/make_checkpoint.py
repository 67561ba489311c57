"""Turn the weights that the digits example trained into model.safetensors.

Run `python train.py` in ../digits first. This script is not part of the inference: it
is kept to show where the stored weights come from.
"""

import argparse
from pathlib import Path

import torch
from model import DigitNet
from safetensors.torch import save_file

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Check that the weights fit the network, then store them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--trained", type=Path, default=HERE.parent / "digits" / "out" / "checkpoint.pt"
    )
    parser.add_argument("--out", type=Path, default=HERE / "model.safetensors")
    arguments = parser.parse_args()

    model = DigitNet()
    state = torch.load(arguments.trained, map_location="cpu", weights_only=True)
    model.load_state_dict(state)
    save_file(model.state_dict(), arguments.out)
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
