"""Tell the causes apart why CUDA cannot be used.

Sources: ``torch.cuda.is_available`` and ``init``; the texts of ``c10/cuda/
CUDAFunctions.cpp`` (``device_count_impl``, ``device_count_ensure_non_zero``), which
torch 2.9 to 2.15 share and which ROCm's build words for HIP; the variables of NVIDIA's
"CUDA Environment Variables" and of ROCm's "GPU isolation techniques".
"""

# ruff: noqa: ANN401 -- torch has no types here
from __future__ import annotations

from .obstacle import Obstacle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .obstacle import Machine

_HIDING = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
# Compiled where torch is there and has loaded `re`: a project may have its own.
_NO_DRIVER = r"Found no \w+ driver"
_OLD_DRIVER = r"driver on your system is too old \(found version (\d+)\)"
_NO_GPU = r"No \w+ GPUs are available"
_MOST_TEXT = 200


def cuda_obstacle(torch: Any, machine: Machine) -> Obstacle | None:
    """Return the first cause that holds; None if CUDA can be used.

    With `Machine.tried` torch is asked to initialise CUDA, and its words tell whether
    it is the driver. A variable counts only then as the cause when they do not.
    """
    if not _is_built(torch):
        return Obstacle(
            "build-without-cuda",
            f"this build of torch ({torch.__version__}) has neither CUDA nor ROCm",
            "install a build of torch with CUDA, on a machine with a GPU",
        )
    if torch.cuda.is_available():
        return None
    told = _words(torch) if machine.tried else ""
    return _of_driver(torch, told) or _hidden(machine) or _no_gpu(told)


def _is_built(torch: Any) -> bool:
    version = getattr(torch, "version", None)
    return bool(getattr(version, "cuda", None) or getattr(version, "hip", None))


def _words(torch: Any) -> str:
    try:
        torch.cuda.init()
    except Exception as error:
        return " ".join(str(error).split())
    return ""


def _of_driver(torch: Any, told: str) -> Obstacle | None:
    import re

    if re.search(_NO_DRIVER, told):
        return Obstacle(
            "no-cuda-driver",
            "torch finds no driver of a GPU",
            "install it, so that nvidia-smi lists the GPU (a container has to be given "
            "it), or use a machine that has one",
        )
    old = re.search(_OLD_DRIVER, told)
    if old is None:
        return None
    return Obstacle(
        "old-cuda-driver",
        f"the driver (CUDA {_version(old[1])}) is too old for this build of torch "
        f"(CUDA {torch.version.cuda})",
        "update the driver, or install a build of torch for an older CUDA",
    )


def _version(number: str) -> str:
    """Return ``12.8`` for ``12080``, as ``cudaDriverGetVersion`` counts."""
    return f"{int(number) // 1000}.{int(number) % 1000 // 10}"


def _hidden(machine: Machine) -> Obstacle | None:
    for name in _HIDING:
        value = machine.environ.get(name)
        if value is not None:
            return Obstacle(
                "cuda-hidden",
                f"{name}={value!r} leaves torch no GPU",
                f"unset {name}",
            )
    return None


def _no_gpu(told: str) -> Obstacle:
    import re

    remedy = "see nvidia-smi, or use a machine that has a GPU"
    if told and not re.search(_NO_GPU, told):
        cause = f"torch cannot start CUDA ({told[:_MOST_TEXT]})"
        return Obstacle("cuda-fails", cause, remedy)
    return Obstacle("no-cuda-gpu", "torch finds no GPU", remedy)
