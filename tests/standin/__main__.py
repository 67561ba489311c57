"""Make an interpreter whose torch has the stand-in device, to try things by hand.

``python -m tests.standin FOLDER``, in a checkout; docs/standin.md tells the rest.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from tests.standin.bench import Standin, cached_build

_SETTINGS = {
    "missing": "operators without a kernel, by commas; torch's table by default",
    "ns-per-op": "nanoseconds that the device takes for each operator",
    "recommended-bytes": "bytes of memory that the device recommends",
}


def main() -> int:
    """Build the device, put it into a virtual environment, and tell where it is."""
    asked = _parser().parse_args()
    lacking = [name for name in ("c++", "ninja") if shutil.which(name) is None]
    if sys.platform != "linux" or lacking:
        sys.stderr.write(f"it needs Linux, c++ and ninja; missing: {lacking}\n")
        return 20
    if (asked.folder / "venv").exists():
        sys.stderr.write(f"{asked.folder / 'venv'} is there already: remove it first\n")
        return 20
    asked.folder.mkdir(parents=True, exist_ok=True)
    made = Standin(asked.folder, cached_build())
    made.settings(**_chosen(asked))
    sys.stdout.write(f"{made.python}\n{made.package / 'settings.json'}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.standin")
    parser.add_argument("folder", type=Path, help="where the environment is made")
    for name, words in _SETTINGS.items():
        kind = str if name == "missing" else int
        parser.add_argument(f"--{name}", type=kind, help=words)
    parser.add_argument(
        "--silent-indices",
        action="store_true",
        help="read rows beyond a table as zeros, as MPS does",
    )
    return parser


def _chosen(asked: argparse.Namespace) -> dict[str, object]:
    """Return the settings that the call names."""
    found: dict[str, object] = {"silent_indices": asked.silent_indices}
    for name in ("ns_per_op", "recommended_bytes"):
        if getattr(asked, name) is not None:
            found[name] = getattr(asked, name)
    if asked.missing is not None:
        found["missing"] = [one for one in asked.missing.split(",") if one]
    return found


if __name__ == "__main__":
    sys.exit(main())
