"""What names of torch do on a build without CUDA, which every build for macOS is.

The functions of ``torch.cuda`` were called one by one on torch 2.13.0 without CUDA:
those in `QUIET` return there without an error, all others raise.
"""

from __future__ import annotations

from typing import NamedTuple

from reprobundle.format.scan_report import Level, Standing

QUIET = frozenset(
    {
        "OutOfMemoryError",
        "device_count",
        "device_of",
        "empty_cache",
        "get_arch_list",
        "get_rng_state_all",
        "is_available",
        "is_bf16_supported",
        "is_initialized",
        "is_tf32_supported",
        "list_gpu_processes",
        "manual_seed",
        "manual_seed_all",
        "max_memory_allocated",
        "max_memory_cached",
        "max_memory_reserved",
        "memory_allocated",
        "memory_cached",
        "memory_reserved",
        "memory_stats",
        "seed",
        "seed_all",
        "set_stream",
        "stream",
    }
)


class Known(NamedTuple):
    """What is known of one dotted name.

    Attributes:
        level: Level it belongs to.
        rule: Name of the rule.
        standing: How an unguarded use stands.
        because: Why.
        remedy: What to do.
    """

    level: Level
    rule: str
    standing: Standing
    because: str
    remedy: str


_DEVICE = "take the device from one place: cuda, else mps, else cpu"
_COMPILED = "write an implementation for MPS, or keep this part on Linux"
_JOBS = "keep jobs on several GPUs on Linux; give one-device runs a path without it"


def _own(because: str, standing: Standing = "blocker") -> Known:
    return Known("own-kernels", "own-kernel", standing, because, _COMPILED)


def _ranks(because: str, standing: Standing = "blocker") -> Known:
    return Known("distributed", "distributed-api", standing, because, _JOBS)


def _ignored(because: str, remedy: str) -> Known:
    return Known("standard-api", "cuda-ignored", "check", because, remedy)


# Longest prefix wins.
KNOWN: dict[str, Known] = {
    "torch.cuda": Known(
        "standard-api",
        "cuda-call",
        "blocker",
        "raises on a build without CUDA",
        "guard it, or use torch.accelerator or torch.mps where there is such a call",
    ),
    "torch.cuda.amp": _ignored(
        "is switched off with a warning without CUDA: the run is in float32 there",
        "use torch.autocast with the device's own type",
    ),
    "torch.cuda.nvtx": Known(
        "standard-api",
        "nvidia-profiling",
        "blocker",
        "raises without CUDA: it marks ranges for NVIDIA's profiler",
        "guard it, or use torch.mps.profiler there",
    ),
    "torch.cuda.CUDAGraph": Known(
        "standard-api",
        "cuda-graph",
        "blocker",
        "CUDA graphs have no form on MPS",
        "run the same steps without a graph",
    ),
    "torch.cuda.profiler": Known(
        "standard-api",
        "nvidia-profiling",
        "blocker",
        "starts NVIDIA's profiler",
        "guard it, or use torch.mps.profiler there",
    ),
    "torch.utils.cpp_extension.CUDAExtension": _own("is compiled with nvcc"),
    "torch.utils.cpp_extension.CppExtension": _own(
        "own C++ runs on the CPU, or has to be written for MPS", "check"
    ),
    "torch.utils.cpp_extension.load": _own("compiles own code when the program runs"),
    "torch.utils.cpp_extension.load_inline": _own(
        "compiles own code when the program runs"
    ),
    "torch.utils.cpp_extension.CUDA_HOME": _own("asks for a CUDA toolkit", "check"),
    "triton.jit": _own("is a Triton kernel"),
    "triton.autotune": _own("is a Triton kernel"),
    "numba.cuda.jit": _own("is a CUDA kernel"),
    "cupy.RawKernel": _own("is a CUDA kernel"),
    "torch.distributed.init_process_group": _ranks("joins a group of processes"),
    "torch.nn.parallel.DistributedDataParallel": _ranks(
        "gives each process a GPU of its own"
    ),
    "torch.distributed.fsdp": _ranks("is a setting of sharding", "check"),
    "torch.distributed.fsdp.FullyShardedDataParallel": _ranks(
        "shards over several GPUs"
    ),
    "torch.distributed.fsdp.fully_shard": _ranks("shards over several GPUs"),
    "torch.distributed._composable.fsdp.fully_shard": _ranks(
        "shards over several GPUs"
    ),
    "torch.nn.DataParallel": _ranks(
        "runs the plain model where there is no CUDA device", "check"
    ),
    "torch.nn.parallel.DataParallel": _ranks(
        "runs the plain model where there is no CUDA device", "check"
    ),
    "torch.set_default_dtype": Known(
        "standard-api",
        "default-dtype",
        "check",
        "MPS has no float64",
        "keep float32 as the default there",
    ),
    "torch.compile": Known(
        "standard-api",
        "compiled",
        "check",
        "the compiler for MPS is younger than the one for CUDA",
        "run once without it as the control",
    ),
    "importlib.import_module": Known(
        "third-party",
        "late-import",
        "late",
        "the module is chosen while the program runs",
        "look at what it can choose; the launch log shows what it did",
    ),
    "torch.ops.load_library": _own("loads a compiled library", "late"),
}
DEVICE_REMEDY = _DEVICE


def known(dotted: str) -> Known | None:
    """Return what is known of a dotted name, by its longest known beginning."""
    parts = dotted.split(".")
    if parts[:2] == ["torch", "cuda"] and (len(parts) == 2 or parts[2] in QUIET):
        return None
    for end in range(len(parts), 1, -1):
        found = KNOWN.get(".".join(parts[:end]))
        if found is not None:
            return found
    return None
