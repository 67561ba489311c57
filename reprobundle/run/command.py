"""Between a command as typed and the command as recorded.

A recorded command must mean the same on another machine: an interpreter is stored by
its plain name, and a path inside the project as ``{project}/…``. The environment of a
run is the user's at pack time, and a small allow-list plus the recorded settings at
replay.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from reprobundle.run.paths_in_text import replace_all
from reprobundle.run.watch import is_python

PROJECT = "{project}"
DEVICE = "{device}"

# Settings that change numbers, or what a memory log means: a replay sets them to what
# the reference had. One that names a unit of another processor is passed over by the
# library that reads it. Every variable that `verify` grades as known to change numbers
# is here, for otherwise no replay could agree with the reference.
NUMERIC_VARIABLES = (
    "PYTHONHASHSEED",
    "OMP_NUM_THREADS",
    "OMP_DYNAMIC",
    "OMP_SCHEDULE",
    "KMP_DETERMINISTIC_REDUCTION",
    "MKL_NUM_THREADS",
    "MKL_DYNAMIC",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "OPENBLAS_NUM_THREADS",
    "OPENBLAS_CORETYPE",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "TORCH_NUM_THREADS",
    "NPY_DISABLE_CPU_FEATURES",
    "CUBLAS_WORKSPACE_CONFIG",
    "ATEN_CPU_CAPABILITY",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "ONEDNN_MAX_CPU_ISA",
    "DNNL_MAX_CPU_ISA",
    "NVIDIA_TF32_OVERRIDE",
    "NCCL_ALGO",
    "NCCL_PROTO",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_BLAS_PREFER_CUBLASLT",
    "TORCH_CUDNN_V8_API_DISABLED",
    "TORCH_LINALG_PREFER_CUSOLVER",
    "PYTORCH_TUNABLEOP_ENABLED",
    "PYTORCH_JIT",
    "TORCH_COMPILE_DISABLE",
    "TORCHDYNAMO_DISABLE",
    "PYTORCH_ENABLE_MPS_FALLBACK",
    "PYTORCH_MPS_DISABLE_PREFILL_ATTENTION",
    "PYTORCH_MPS_FAST_MATH",
    "PYTORCH_MPS_METAL_VERSION",
    "PYTORCH_MPS_PREFER_METAL",
    "PYTORCH_MPS_HIGH_WATERMARK_RATIO",
    "PYTORCH_MPS_LOW_WATERMARK_RATIO",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
)

# What a replayed command gets from the machine it runs on; nothing else, so that no
# token or address of the second person reaches foreign code.
REPLAY_VARIABLES = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "TERM",
    "TMPDIR",
    "TZ",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "SSL_CERT_FILE",
    "VIRTUAL_ENV",
)


def recorded_argv(argv: tuple[str, ...], root: Path) -> tuple[str, ...]:
    """Return `argv` in the form a record stores it.

    Args:
        argv: As typed.
        root: Top of the project.
    """
    first = argv[0]
    if is_python(first) and os.sep in first:
        first = "python"
    return (first, *(_portable(argument, root) for argument in argv[1:]))


def _portable(argument: str, root: Path) -> str:
    name, separator, value = argument.partition("=")
    head, path = (name + separator, value) if separator else ("", argument)
    if Path(path).is_absolute():
        resolved = Path(path).resolve()
        if resolved.is_relative_to(root):
            return f"{head}{PROJECT}/{resolved.relative_to(root).as_posix()}"
    # In the middle of a shell line too.
    return replace_all(argument, [(str(root), PROJECT)])


def runnable_argv(
    argv: tuple[str, ...],
    scratch: Path,
    python: Path,
    *,
    device: str = "as-is",
    words: Mapping[str, str] = MappingProxyType({}),
    placed: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str, ...]:
    """Return a recorded `argv` as it is run in `scratch` with `python`.

    Args:
        argv: As recorded.
        scratch: Stands for ``{project}``.
        python: Takes the place of a leading interpreter name.
        device: Stands for ``{device}``, unless it is ``as-is``.
        words: What other placeholders stand for, see `reprobundle.run.own_words`.
        placed: Path outside the project → where the same file lies here, which may
            be in the middle of a shell line.
    """
    first = str(python) if is_python(argv[0]) else argv[0]
    own = [replace_words(part, words) for part in (first, *argv[1:])]
    first, texts = own[0], [part.replace(PROJECT, str(scratch)) for part in own[1:]]
    texts = [replace_paths(text, placed) for text in texts]
    if device != "as-is":
        texts = [text.replace(DEVICE, device) for text in texts]
    return (first, *texts)


def replace_words(argument: str, words: Mapping[str, str]) -> str:
    """Return `argument` with each placeholder of `words` replaced."""
    for placeholder, own in words.items():
        argument = argument.replace(placeholder, own)
    return argument


def replace_paths(argument: str, placed: Mapping[str, str]) -> str:
    """Return `argument` with files taken from where they lie here.

    Args:
        argument: It may be a whole shell line.
        placed: Path as the argument has it → path here.
    """
    longest_first = sorted(placed.items(), key=lambda pair: -len(pair[0]))
    return replace_all(argument, longest_first)


def recorded_environment(
    variables: Mapping[str, str], *, seed: int | None, import_paths: list[str]
) -> dict[str, str]:
    """Return the variables that belong to the command on every machine.

    Args:
        variables: The environment of the pack call.
        seed: The given seed; it also fixes string hashing.
        import_paths: Project folders to import from, as ``{project}/…``.
    """
    kept = {name: variables[name] for name in NUMERIC_VARIABLES if name in variables}
    if seed is not None:
        kept["PYTHONHASHSEED"] = str(seed % 2**32)
    if import_paths:
        kept["PYTHONPATH"] = os.pathsep.join(import_paths)
    return kept


def run_environment(
    base: Mapping[str, str],
    recorded: Mapping[str, str],
    *,
    scratch: Path,
    python: Path,
    device: str,
) -> dict[str, str]:
    """Return the whole environment for one run.

    Args:
        base: The variables of the machine: all of them at pack, `REPLAY_VARIABLES`
            at replay.
        recorded: The command's own variables.
        scratch: Stands for ``{project}``.
        python: Its folder comes first on the path, so that console scripts and shell
            pipelines find the same environment.
        device: ``as-is`` or a device type, passed as ``REPROBUNDLE_DEVICE``.
    """
    result = {
        name: value for name, value in base.items() if name != "REPROBUNDLE_SESSION"
    }
    for name, value in recorded.items():
        own = value.replace(PROJECT, str(scratch))
        if name == "PYTHONPATH" and result.get(name):
            own = os.pathsep.join((own, result[name]))
        result[name] = own
    paths = [str(python.parent), result.get("PATH", os.defpath)]
    result["PATH"] = os.pathsep.join(paths)
    if device != "as-is":
        result["REPROBUNDLE_DEVICE"] = device
    if device in ("cpu", "mps"):
        # A script that picks an accelerator by itself must not find another one.
        result["CUDA_VISIBLE_DEVICES"] = ""
    return result


def replay_base(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the part of `variables` that a replayed command may see."""
    return {
        name: value
        for name, value in variables.items()
        if name in REPLAY_VARIABLES or name.startswith("LC_")
    }


def platform_name() -> str:
    """Return ``linux``, ``darwin`` or ``win32``, as records store it."""
    return sys.platform
