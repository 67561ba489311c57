"""Load the stand-in device when torch is imported (entry point ``torch.backends``).

It lies in the site-packages of a virtual environment, with ``settings.json`` beside it:
a replayed command gets no variables of ours. What really happened is written at the
end of the process to ``truth/<pid>.json``.
"""

from __future__ import annotations

import atexit
import json
import os
from pathlib import Path

HERE = Path(__file__).parent


def load() -> None:
    """Give this process a device of type mps."""
    import torch

    from mps_standin import _mps_standin as native  # type: ignore[import-not-found]

    settings = json.loads((HERE / "settings.json").read_text())
    value = os.environ.get("PYTORCH_ENABLE_MPS_FALLBACK", "0")
    native.set_missing(
        {f"aten::{name}" for name in settings["missing"]}, int(value) != 0
    )
    native.set_ns_per_op(settings.get("ns_per_op", 0))
    native.set_recommended_bytes(settings.get("recommended_bytes", 12 << 30))
    native.set_silent_indices(settings.get("silent_indices", False))
    torch._C._has_mps = True
    # Linux builds refuse storages on mps; torch.load(map_location="mps") needs them.
    torch.storage._StorageBase.mps = _storage_to_mps
    atexit.register(_write_truth, native)


def _storage_to_mps(storage):
    import torch

    if storage.device.type == "mps":
        return storage
    empty = torch.empty(storage.nbytes(), dtype=torch.uint8, device="mps")
    return empty.untyped_storage().copy_(storage, False)


def _write_truth(native) -> None:
    folder = HERE / "truth"
    folder.mkdir(exist_ok=True)
    (folder / f"{os.getpid()}.json").write_text(json.dumps(native.truth()))
