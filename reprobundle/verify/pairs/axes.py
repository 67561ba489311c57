"""Along which axis a difference between two runs lies."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import get_args

from reprobundle.format.difference_report import Axis

# Pattern over dotted fact names → what a difference in it is a change of. The first
# match counts; a fact that none matches is `other` and breaks no rule.
AXES: tuple[tuple[str, Axis], ...] = (
    ("asked.round", "keeping"),
    ("heard.round", "keeping"),
    ("asked.with.*", "version"),
    ("asked.threads", "threads"),
    ("asked.cpu_capability", "architecture"),
    ("asked.deterministic", "precision"),
    ("asked.benchmark", "precision"),
    ("asked.fast_math", "precision"),
    ("asked.*_NUM_THREADS", "threads"),
    ("*batch_size*", "batch"),
    ("*shape*", "shape"),
    ("*sequence_length*", "shape"),
    ("*resolution*", "shape"),
    ("*tf32*", "precision"),
    ("*TF32*", "precision"),
    ("*precision*", "precision"),
    ("*default_dtype*", "precision"),
    ("*autocast*", "precision"),
    ("*PYTORCH_MPS_FAST_MATH", "precision"),
    ("*reduced_precision*", "precision"),
    ("*CUBLAS_WORKSPACE_CONFIG", "precision"),
    ("torch.deterministic*", "precision"),
    ("torch.cudnn.deterministic", "precision"),
    ("torch.cudnn.benchmark", "precision"),
    ("torch.sdp.*", "precision"),
    ("*ATEN_CPU_CAPABILITY", "architecture"),
    ("*PYTORCH_ENABLE_MPS_FALLBACK", "fallback"),
    ("*ALLOC_CONF", "allocator"),
    ("*WATERMARK*", "allocator"),
    ("*NUM_THREADS", "threads"),
    ("*num_threads", "threads"),
    ("*interop_threads", "threads"),
    ("torch.*_threads", "threads"),
    ("cpu.usable", "threads"),
    ("cpu.quota", "threads"),
    ("cpu.logical", "architecture"),
    ("cpu.physical", "architecture"),
    ("cpu.*", "architecture"),
    ("torch.cpu_capability", "architecture"),
    ("torch.cuda.capabilities", "architecture"),
    ("torch.cuda.devices", "architecture"),
    ("torch.cuda.memory_bytes", "architecture"),
    ("torch.mps.*", "architecture"),
    ("numpy.cpu_features", "architecture"),
    ("machine.*", "architecture"),
    ("gpu.driver", "version"),
    ("gpu.*", "architecture"),
    ("os.*", "version"),
    ("mps.graph_version", "version"),
    ("torch.version", "version"),
    ("torch.git_version", "version"),
    ("torch.*.built", "version"),
    ("torch.cudnn.version", "version"),
    ("torch.mkl*", "version"),
    ("numpy.*", "version"),
    ("python.version", "version"),
    ("python.build", "version"),
    ("libraries.*", "version"),
    ("distributions.*", "version"),
    ("package.*", "version"),
    ("env.PYTHONHASHSEED", "seed"),
    ("observed.*", "data"),
    # Everything else that is known to change numbers: which kernels run, and how.
    ("*OPENBLAS_CORETYPE", "architecture"),
    ("*MKL_CBWR", "architecture"),
    ("*MKL_ENABLE_INSTRUCTIONS", "architecture"),
    ("*NPY_DISABLE_CPU_FEATURES", "architecture"),
    ("*MAX_CPU_ISA", "architecture"),
    ("*_THREADS", "threads"),
    ("env.*_DYNAMIC", "threads"),
    ("*OMP_SCHEDULE", "threads"),
    ("*KMP_DETERMINISTIC_REDUCTION", "threads"),
    ("torch.blas", "version"),
    ("torch.openmp", "version"),
    ("torch.mkldnn.enabled", "version"),
    ("*flush_denormal", "precision"),
    ("torch.mkldnn.deterministic", "precision"),
    ("torch.cudnn.enabled", "precision"),
    ("torch.*fp16_accumulation", "precision"),
    ("torch.mha_fastpath", "precision"),
    ("*ONEDNN_DEFAULT_*", "precision"),
    ("*PYTORCH_MPS_PREFER_METAL", "precision"),
    ("*PYTORCH_MPS_METAL_VERSION", "precision"),
    ("*PYTORCH_MPS_DISABLE_*", "precision"),
    ("*TORCH_COMPILE_DISABLE", "precision"),
    ("*TORCHDYNAMO_DISABLE", "precision"),
    ("*TORCH_BLAS_PREFER_CUBLASLT", "precision"),
    ("*TORCH_LINALG_PREFER_CUSOLVER", "precision"),
    ("*TORCH_CUDNN_V8_API_DISABLED", "precision"),
    ("env.PYTORCH_JIT", "precision"),
    ("env.PYTORCH_TUNABLEOP_ENABLED", "precision"),
    ("env.NCCL_*", "precision"),
)

# What a replay asked for, where it asked.
ASKED = ("asked.", "heard.")

# Along these a comparison of two runs says nothing if two are changed at once.
COUNTED: frozenset[Axis] = frozenset(get_args(Axis)) - {"other"}


def axis_of(fact: str) -> Axis:
    """Return what a difference in an environment fact is a change of."""
    plain = fact.removeprefix("end.").removeprefix("at_torch.")
    return next(
        (axis for pattern, axis in AXES if fnmatchcase(plain, pattern)), "other"
    )
