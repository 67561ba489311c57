"""Which packages need CUDA, what for, and what can stand in for them on a Mac.

The list is a judgement from the projects' own installation pages and the files they
publish (state of December 2026); a package that is not in it is not claimed to work.
Names are normalised (PEP 503). What newer releases do otherwise stands in `NEWER`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from reprobundle.format.scan_report import Level, Standing
from reprobundle.port.scan.versions import admits


class Package(NamedTuple):
    """What is known of one package.

    Attributes:
        level: Level it belongs to.
        standing: How an unguarded use of it stands: ``blocker`` or ``check``.
        because: Why.
        remedy: What can be done.
        replaceable: Whether something else can do its work without own kernels.
    """

    level: Level
    standing: Standing
    because: str
    remedy: str
    replaceable: bool


def _cuda_only(remedy: str, *, replaceable: bool = True) -> Package:
    why = "runs on NVIDIA GPUs only"
    return Package("third-party", "blocker", why, remedy, replaceable)


def _linux_build(remedy: str) -> Package:
    why = "the build of this name is for NVIDIA GPUs"
    return Package("third-party", "blocker", why, remedy, replaceable=True)


def _from_torch() -> Package:
    return Package(
        "third-party",
        "blocker",
        "comes with torch's CUDA build and has no file for macOS",
        "remove the line: on macOS nothing needs it",
        replaceable=True,
    )


def _distributed(standing: Standing, because: str) -> Package:
    remedy = "keep these jobs on Linux; give one-device runs a path without it"
    return Package("distributed", standing, because, remedy, replaceable=False)


def _check(because: str, remedy: str) -> Package:
    return Package("third-party", "check", because, remedy, replaceable=True)


_SDPA = "use torch.nn.functional.scaled_dot_product_attention"
_PLAIN = "write the same step with torch operators, chosen where the package is absent"
_KERNEL = "needs another implementation for MPS, or stays on Linux"
_QUANTISED = "load the unquantised weights on a Mac, or quantise with MLX or GGUF"

PACKAGES: dict[str, Package] = {
    "triton": _cuda_only(_PLAIN, replaceable=False),
    "pytorch-triton": _from_torch(),
    "flash-attn": _cuda_only(_SDPA),
    "flash-attn-interface": _cuda_only(_SDPA),
    "flash-attention": _cuda_only(_SDPA),
    "flashinfer-python": _cuda_only(_SDPA),
    "xformers": _cuda_only(_SDPA),
    "sageattention": _cuda_only(_SDPA),
    "apex": _cuda_only("use torch.amp and torch.optim; both do what apex did"),
    "bitsandbytes": _cuda_only(_QUANTISED),
    "transformer-engine": _cuda_only("use the torch layers and float16 or bfloat16"),
    "liger-kernel": _cuda_only(_PLAIN),
    "unsloth": _cuda_only("use transformers and peft"),
    "auto-gptq": _cuda_only(_QUANTISED),
    "gptqmodel": _cuda_only(_QUANTISED),
    "autoawq": _cuda_only(_QUANTISED),
    "awq": _cuda_only(_QUANTISED),
    "exllamav2": _cuda_only(_QUANTISED),
    "vllm": Package(
        "third-party",
        "blocker",
        "publishes no file for macOS; built from source it computes on the CPU there",
        "serve with the plugin vllm-metal, which computes with MLX, or another engine",
        replaceable=True,
    ),
    "sglang": _cuda_only("serve with another engine on a Mac"),
    "causal-conv1d": _cuda_only(_PLAIN),
    "mamba-ssm": _cuda_only(_KERNEL, replaceable=False),
    "natten": _cuda_only(_KERNEL, replaceable=False),
    "tinycudann": _cuda_only(_KERNEL, replaceable=False),
    "tiny-cuda-nn": _cuda_only(_KERNEL, replaceable=False),
    "gsplat": _cuda_only(_KERNEL, replaceable=False),
    "nerfacc": _cuda_only(_KERNEL, replaceable=False),
    "nvdiffrast": _cuda_only(_KERNEL, replaceable=False),
    "diff-gaussian-rasterization": _cuda_only(_KERNEL, replaceable=False),
    "simple-knn": _cuda_only(_KERNEL, replaceable=False),
    "kaolin": _cuda_only(_KERNEL, replaceable=False),
    "spconv": _cuda_only(_KERNEL, replaceable=False),
    "torchsparse": _cuda_only(_KERNEL, replaceable=False),
    "minkowskiengine": _cuda_only(_KERNEL, replaceable=False),
    "tensorrt": _cuda_only("run the torch model itself, or Core ML"),
    "torch-tensorrt": _cuda_only("run the torch model itself, or Core ML"),
    "torch2trt": _cuda_only("run the torch model itself, or Core ML"),
    "nvidia-dali": _cuda_only("load and augment with torchvision on the CPU"),
    "pycuda": _cuda_only(_KERNEL, replaceable=False),
    "cupy": _cuda_only("use numpy or torch for this step"),
    "cuda-python": _cuda_only(_KERNEL, replaceable=False),
    "cuda-bindings": _from_torch(),
    "numba-cuda": _cuda_only(_KERNEL, replaceable=False),
    "cudf": _cuda_only("use pandas or polars"),
    "cuml": _cuda_only("use scikit-learn"),
    "cugraph": _cuda_only("use networkx"),
    "rmm": _cuda_only("leave memory to torch"),
    "pynvml": _cuda_only("ask torch.mps or psutil on a Mac"),
    "nvidia-ml-py": _check(
        "installs anywhere, and finds no NVIDIA driver on a Mac",
        "guard its calls; ask torch.mps or psutil on a Mac",
    ),
    "py3nvml": _cuda_only("ask torch.mps or psutil on a Mac"),
    "nvidia-smi": _cuda_only("ask torch.mps or psutil on a Mac"),
    "gputil": _check("calls nvidia-smi, which a Mac does not have", "guard its calls"),
    "nvtx": _cuda_only("use torch.mps.profiler or nothing on a Mac"),
    "faiss-gpu": _linux_build("install faiss-cpu"),
    "onnxruntime-gpu": _linux_build("install onnxruntime"),
    "tensorflow-gpu": _linux_build("install tensorflow"),
    "paddlepaddle-gpu": _linux_build("install paddlepaddle"),
    "pytorch-cuda": _linux_build("leave it out of the environment for macOS"),
    "cudatoolkit": _linux_build("leave it out of the environment for macOS"),
    "cuda-toolkit": _linux_build("leave it out of the environment for macOS"),
    "cuda-version": _linux_build("leave it out of the environment for macOS"),
    "cuda-nvcc": _linux_build("leave it out of the environment for macOS"),
    "cudatoolkit-dev": _linux_build("leave it out of the environment for macOS"),
    "cudnn": _linux_build("leave it out of the environment for macOS"),
    "pytorch-gpu": _linux_build("install pytorch"),
    "deepspeed": _distributed("blocker", "drives several NVIDIA GPUs"),
    "horovod": _distributed("blocker", "drives several GPUs over NCCL or MPI"),
    "fairscale": _distributed("blocker", "shards over several GPUs"),
    "megatron-core": _distributed("blocker", "shards over several NVIDIA GPUs"),
    "megatron": _distributed("blocker", "shards over several NVIDIA GPUs"),
    "colossalai": _distributed("blocker", "shards over several NVIDIA GPUs"),
    "nccl": _distributed("blocker", "NCCL connects NVIDIA GPUs only"),
    "mpi4py": _distributed("check", "starts many processes"),
    "torch-scatter": _check(
        "on macOS it is compiled at installation and has no MPS kernels",
        "use torch.scatter_reduce, or expect these steps on the CPU",
    ),
    "torch-sparse": _check(
        "on macOS it is compiled at installation and has no MPS kernels",
        "expect these steps on the CPU",
    ),
    "torch-cluster": _check(
        "on macOS it is compiled at installation and has no MPS kernels",
        "expect these steps on the CPU",
    ),
    "pytorch3d": _check(
        "on macOS it is compiled at installation and has no MPS kernels",
        "expect these steps on the CPU",
    ),
    "detectron2": _check(
        "on macOS it is compiled at installation; its kernels have no MPS form",
        "expect these steps on the CPU, or use torchvision's models",
    ),
    "mmcv": _check(
        "on macOS it is compiled at installation; few kernels have an MPS form",
        "expect these steps on the CPU",
    ),
}

# Release from which another entry holds. Sources: the installation pages of
# bitsandbytes 0.48 to 0.50 and its files (macOS 14 and newer from 0.49 on), its pull
# request 1983; the notes of GPTQModel 1.4.2; issues 4 and 685 of unsloth.
NEWER: dict[str, tuple[str, Package]] = {
    "bitsandbytes": (
        "0.49",
        _check(
            "installs on macOS 14 from 0.49 on; 4-bit and int8 layers run on MPS from "
            "0.50 on, its 8-bit optimizers do not",
            "require 0.50 or newer there, take an optimizer of torch, and compare the "
            "numbers with those of CUDA",
        ),
    ),
    "gptqmodel": (
        "1.4.2",
        _check(
            "runs on MPS from 1.4.2 on, and is compiled at installation on macOS",
            "compare the numbers with those of CUDA",
        ),
    ),
    "unsloth": (
        "2026.9",
        _check(
            "trains with MLX on a Mac from 2026.9 on (no GRPO), not with torch on MPS",
            "use transformers and peft where the result has to be one of MPS",
        ),
    ),
}

# Names under which they are imported, where that is not the name itself.
_IMPORTED = {
    "flash_attn_interface": "flash-attn-interface",
    "flashinfer": "flashinfer-python",
    "transformer_engine": "transformer-engine",
    "liger_kernel": "liger-kernel",
    "auto_gptq": "auto-gptq",
    "causal_conv1d": "causal-conv1d",
    "causal_conv1d_cuda": "causal-conv1d",
    "selective_scan_cuda": "mamba-ssm",
    "mamba_ssm": "mamba-ssm",
    "diff_gaussian_rasterization": "diff-gaussian-rasterization",
    "simple_knn": "simple-knn",
    "MinkowskiEngine": "minkowskiengine",
    "torch_tensorrt": "torch-tensorrt",
    "amp_C": "apex",
    "nvidia.dali": "nvidia-dali",
    "numba.cuda": "numba-cuda",
    "cuda.bindings": "cuda-python",
    "GPUtil": "gputil",
    "megatron.core": "megatron-core",
    "torch_scatter": "torch-scatter",
    "torch_sparse": "torch-sparse",
    "torch_cluster": "torch-cluster",
}

_FAMILIES = (
    (re.compile(r"nvidia-[a-z0-9-]*(cu1[0-9]|cu[0-9]+)"), _from_torch()),
    (re.compile(r"nvidia-(cu|nccl|nvjitlink|nvtx|nvshmem)[a-z0-9-]*"), _from_torch()),
    (re.compile(r"cupy-(cuda|rocm)[0-9a-z-]*"), PACKAGES["cupy"]),
    (re.compile(r"spconv-cu[0-9]+"), PACKAGES["spconv"]),
    (re.compile(r"nvidia-dali-.*"), PACKAGES["nvidia-dali"]),
    (re.compile(r"(cudf|cuml|cugraph|rmm)-cu[0-9]+"), PACKAGES["cudf"]),
    (re.compile(r"faiss-gpu-.*"), PACKAGES["faiss-gpu"]),
    (re.compile(r"dgl(l?)-cu[0-9]+"), _linux_build("install dgl")),
    (re.compile(r"tensorrt-.*"), PACKAGES["tensorrt"]),
    (re.compile(r"(cuda-(cudart|nvrtc|libraries|runtime|compiler)).*"), _from_torch()),
)

# A build that cannot exist on macOS: ``2.8.0+cu126``, ``+rocm6.4``, ``+pt20cu118``.
GPU_LABEL = re.compile(r"\+[a-z0-9.]*?(cu[0-9]{2,3}|rocm[0-9.]+|xpu)\b")


def normalised(name: str) -> str:
    """Return a distribution's name as PEP 503 writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def distribution(name: str, specifier: str = "") -> Package | None:
    """Return what is known of a distribution, or None.

    Args:
        name: As written.
        specifier: Which releases are wanted, as PEP 440 writes it; empty for any, and
            the newest is then what comes.
    """
    plain = normalised(name)
    if plain in NEWER:
        since, newer = NEWER[plain]
        if admits(specifier, since):
            return newer
        older = PACKAGES[plain]
        return older._replace(
            because=f"releases before {since}: {older.because}",
            remedy=f"let {since} or newer come, or {older.remedy}",
        )
    if plain in PACKAGES:
        return PACKAGES[plain]
    return next(
        (found for pattern, found in _FAMILIES if pattern.fullmatch(plain)), None
    )


def imported(module: str) -> tuple[str, Package] | None:
    """Return the package that importing `module` needs, with its name, or None.

    Args:
        module: Dotted, such as ``flash_attn.bert_padding``.
    """
    parts = module.split(".")
    for end in range(min(len(parts), 2), 0, -1):
        dotted = ".".join(parts[:end])
        name = _IMPORTED.get(dotted, dotted if end == 1 else "")
        found = distribution(name) if normalised(name) in PACKAGES else None
        if found is not None and not name.startswith(("cuda-", "nvidia-ml")):
            return name.replace("_", "-"), found
        if dotted in _IMPORTED and found is not None:
            return name, found
    return None
