"""The rule base: what is known to change results, from where, and what to try.

The order of the table is the order in which the rules are worth trying: what was
changed on purpose comes before what the machine brings along, and what is always there
comes last.
"""

from __future__ import annotations

from reprobundle.verify.causes.case import Rule
from reprobundle.verify.causes.changes import pipeline, saw
from reprobundle.verify.causes.machine import (
    capability,
    differs,
    draws,
    other_device,
    threads,
)
from reprobundle.verify.causes.numbers import grows, only_text, short_mantissa

_REPRODUCIBILITY = "pytorch.org/docs/stable/notes/randomness.html"
_CUDA_NOTES = "pytorch.org/docs/stable/notes/cuda.html"
_ACCURACY = "pytorch.org/docs/stable/notes/numerical_accuracy.html"
_MPS_VARIABLES = "pytorch.org/docs/stable/mps_environment_variables.html"

_AGAIN = "reprobundle replay {bundle}"
_FRESH = "reprobundle replay {bundle} --env fresh"

RULES: tuple[Rule, ...] = (
    Rule(
        "changed-files",
        "The script or its data was changed.",
        "spec.md, check V12",
        saw("same-files", command=_AGAIN),
    ),
    Rule(
        "changed-input",
        "An input has other content than the reference read.",
        "spec.md, check V12",
        saw("same-inputs", command=_AGAIN),
    ),
    Rule(
        "changed-command",
        "The command, its variables or its seed were changed.",
        "spec.md, check V12",
        saw("same-command", "same-seed", command=_AGAIN),
    ),
    Rule(
        "reduced-input",
        "The replay saw only a part of the data.",
        "spec.md, check V12",
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
            command="reprobundle replay {bundle} --device mps "
            "--set PYTORCH_ENABLE_MPS_FALLBACK=0",
        ),
    ),
    Rule(
        "no-seed",
        "The scripts set other seeds, or none.",
        _REPRODUCIBILITY,
        saw("seed-calls", command="reprobundle pack --seed 0 -- COMMAND"),
    ),
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
            command="reprobundle replay {bundle} --set NVIDIA_TF32_OVERRIDE=0",
        ),
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
        "mps-fast-math",
        "Metal shaders were compiled with other math options.",
        _MPS_VARIABLES,
        differs("env.PYTORCH_MPS_FAST_MATH", "env.PYTORCH_MPS_PREFER_METAL"),
    ),
    Rule(
        "mps-graph",
        "MPSGraph is a part of macOS: another build of it computes other numbers.",
        "pytorch/pytorch#122016; actions/runner-images#14380",
        differs(
            "mps.graph_version",
            "os.build",
            same_devices=True,
            command="reprobundle replay {bundle} --device cpu",
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
)
