"""Read the environment variables that change numbers, and nothing else of them."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .facts import Probe

# Settings that change numbers, speed or memory. Nothing else of the environment is
# ever stored: it may hold secrets.
VARIABLES = (
    "PYTHONHASHSEED",
    "OMP_NUM_THREADS",
    "OMP_PROC_BIND",
    "OMP_WAIT_POLICY",
    "OMP_DYNAMIC",
    "OMP_SCHEDULE",
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "KMP_DETERMINISTIC_REDUCTION",
    "MKL_NUM_THREADS",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "MKL_DYNAMIC",
    "OPENBLAS_NUM_THREADS",
    "OPENBLAS_CORETYPE",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NPY_DISABLE_CPU_FEATURES",
    "ONEDNN_MAX_CPU_ISA",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "DNNL_MAX_CPU_ISA",
    "ATEN_CPU_CAPABILITY",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDNN_DETERMINISTIC",
    "NVIDIA_TF32_OVERRIDE",
    "NCCL_ALGO",
    "NCCL_PROTO",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "PYTORCH_ENABLE_MPS_FALLBACK",
    "PYTORCH_MPS_FAST_MATH",
    "PYTORCH_MPS_PREFER_METAL",
    "PYTORCH_MPS_DISABLE_PREFILL_ATTENTION",
    "PYTORCH_MPS_METAL_VERSION",
    "PYTORCH_MPS_HIGH_WATERMARK_RATIO",
    "PYTORCH_MPS_LOW_WATERMARK_RATIO",
    # No release reads these two: who sets them believes something that is not so.
    "PYTORCH_MPS_ALLOC_CONF",
    "PYTORCH_MPS_GRAPH_CACHE_POLICY",
    "PYTORCH_DEBUG_MPS_ALLOCATOR",
    "PYTORCH_MPS_LOG_PROFILE_INFO",
    "PYTORCH_MPS_TRACE_SIGNPOSTS",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_CUDNN_V8_API_DISABLED",
    "TORCH_BLAS_PREFER_CUBLASLT",
    "TORCH_NUM_THREADS",
    "TORCH_LINALG_PREFER_CUSOLVER",
    "PYTORCH_TUNABLEOP_ENABLED",
    "PYTORCH_JIT",
    "TORCH_COMPILE_DISABLE",
    "TORCHDYNAMO_DISABLE",
    "TORCH_FORCE_WEIGHTS_ONLY_LOAD",
    "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD",
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE",
    "HF_DATASETS_OFFLINE",
    "RANK",
    "WORLD_SIZE",
    "MTL_DEBUG_LAYER",
    "MTL_CAPTURE_ENABLED",
    "METAL_DEVICE_WRAPPER_TYPE",
    "LANG",
    "LC_ALL",
    "LC_NUMERIC",
    "TZ",
)


def probes() -> Iterator[Probe]:
    """Yield a probe for each allowed variable that is set, and one for those unset.

    The values are those before the user's code: some libraries read a variable when
    they are imported, and what a script sets later comes too late for them.
    """
    for name in VARIABLES:
        if name in os.environ:
            yield f"env.{name}", "os.environ", _variable(name)
    unset = [name for name in VARIABLES if name not in os.environ]
    yield "env.unset", "os.environ", lambda: unset


def changed_probes(found: dict[str, str | None]) -> Iterator[Probe]:
    """Yield a probe for each allowed variable that was changed since `found`.

    Torch reads several of them once, while it is imported: what they were then is
    what is in force, whatever they were before or will be later.

    Args:
        found: What `read` returned at the start.
    """
    changed = [name for name in VARIABLES if os.environ.get(name) != found.get(name)]
    for name in changed:
        yield f"at_torch.env.{name}", "os.environ", _variable(name)
    yield "at_torch.env.changed", "os.environ", lambda: changed


def read() -> dict[str, str | None]:
    """Return the allowed variables as they are now, None for those unset."""
    return {name: os.environ.get(name) for name in VARIABLES}


def _variable(name: str) -> Callable[[], str]:
    return lambda: os.environ.get(name, "(unset)")
