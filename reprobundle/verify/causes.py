"""Why a replay probably differs, and the one change to try next.

A small base of rules. Each looks for one thing in the two records, states what it saw
as evidence, and cites where it is known that this changes results. A rule explains, it
never judges: causes are no findings and change no verdict. The order of the table is
the order in which they are worth trying: what was changed on purpose comes before what
the machine brings along, and what is always there comes last.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from reprobundle.format.findings import (
    EnvironmentDifference,
    Finding,
    OutputComparison,
)
from reprobundle.format.judged import Cause
from reprobundle.format.record import Record
from reprobundle.verify.devices import device_of
from reprobundle.verify.drift import growth

MOST_CAUSES = 4
_GROWS = 10.0
# Half a unit in the last place of bfloat16 and of TF32, doubled for sums of products.
_SHORT_MANTISSA = (2.0**-13, 2.0**-6)

_REPRODUCIBILITY = "pytorch.org/docs/stable/notes/randomness.html"
_CUDA_NOTES = "pytorch.org/docs/stable/notes/cuda.html"
_ACCURACY = "pytorch.org/docs/stable/notes/numerical_accuracy.html"
_MPS_VARIABLES = "pytorch.org/docs/stable/mps_environment_variables.html"


class Case(NamedTuple):
    """Everything a rule may look at.

    Attributes:
        bundle: Name of the bundle file, for the commands.
        reference, replay: Both records.
        comparisons: Their outputs.
        differences: Their environments.
        findings: All findings about the replay.
    """

    bundle: str
    reference: Record
    replay: Record
    comparisons: Sequence[OutputComparison]
    differences: Sequence[EnvironmentDifference]
    findings: Sequence[Finding]

    def found(self, *names: str) -> Finding | None:
        """Return the first finding of one of these kinds that speaks against it."""
        bad = (one for one in self.findings if one.outcome in ("warn", "fail"))
        return next((one for one in bad if one.id in names), None)

    def differs(self, *names: str) -> EnvironmentDifference | None:
        """Return the first environment fact that differs and matches a pattern."""
        found = (
            one
            for pattern in names
            for one in self.differences
            if one.grade == "numeric"
            and fnmatchcase(one.name.removeprefix("end."), pattern)
        )
        return next(found, None)


Seen = tuple[str, str] | None
"""What a rule saw: evidence and command, or nothing."""


class Rule(NamedTuple):
    """One rule: its name, what it says, where that is known from, and its test."""

    id: str
    text: str
    source: str
    test: Callable[[Case], Seen]


def likely_causes(case: Case) -> tuple[Cause, ...]:
    """Return the likely causes of what differs, the one to try first in front.

    Nothing differs if every output is bit for bit equal and no check failed.
    """
    if not _something_differs(case):
        return ()
    seen = ((rule, rule.test(case)) for rule in RULES)
    causes = [
        Cause(
            id=rule.id,
            text=rule.text,
            evidence=result[0],
            source=rule.source,
            command=result[1],
        )
        for rule, result in seen
        if result is not None
    ]
    return tuple(causes[:MOST_CAUSES])


def _something_differs(case: Case) -> bool:
    if any(one.outcome == "fail" for one in case.findings):
        return True
    return any(
        not item.excluded and item.result != "bit-identical"
        for item in case.comparisons
    )


# --- what somebody changed


def _finding(*names: str, command: str = "") -> Callable[[Case], Seen]:
    """Return a test for a finding; ``{bundle}`` in the command is the file's name."""

    def test(case: Case) -> Seen:
        one = case.found(*names)
        if one is None:
            return None
        sides = f": {one.got}, expected {one.expected}" if one.expected else ""
        place = f" ({one.where})" if one.where else ""
        return f"{one.reason}{place}{sides}", command.format(bundle=case.bundle)

    return test


def _pipeline(case: Case) -> Seen:
    one = case.found("masked-failure")
    if one is None:
        return None
    argv = case.reference.command.argv
    # A script that a shell was given is run by one that notices the failure.
    script = argv[2] if argv[1:2] == ("-c",) and len(argv) > 2 else shlex.join(argv)
    command = f"bash -o pipefail -c {shlex.quote(script)}"
    return f"{one.reason} ({one.where})", command


# --- what the environment brings along


def _fact(
    *names: str, command: str = "", same_devices: bool = False
) -> Callable[[Case], Seen]:
    """Return a test for a fact that differs; ``{reference}`` is its value there."""

    def test(case: Case) -> Seen:
        one = case.differs(*names)
        if one is None or (same_devices and not _same_device(case)):
            return None
        evidence = f"{one.name} is {one.replay}, reference {one.reference}"
        values = {"bundle": case.bundle, "reference": one.reference}
        return evidence, command.format(**values)

    return test


def _same_device(case: Case) -> bool:
    return device_of(case.reference) == device_of(case.replay)


def _capability(case: Case) -> Seen:
    one = case.differs("torch.cpu_capability", "env.ATEN_CPU_CAPABILITY")
    if one is None:
        return None
    evidence = f"{one.name} is {one.replay}, reference {one.reference}"
    wanted = one.reference.lower().replace("(unset)", "")
    if wanted not in ("default", "avx2", "avx512"):
        return evidence, ""
    return evidence, _with_setting(case, "ATEN_CPU_CAPABILITY", wanted)


def _threads(case: Case) -> Seen:
    one = case.differs("torch.num_threads", "env.OMP_NUM_THREADS")
    if one is None:
        return None
    evidence = f"{one.name} is {one.replay}, reference {one.reference}"
    if not one.reference.isdigit():
        return evidence, ""
    return evidence, _with_setting(case, "OMP_NUM_THREADS", one.reference)


def _with_setting(case: Case, name: str, value: str) -> str:
    return f"reprobundle replay {case.bundle} --set {name}={value}"


def _both_known(difference: EnvironmentDifference) -> bool:
    sides = (difference.reference, difference.replay)
    return not any(side.startswith(("not recorded", "unknown")) for side in sides)


def _draws(case: Case) -> Seen:
    one = next(
        (
            d
            for d in case.differences
            if d.name.startswith("randomness.draws.") and _both_known(d)
        ),
        None,
    )
    if one is None:
        return None
    generator = one.name.removeprefix("randomness.draws.")
    evidence = f"{generator} draws other numbers from one seed"
    command = " ".join(case.reference.command.argv)
    return evidence, f"reprobundle pack --rng portable -- {command}"


def _other_device(case: Case) -> Seen:
    if _same_device(case):
        return None
    sides = f"ran on {device_of(case.replay)}, reference on {device_of(case.reference)}"
    device = device_of(case.reference)
    if device not in ("cpu", "cuda", "mps"):
        return sides, ""
    return sides, f"reprobundle replay {case.bundle} --device {device}"


# --- what the numbers themselves show


def _short_mantissa(case: Case) -> Seen:
    lowest, highest = _SHORT_MANTISSA
    for item in case.comparisons:
        for part in item.parts:
            error = part.relative_l2
            if part.dtype != "float32" or error is None:
                continue
            if lowest <= float(error) <= highest and not part.nan:
                name = f"{item.name} [{part.name}]" if part.name else item.name
                evidence = f"relative L2 error of {name} is {float(error):.2g}"
                command = _with_setting(case, "NVIDIA_TF32_OVERRIDE", "0")
                on_cuda = "cuda" in (device_of(case.replay), device_of(case.reference))
                return evidence, command if on_cuda else ""
    return None


def _grows(case: Case) -> Seen:
    for item in case.comparisons:
        for part in item.parts:
            factor = growth(part.drift)
            if factor >= _GROWS:
                name = f"{item.name} [{part.name}]" if part.name else item.name
                evidence = f"the error of {name} grows {factor:.3g}-fold along its rows"
                return evidence, ""
    return None


def _only_text(case: Case) -> Seen:
    judged = [item for item in case.comparisons if not item.excluded]
    bad = [item for item in judged if item.result == "outside-tolerance"]
    if not bad or any(item.kind not in ("text", "log") for item in bad):
        return None
    return f"only {', '.join(item.name for item in bad[:3])} differ", ""


_AGAIN = "reprobundle replay {bundle}"
_FRESH = "reprobundle replay {bundle} --env fresh"

RULES: tuple[Rule, ...] = (
    Rule(
        "changed-files",
        "The script or its data was changed.",
        "spec.md, check V12",
        _finding("same-files", command=_AGAIN),
    ),
    Rule(
        "changed-input",
        "An input has other content than the reference read.",
        "spec.md, check V12",
        _finding("same-inputs", command=_AGAIN),
    ),
    Rule(
        "changed-command",
        "The command, its variables or its seed were changed.",
        "spec.md, check V12",
        _finding("same-command", "same-seed", command=_AGAIN),
    ),
    Rule(
        "reduced-input",
        "The replay saw only a part of the data.",
        "spec.md, check V12",
        _finding("reduced-input", command=_AGAIN),
    ),
    Rule(
        "masked-failure",
        "A part of the command failed, and the shell reported the success of another.",
        "POSIX: a pipeline has the exit status of its last command",
        _pipeline,
    ),
    Rule(
        "cpu-fallback",
        "Operators ran on the CPU in the accelerator's place.",
        _MPS_VARIABLES,
        _finding(
            "cpu-fallback",
            command="reprobundle replay {bundle} --device mps "
            "--set PYTORCH_ENABLE_MPS_FALLBACK=0",
        ),
    ),
    Rule(
        "no-seed",
        "The scripts set other seeds, or none.",
        _REPRODUCIBILITY,
        _finding("seed-calls", command="reprobundle pack --seed 0 -- COMMAND"),
    ),
    Rule(
        "tf32",
        "One side multiplied float32 matrices with TF32 or shorter mantissas.",
        f"{_CUDA_NOTES}#tf32-on-ampere; pytorch/pytorch#58434",
        _fact(
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
        _fact("torch.version", "torch.git_version", command=_FRESH, same_devices=True),
    ),
    Rule(
        "numpy-version",
        "Another release of numpy has other kernels and generators.",
        "numpy.org/doc/stable/reference/random/compatibility.html",
        _fact("numpy.version", command=_FRESH),
    ),
    Rule(
        "mps-fast-math",
        "Metal shaders were compiled with other math options.",
        _MPS_VARIABLES,
        _fact("env.PYTORCH_MPS_FAST_MATH", "env.PYTORCH_MPS_PREFER_METAL"),
    ),
    Rule(
        "mps-graph",
        "MPSGraph is a part of macOS: another build of it computes other numbers.",
        "pytorch/pytorch#122016; actions/runner-images#14380",
        _fact(
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
        _capability,
    ),
    Rule(
        "threads",
        "Another number of threads sums in another order.",
        f"{_ACCURACY}; pytorch/pytorch#88718",
        _threads,
    ),
    Rule(
        "generators",
        "Random generators draw other numbers on this machine.",
        f"{_REPRODUCIBILITY}; pytorch/pytorch#84288",
        _draws,
    ),
    Rule(
        "other-device",
        "Another kind of device has other kernels and another generator.",
        _REPRODUCIBILITY,
        _other_device,
    ),
    Rule(
        "short-mantissa",
        "The error has the size of bfloat16 or TF32 products, not of float32.",
        f"{_CUDA_NOTES}#tf32-on-ampere; {_ACCURACY}",
        _short_mantissa,
    ),
    Rule(
        "chaotic",
        "The difference grows with the steps: no element-wise tolerance of the last "
        "steps says anything; compare the first rows, and the end by a band.",
        "docs/policy.md (rows)",
        _grows,
    ),
    Rule(
        "text",
        "Only texts differ: times, paths or addresses are no results.",
        "docs/policy.md (compare)",
        _only_text,
    ),
)


def next_change(causes: Iterable[Cause]) -> str:
    """Return the command of the first cause that has one, or an empty string."""
    return next((cause.command for cause in causes if cause.command), "")
