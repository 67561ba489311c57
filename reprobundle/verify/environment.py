"""Which environment facts differ, and which of them are known to change numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from reprobundle.format.findings import EnvironmentDifference, Finding
from reprobundle.format.record import Fact, Record
from reprobundle.verify.checks import finding
from reprobundle.verify.rules import DevicePair

MOST_NAMED = 4


class Numeric(NamedTuple):
    """A kind of fact that is known to change numbers.

    Attributes:
        pattern: Shell pattern over dotted fact names.
        inherent: Whether it must differ between two kinds of device anyway; the
            tolerances for different devices then have room for it already.
        why: What it changes.
    """

    pattern: str
    inherent: bool
    why: str


NUMERIC_FACTS: tuple[Numeric, ...] = (
    # --- the same on every machine unless somebody changed it
    Numeric("torch.version", False, "kernels change between releases"),
    Numeric("torch.git_version", False, "kernels change between commits"),
    Numeric("numpy.version", False, "kernels and generators change between releases"),
    Numeric("torch.*fp32_precision", False, "TF32 keeps 10 mantissa bits of a product"),
    Numeric("torch.*allow_tf32", False, "TF32 keeps 10 mantissa bits of a product"),
    Numeric("torch.matmul_precision", False, "it allows shorter mantissas in products"),
    Numeric("torch.*reduced_precision*", False, "it allows half precision sums"),
    Numeric("torch.deterministic*", False, "other kernels are chosen"),
    Numeric("torch.cudnn.deterministic", False, "other kernels are chosen"),
    Numeric("torch.cudnn.enabled", False, "other kernels are chosen"),
    Numeric("torch.cudnn.benchmark", False, "the fastest kernel is chosen as it runs"),
    Numeric("torch.default_dtype", False, "the dtype of new tensors changes"),
    Numeric("torch.sdp.*", False, "another attention algorithm is used"),
    Numeric("torch.autocast.*", False, "operators run in another dtype"),
    Numeric("torch.mha_fastpath", False, "another attention algorithm is used"),
    Numeric("torch.mkldnn.deterministic", False, "other kernels are chosen"),
    Numeric("torch.flush_denormal", False, "the smallest numbers become zero"),
    Numeric("python.flush_denormal", False, "the smallest numbers become zero"),
    Numeric("torch.*fp16_accumulation", False, "it allows half precision sums"),
    Numeric("observed.models", False, "another model has other weights"),
    Numeric("observed.datasets", False, "another revision holds other data"),
    Numeric("observed.batch_size", False, "sums run over other samples"),
    Numeric("observed.input_shapes", False, "sums run over other elements"),
    Numeric("env.PYTHONHASHSEED", False, "the order of sets changes"),
    Numeric("env.*TF32*", False, "TF32 keeps 10 mantissa bits of a product"),
    Numeric("env.CUBLAS_WORKSPACE_CONFIG", False, "other kernels are chosen"),
    Numeric("env.PYTORCH_MPS_FAST_MATH", False, "transcendental functions lose bits"),
    Numeric("env.PYTORCH_MPS_PREFER_METAL", False, "other kernels are chosen"),
    Numeric("env.PYTORCH_MPS_METAL_VERSION", False, "other kernels are compiled"),
    Numeric("env.PYTORCH_MPS_DISABLE_*", False, "another attention algorithm is used"),
    Numeric("env.PYTORCH_ENABLE_MPS_FALLBACK", False, "operators may use the CPU"),
    Numeric("env.ATEN_CPU_CAPABILITY", False, "other CPU kernels are chosen"),
    Numeric("env.ONEDNN_DEFAULT_*", False, "products may use shorter mantissas"),
    Numeric("env.*MAX_CPU_ISA", False, "other CPU kernels are chosen"),
    Numeric("env.OPENBLAS_CORETYPE", False, "other kernels multiply matrices"),
    Numeric("env.MKL_CBWR", False, "other kernels multiply matrices"),
    Numeric("env.MKL_ENABLE_INSTRUCTIONS", False, "other kernels multiply matrices"),
    Numeric("env.NPY_DISABLE_CPU_FEATURES", False, "numpy chooses other kernels"),
    Numeric("env.TORCH_BLAS_PREFER_CUBLASLT", False, "another library multiplies"),
    Numeric("env.TORCH_LINALG_PREFER_CUSOLVER", False, "another library factorises"),
    Numeric("env.TORCH_CUDNN_V8_API_DISABLED", False, "other kernels are chosen"),
    Numeric("env.PYTORCH_TUNABLEOP_ENABLED", False, "the fastest kernel is chosen"),
    Numeric("env.PYTORCH_JIT", False, "fused operators round otherwise"),
    Numeric("env.TORCH_COMPILE_DISABLE", False, "fused operators round otherwise"),
    Numeric("env.TORCHDYNAMO_DISABLE", False, "fused operators round otherwise"),
    Numeric("env.NCCL_*", False, "sums over ranks run in another order"),
    Numeric("python.version", False, "sum() of floats changed with Python 3.12"),
    Numeric("package.*", False, "another release of it has other kernels"),
    # --- bound to the machine
    Numeric("env.*_THREADS", True, "the number of threads orders sums"),
    Numeric("env.*_DYNAMIC", True, "the number of threads may vary"),
    Numeric("env.OMP_SCHEDULE", True, "work is split in another way"),
    Numeric("env.KMP_DETERMINISTIC_REDUCTION", True, "threads sum in another order"),
    Numeric("torch.num_threads", True, "the number of threads orders sums"),
    Numeric("torch.cpu_capability", True, "the width of vectors orders sums"),
    Numeric("numpy.cpu_features", True, "other kernels are chosen"),
    Numeric("numpy.blas", True, "another library multiplies matrices"),
    Numeric("torch.blas", True, "another library multiplies matrices"),
    Numeric("torch.blas_threads", True, "the number of threads orders sums"),
    Numeric("torch.mkl", True, "another library multiplies matrices"),
    Numeric("torch.mkldnn.enabled", True, "another library convolves"),
    Numeric("torch.openmp", True, "work is split in another way"),
    Numeric("torch.cuda.built", True, "kernels change between releases"),
    Numeric("torch.hip.built", True, "kernels change between releases"),
    Numeric("torch.cudnn.version", True, "kernels change between releases"),
    Numeric("torch.cuda.devices", True, "kernels depend on the GPU family"),
    Numeric("torch.cuda.capabilities", True, "kernels depend on the GPU family"),
    Numeric("gpu.driver", True, "the driver compiles kernels"),
    Numeric("torch.mps.name", True, "kernels depend on the GPU family"),
    Numeric("torch.mps.core_count", True, "kernels depend on the GPU family"),
    Numeric("mps.graph_version", True, "MPSGraph's kernels change with macOS"),
    Numeric("os.build", True, "MPSGraph's kernels change with macOS"),
    Numeric("machine.architecture", True, "the width of vectors orders sums"),
    Numeric("os.libc", True, "the C library computes exp, sin and pow of scalars"),
    Numeric("machine.rosetta", True, "translated code has other vector units"),
    Numeric("randomness.draws.*", True, "the same seed draws other numbers"),
)

# What describes the moment and not the machine, and what only one kind of run knows.
MOMENTARY: tuple[str, ...] = (
    "state.*",
    "git.*",
    "replay.*",
    "stated.*",
    "torch.initial_seed",
    "end.unchanged",
    "at_torch.env.changed",
)

# A switch that the script changed is sent again, under its name with this before it;
# so is a variable that it changed before it imported torch.
_END = "end."
_AT_TORCH = "at_torch."
_AGAIN = (_END, _AT_TORCH)
_CHANGED_AT_TORCH = "at_torch.env.changed"
NOT_RECORDED = "not recorded"
_STILL = "end.unchanged"
_UNSET = "env.unset"
_UNSET_VALUE = "(unset)"
# Values that mean what an unset variable means. A replay on MPS sets the fallback
# variable to 0 itself; torch reads no variable and 0 alike (MPSFallback.mm).
_SAME_AS_UNSET = {"env.PYTORCH_ENABLE_MPS_FALLBACK": {_UNSET_VALUE, "0"}}
TRACKED = "replay.environment.differences"
PACKAGES = "replay.environment.numeric"


def numeric_kind(name: str) -> Numeric | None:
    """Return why a difference in this fact may change numbers, or None."""
    plain = _plain(name)
    return next(
        (kind for kind in NUMERIC_FACTS if fnmatchcase(plain, kind.pattern)), None
    )


def _plain(name: str) -> str:
    """Return the name that a fact which is sent again had at first."""
    for prefix in _AGAIN:
        name = name.removeprefix(prefix)
    return name


def compare_environments(
    reference: Record, replay: Record
) -> tuple[EnvironmentDifference, ...]:
    """Return every fact in which two runs differ, numeric ones first, then by name.

    A fact that only one side knows is listed as ``other``: it may or may not differ.
    """
    left, right = _facts(reference), _facts(replay)
    left, right = (
        {**_unchanged(reference, left, right), **left},
        {**_unchanged(replay, right, left), **right},
    )
    found = [*_differences(left, right), *_packages(replay)]
    return tuple(sorted(found, key=lambda d: (d.grade != "numeric", d.name)))


def _facts(record: Record) -> dict[str, Fact]:
    draws = {
        f"randomness.draws.{generator}": Fact(value=fingerprint, source="short draws")
        for generator, fingerprint in record.randomness.draws.items()
    }
    lasting = {
        name: fact
        for name, fact in record.environment.items()
        if not any(fnmatchcase(name, pattern) for pattern in MOMENTARY)
    }
    return {**lasting, **_unset(record), **draws}


def _packages(replay: Record) -> Iterator[EnvironmentDifference]:
    """Yield the packages known to change numbers in which a replay left the lock."""
    fact = replay.environment.get(PACKAGES)
    if fact is None or not isinstance(fact.value, tuple):
        return
    for text in fact.value:
        name, _, versions = text.partition(": ")
        before, _, here = versions.partition(" -> ")
        name = f"package.{name}"
        sides = (Fact(value=before, source="lock"), Fact(value=here, source="lock"))
        yield _difference(name, *sides, numeric_kind(name))


def _unchanged(
    record: Record, own: dict[str, Fact], other: dict[str, Fact]
) -> dict[str, Fact]:
    """Return the facts that were sent again by the other side only.

    Only what changed is sent again, and the names of what was read again and had not
    changed are in one fact: what stood at the start stood at the end.
    """
    fact = record.environment.get(_STILL)
    still = fact.value if fact is not None and isinstance(fact.value, tuple) else ()
    missing = [name for name in other if name not in own]
    first = {name: name.removeprefix(_END) for name in missing if name.startswith(_END)}
    known = {
        name: own[one] for name, one in first.items() if one in still and one in own
    }
    return {**known, **_unchanged_at_torch(record, own, missing)}


def _unchanged_at_torch(
    record: Record, own: dict[str, Fact], missing: Sequence[str]
) -> dict[str, Fact]:
    """Return the variables that nobody changed before torch was imported.

    The record names those that were changed; all others were what they were at the
    start. Where torch was not imported there is no such list, and nothing is known.
    """
    fact = record.environment.get(_CHANGED_AT_TORCH)
    if fact is None or not isinstance(fact.value, tuple):
        return {}
    first = {
        name: name.removeprefix(_AT_TORCH)
        for name in missing
        if name.startswith(f"{_AT_TORCH}env.")
    }
    return {
        name: own[one]
        for name, one in first.items()
        if one in own and one.removeprefix("env.") not in fact.value
    }


def _unset(record: Record) -> dict[str, Fact]:
    """Return the variables that are known not to have been set."""
    fact = record.environment.get(_UNSET)
    names = fact.value if fact is not None and isinstance(fact.value, tuple) else ()
    return {f"env.{name}": Fact(value=_UNSET_VALUE, source=_UNSET) for name in names}


def _differences(
    left: dict[str, Fact], right: dict[str, Fact]
) -> Iterator[EnvironmentDifference]:
    for name in (left.keys() | right.keys()) - {_UNSET}:
        b, a = left.get(name), right.get(name)
        known = b is not None and a is not None and not (b.unknown or a.unknown)
        if not known:
            if _text(b) != _text(a) and (_is_known(b) or _is_known(a)):
                yield _difference(name, b, a, None)
        elif b is not None and a is not None and b.value != a.value:
            if {b.value, a.value} == _SAME_AS_UNSET.get(_plain(name)):
                continue
            patch = name == "python.version" and _minor(b) == _minor(a)
            yield _difference(name, b, a, None if patch else numeric_kind(name))


def _minor(fact: Fact) -> list[str]:
    """Return major and minor number of a Python; a patch release changes no numbers."""
    return str(fact.value).split(".")[:2]


def _is_known(fact: Fact | None) -> bool:
    return fact is not None and not fact.unknown


def _difference(
    name: str, b: Fact | None, a: Fact | None, kind: Numeric | None
) -> EnvironmentDifference:
    left, right = _told(b, a), _told(a, b)
    return EnvironmentDifference(
        name=name,
        reference=left,
        replay=right,
        grade="numeric" if kind is not None else "other",
        why=kind.why if kind is not None else "",
    )


def _told(fact: Fact | None, other: Fact | None) -> str:
    """Return a side as text; of two lists only what the other does not hold."""
    sides = [one.value if one is not None else None for one in (fact, other)]
    if isinstance(sides[0], tuple) and isinstance(sides[1], tuple):
        own = [item for item in sides[0] if item not in sides[1]]
        return ", ".join(own) or "nothing more"
    return _text(fact)


def _text(fact: Fact | None) -> str:
    if fact is None:
        return NOT_RECORDED
    if fact.unknown:
        return f"unknown: {fact.unknown}"
    if isinstance(fact.value, tuple):
        return ", ".join(fact.value)
    return str(fact.value)


def check_environment(
    reference: Record,
    replay: Record,
    differences: tuple[EnvironmentDifference, ...],
    *,
    devices: DevicePair,
    identical: bool,
) -> Iterator[Finding]:
    """Yield the finding of V18 about drift.

    Drift is a warning only where it can have changed something: not when every
    output is bit for bit equal, and between two kinds of device only for facts that
    could have been the same.

    Args:
        reference: The sealed run.
        replay: The run that is judged.
        differences: From `compare_environments`.
        devices: Whether both ran on the same kind of device.
        identical: Whether all outputs are bit-identical.
    """
    sides = (("reference", reference), ("replay", replay))
    unknown = [name for name, record in sides if not _numeric_facts(record)]
    if not unknown and reference.loaded_torch and not replay.loaded_torch:
        unknown = ["torch of the replay"]
    if unknown and not identical:
        yield finding(
            "environment-drift",
            "not-checked",
            f"nothing that is known to change numbers was recorded of the {unknown[0]}",
        )
        return
    if not identical:
        yield from _one_sided(differences, devices)
    drift = [difference for difference in differences if _counts(difference, devices)]
    if not drift:
        others = len(differences)
        note = f"{others} facts differ, none that counts" if others else ""
        yield finding("environment-drift", "pass", note)
        return
    named = "; ".join(_words(difference) for difference in drift[:MOST_NAMED])
    if len(drift) > MOST_NAMED:
        named += f"; and {len(drift) - MOST_NAMED} more"
    if identical:
        note = f"{named}; every output is bit for bit equal all the same"
        yield finding("environment-drift", "pass", note)
        return
    yield finding(
        "environment-drift",
        "warn",
        named,
        where=drift[0].name,
        expected=drift[0].reference,
        got=drift[0].replay,
        advice="replay in the locked environment with --env fresh",
    )


def _numeric_facts(record: Record) -> list[str]:
    return [
        name
        for name, fact in record.environment.items()
        if not fact.unknown and numeric_kind(name) is not None
    ]


def _one_sided(
    differences: tuple[EnvironmentDifference, ...], devices: DevicePair
) -> Iterator[Finding]:
    """Yield which facts that change numbers one side left unrecorded."""
    names = [
        one.name
        for one in differences
        if NOT_RECORDED in (one.reference, one.replay) and _may_count(one.name, devices)
    ]
    if not names:
        return
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    yield finding(
        "environment-gap",
        "not-checked",
        f"known on one side only: {', '.join(names[:MOST_NAMED])}{more}",
        where=names[0],
    )


def _may_count(name: str, devices: DevicePair) -> bool:
    kind = numeric_kind(name)
    # A generator that only one side loaded has drawn nothing on the other.
    if kind is None or name.startswith("randomness."):
        return False
    return devices == "same" or not kind.inherent


def check_tracked(replay: Record) -> Finding:
    """Return whether the packages of the replay were compared with the lock."""
    fact = replay.environment.get(TRACKED)
    if fact is None or fact.unknown:
        return finding(
            "environment-tracked",
            "not-checked",
            "its packages were not compared with the lock of the reference",
            advice="replay with reprobundle, which compares them",
        )
    count = fact.value
    note = f"{count} differences to the lock" if count else "equal to the lock"
    return finding("environment-tracked", "pass", note, where="lock/environment.json")


def _counts(difference: EnvironmentDifference, devices: DevicePair) -> bool:
    if difference.grade != "numeric":
        return False
    if devices == "same":
        return True
    if difference.name == "torch.version":
        # Builds for another device carry another local label, such as +cpu.
        sides = (difference.reference, difference.replay)
        return len({side.partition("+")[0] for side in sides}) > 1
    kind = numeric_kind(difference.name)
    return kind is not None and not kind.inherent


def _words(difference: EnvironmentDifference) -> str:
    why = f" ({difference.why})" if difference.why else ""
    sides = f"{difference.replay}, reference {difference.reference}"
    return f"{difference.name} is {sides}{why}"
