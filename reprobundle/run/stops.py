"""Recognise the errors that say what this machine cannot do.

A replay that ends in one of them did not give another result: it could not be run here,
and the record names the reason. The texts are those of torch 2.0 to 2.15, from its
sources and the strings of its macOS binaries.
"""

from __future__ import annotations

import re
from typing import Literal

from reprobundle.format.record import ErrorReport

StopReason = Literal["", "operator", "memory", "dtype", "cuda_required", "platform"]

MOST_DETAIL = 300
# aten/src/ATen/mps/MPSFallback.mm: 1.x said "current", later ones "currently".
_OPERATOR = re.compile(
    r"The operator '(?P<operator>[^']+)' is not current(ly)? implemented for the MPS "
    r"device"
)
# float64 and complex128: one sentence for a tensor on MPS, one for the way to it.
_DTYPE = re.compile(
    r"Cannot convert a (MPS Tensor to (?P<on>\w+) dtype|(?P<to>\w+) Tensor to MPS) as "
    r"the MPS framework doesn't support"
    r"|BFloat16 is not supported on MPS"
    r"|MPS bfloat16 type is supported on MacOS"
)
# On MPS out of memory is a plain RuntimeError.
_MEMORY = re.compile(
    r"MPS backend out of memory|Invalid buffer size:|CUDA out of memory"
    r"|CUDA error: out of memory"
)
# What a torch without CUDA, or without a GPU, answers a script that names it, in
# torch/cuda, torch/serialization.py, c10/cuda and torch/utils/cpp_extension.py; and the
# words of recorder/mapped_calls.py.
_CUDA = re.compile(
    r"Torch not compiled with CUDA enabled"
    r"|PyTorch was compiled without CUDA support"
    r"|Found no NVIDIA driver on your system"
    r"|The NVIDIA driver on your system is too old"
    r"|No CUDA GPUs are available"
    r"|CUDA driver initialization failed, you might not have a CUDA gpu"
    r"|no CUDA-capable device is detected"
    r"|CUDA driver version is insufficient"
    r"|Attempting to deserialize object on a CUDA device but"
    r"|Cannot (initialize CUDA|get CUDA generator) without ATen_cuda library"
    r"|with arguments from the 'CUDA' backend"
    r"|Tried to instantiate dummy base class (Event|Stream|CUDAGraph|_?Cuda\w+)"
    r"|Distributed package doesn't have NCCL built in"
    r"|ProcessGroupNCCL is only supported with GPUs"
    r"|CUDA_HOME environment variable is not set"
    r"|has no counterpart on \w+: the run cannot be mapped from CUDA"
)
# What a torch without MPS answers a script that names it, in c10/core/Allocator.cpp,
# ATen/detail/MPSHooksInterface.h, torch/csrc/Storage.cpp and the dispatcher. One that
# was built with MPS has a fallback for every operator, and never says the first.
_MPS = re.compile(
    r"with arguments from the 'MPS' backend"
    r"|PyTorch is not linked with support for mps devices"
    r"|Cannot execute \w+\(\) without MPS backend"
    r"|Storage device not recognized: mps"
)


def stop_of(error: ErrorReport) -> tuple[StopReason, str]:
    """Return the stop reason that an error stands for, and one line about it.

    Args:
        error: What ended the run.

    Returns:
        Two empty texts when it is no such error.
    """
    message, place = error.message, f" at {error.where}" if error.where else ""
    operator = _OPERATOR.search(message)
    if operator:
        return "operator", (
            f"{operator['operator']} has no kernel for MPS in this version of torch"
            f"{place}; --fallback diagnose goes on with the CPU in its place"
        )
    if _DTYPE.search(message):
        return "dtype", f"{_one_line(message)}{place}"
    if _MEMORY.search(message) or error.type.endswith("OutOfMemoryError"):
        return "memory", f"{_one_line(message)}{place}"
    if _CUDA.search(message):
        return "cuda_required", f"{_one_line(message)}{place}"
    if _MPS.search(message):
        said = _one_line(message).partition(". ")[0]
        return "platform", f"the script names MPS, which is not here: {said}{place}"
    return "", ""


def _one_line(message: str) -> str:
    return " ".join(message.split())[:MOST_DETAIL]
