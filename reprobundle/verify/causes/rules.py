"""The rule base: what is known to change results, from where, and what to try.

The order of the table is the order in which the rules are worth trying: why a replay
did not run at all, then what was changed on purpose, then what the machine brings
along, and last what the numbers themselves show.
"""

from __future__ import annotations

from reprobundle.verify.causes.case import Rule
from reprobundle.verify.causes.changes import (
    asked,
    names_cuda,
    package,
    pipeline,
    saw,
    seeds,
    start,
    stopped,
)
from reprobundle.verify.causes.machine import (
    capability,
    differs,
    draws,
    other_device,
    threads,
)
from reprobundle.verify.causes.numbers import (
    grows,
    only_text,
    short_mantissa,
    unexplained,
)

_DOCS = "pytorch.org/docs/stable"
_REPRODUCIBILITY = f"{_DOCS}/notes/randomness.html"
_CUDA_NOTES = f"{_DOCS}/notes/cuda.html"
_ACCURACY = f"{_DOCS}/notes/numerical_accuracy.html"
_MPS_VARIABLES = f"{_DOCS}/mps_environment_variables.html"
_PROTOCOL = "spec.md, check V12"

_LIBRARIES = (
    "env.OPENBLAS_CORETYPE",
    "env.MKL_CBWR",
    "env.MKL_ENABLE_INSTRUCTIONS",
    "env.TORCH_BLAS_PREFER_CUBLASLT",
    "env.TORCH_LINALG_PREFER_CUSOLVER",
)

_AGAIN = "reprobundle replay {bundle}"
_FRESH = "reprobundle replay {bundle} --env fresh"
_ON_CPU = "reprobundle replay {bundle} --device cpu"

_STOPPED: tuple[Rule, ...] = (
    Rule(
        "missing-operator",
        "This release of torch has no kernel of an operator for MPS.",
        f"pytorch/pytorch#77764; {_MPS_VARIABLES}",
        stopped(
            "operator", "reprobundle replay {bundle} --device mps --fallback diagnose"
        ),
    ),
    Rule(
        "no-memory",
        "The device has not enough memory for the run.",
        f"{_MPS_VARIABLES}; {_CUDA_NOTES}#memory-management",
        stopped("memory", _ON_CPU),
    ),
    Rule(
        "no-float64",
        "MPS has no float64, and the run brings some there.",
        "docs/evidence.md",
        stopped("dtype", _ON_CPU),
    ),
    Rule(
        "needs-cuda",
        "The command names CUDA, which it does not get here.",
        "docs/devices.md",
        names_cuda,
    ),
    Rule(
        "missing-package",
        "The environment lacks a package that the reference had.",
        "docs/locks.md",
        package,
    ),
)

_CHANGED: tuple[Rule, ...] = (
    Rule(
        "asked-otherwise",
        "The replay was asked to differ from the reference.",
        "docs/diff.md",
        asked,
    ),
    Rule(
        "changed-files",
        "The script or its data was changed.",
        _PROTOCOL,
        saw("same-files", command=_AGAIN),
    ),
    Rule(
        "changed-input",
        "An input has other content than the reference read.",
        _PROTOCOL,
        saw("same-inputs", command=_AGAIN),
    ),
    Rule(
        "changed-command",
        "The command, its variables or its seed were changed.",
        _PROTOCOL,
        saw("same-command", "same-seed", command=_AGAIN),
    ),
    Rule(
        "reduced-input",
        "The replay saw only a part of the data.",
        _PROTOCOL,
        saw("reduced-input", command=_AGAIN),
    ),
    Rule(
        "masked-failure",
        "A part of the command failed, and the shell reported the success of another.",
        "POSIX: a pipeline has the exit status of its last command",
        pipeline,
    ),
    Rule(
        "cpu-fallback",
        "Operators ran on the CPU in the accelerator's place.",
        _MPS_VARIABLES,
        saw(
            "cpu-fallback",
            command="reprobundle replay {bundle} --device mps --fallback forbid",
        ),
    ),
    Rule(
        "mps-fault",
        "A kernel of MPS is known to be wrong for what it was given.",
        "docs/evidence.md; pytorch/pytorch#144824",
        saw("index-out-of-range", "known-mps-fault", command=_ON_CPU),
    ),
    Rule(
        "draw-mode",
        "The two runs made their random draws in different ways.",
        "docs/draws.md",
        saw("same-draws", "draws-taken", command=_AGAIN),
    ),
    Rule("no-seed", "The scripts set other seeds, or none.", _REPRODUCIBILITY, seeds),
    Rule(
        "other-steps",
        "The training ended after another number of steps.",
        _PROTOCOL,
        saw("same-steps", command=_AGAIN),
    ),
)

_MACHINE: tuple[Rule, ...] = (
    Rule(
        "tf32",
        "One side multiplied float32 matrices with TF32 or shorter mantissas.",
        f"{_CUDA_NOTES}#tf32-on-ampere; pytorch/pytorch#58434",
        differs(
            "env.NVIDIA_TF32_OVERRIDE",
            "env.TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
            "env.ONEDNN_DEFAULT_FPMATH_MODE",
            "torch.matmul_precision",
            "torch.*allow_tf32",
            "torch.*fp32_precision",
            "torch.*reduced_precision*",
            "torch.*fp16_accumulation",
        ),
    ),
    Rule(
        "autocast",
        "One side computed in another dtype by default or by autocast.",
        f"{_DOCS}/amp.html",
        differs("torch.default_dtype", "torch.autocast.*"),
    ),
    Rule(
        "kernel-choice",
        "One side may choose kernels that are fast and not deterministic.",
        _REPRODUCIBILITY,
        differs(
            "torch.deterministic",
            "torch.cudnn.deterministic",
            "torch.mkldnn.deterministic",
            "torch.cudnn.benchmark",
            "env.CUBLAS_WORKSPACE_CONFIG",
            "env.TORCH_CUDNN_V8_API_DISABLED",
            "env.PYTORCH_TUNABLEOP_ENABLED",
        ),
    ),
    Rule(
        "compiler",
        "One side ran compiled code, which rounds otherwise, and the other did not.",
        f"{_DOCS}/torch.compiler_troubleshooting.html",
        differs(
            "env.TORCH_COMPILE_DISABLE", "env.TORCHDYNAMO_DISABLE", "env.PYTORCH_JIT"
        ),
    ),
    Rule(
        "attention",
        "Another algorithm computes attention.",
        f"{_DOCS}/generated/torch.nn.functional.scaled_dot_product_attention.html",
        differs("torch.sdp.*", "torch.mha_fastpath", "env.PYTORCH_MPS_DISABLE_*"),
    ),
    Rule(
        "hash-seed",
        "Sets and dictionaries of one side come in another order.",
        "docs.python.org/3/using/cmdline.html#envvar-PYTHONHASHSEED",
        differs("env.PYTHONHASHSEED"),
    ),
    Rule(
        "torch-version",
        "Another release of torch has other kernels.",
        _REPRODUCIBILITY,
        differs(
            "torch.version", "torch.git_version", command=_FRESH, same_devices=True
        ),
    ),
    Rule(
        "numpy-version",
        "Another release of numpy has other kernels and generators.",
        "numpy.org/doc/stable/reference/random/compatibility.html",
        differs("numpy.version", command=_FRESH),
    ),
    Rule(
        "python-version",
        "Another release of Python sums floats otherwise.",
        "docs.python.org/3/library/functions.html#sum (changed in version 3.12)",
        differs("python.version", command=_FRESH),
    ),
    Rule(
        "package-version",
        "Another release of a numeric package has other kernels.",
        "docs/locks.md",
        differs("package.*", command=_FRESH),
    ),
    Rule(
        "c-library",
        "Another C library computes exp, sin and pow of single numbers.",
        "sourceware.org/glibc/manual/latest/html_node/Errors-in-Math-Functions.html",
        differs("os.libc"),
    ),
    Rule(
        "mps-fast-math",
        "Metal shaders were compiled with other math options.",
        _MPS_VARIABLES,
        differs(
            "env.PYTORCH_MPS_FAST_MATH",
            "env.PYTORCH_MPS_PREFER_METAL",
            "env.PYTORCH_MPS_METAL_VERSION",
        ),
    ),
    Rule(
        "mps-graph",
        "MPSGraph is a part of macOS: another build of it computes other numbers.",
        "pytorch/pytorch#122016; actions/runner-images#14380",
        differs("mps.graph_version", "os.build", command=_ON_CPU, same_devices=True),
    ),
    Rule(
        "gpu",
        "Another GPU, driver or cuDNN has other kernels.",
        _REPRODUCIBILITY,
        differs(
            "torch.cuda.devices",
            "torch.cuda.capabilities",
            "torch.cudnn.version",
            "gpu.driver",
            "torch.mps.name",
            command=_ON_CPU,
            same_devices=True,
        ),
    ),
    Rule(
        "cpu-capability",
        "Kernels for other vector units sum in another order.",
        f"{_ACCURACY}; pytorch/pytorch#155423",
        capability,
    ),
    Rule(
        "threads",
        "Another number of threads sums in another order.",
        f"{_ACCURACY}; pytorch/pytorch#88718",
        threads,
    ),
    Rule(
        "blas",
        "Another library, or another kernel of it, multiplies matrices.",
        _ACCURACY,
        differs(
            "torch.blas", "torch.mkl", "torch.mkldnn.enabled", "numpy.blas", *_LIBRARIES
        ),
    ),
    Rule(
        "denormals",
        "One side takes the smallest numbers for zero.",
        f"{_DOCS}/generated/torch.set_flush_denormal.html",
        differs("torch.flush_denormal", "python.flush_denormal"),
    ),
    Rule(
        "generators",
        "Random generators draw other numbers on this machine.",
        f"{_REPRODUCIBILITY}; pytorch/pytorch#84288",
        draws,
    ),
    Rule(
        "other-device",
        "Another kind of device has other kernels and another generator.",
        _REPRODUCIBILITY,
        other_device,
    ),
    Rule(
        "other-start",
        "The two runs began with other weights, inputs or batches.",
        f"{_REPRODUCIBILITY}; docs/draws.md",
        start,
    ),
)

_NUMBERS: tuple[Rule, ...] = (
    Rule(
        "short-mantissa",
        "The error has the size of bfloat16 or TF32 products, not of float32.",
        f"{_CUDA_NOTES}#tf32-on-ampere; {_ACCURACY}",
        short_mantissa,
    ),
    Rule(
        "chaotic",
        "The difference grows with the steps: no element-wise tolerance of the last "
        "steps says anything; compare the first rows, and the end by a band.",
        "docs/policy.md (rows)",
        grows,
    ),
    Rule(
        "text",
        "Only texts differ: times, paths or addresses are no results.",
        "docs/policy.md (compare)",
        only_text,
    ),
    Rule(
        "not-repeatable",
        "Nothing that is known to change numbers was changed: the run may not repeat.",
        _REPRODUCIBILITY,
        unexplained,
    ),
)

RULES: tuple[Rule, ...] = (*_STOPPED, *_CHANGED, *_MACHINE, *_NUMBERS)
