"""Run as ``python ask_device.py cuda|mps``: see ``availability`` beside this folder."""

from __future__ import annotations

import os
import sys

# Where torch is looked for, neither this folder nor the one of our package may stand.
_recorder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[0] = os.path.dirname(_recorder)
from recorder.availability import main  # type: ignore[import-not-found]  # noqa: E402

del sys.path[0]
main(sys.argv[1])
