"""Which environment facts differ, and which of them are known to change numbers."""

from __future__ import annotations

from collections.abc import Iterator
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
    Numeric("torch.version", False, "kernels change between releases"),
    Numeric("torch.git*", False, "kernels change between commits"),
    Numeric("numpy.version", False, "kernels and generators change between releases"),
    Numeric("*tf32*", False, "TF32 keeps 10 mantissa bits of a product"),
    Numeric("*matmul_precision*", False, "it allows lower precision in products"),
    Numeric("*reduced_precision*", False, "it allows half precision sums"),
    Numeric("*deterministic*", False, "other kernels are chosen"),
    Numeric("*cudnn*benchmark*", False, "the fastest kernel is chosen at run time"),
    Numeric("*autocast*", False, "the dtype of operators changes"),
    Numeric("*default_dtype*", False, "the dtype of new tensors changes"),
    Numeric("*fast_math*", False, "transcendental functions lose bits"),
    Numeric("*denormal*", False, "the smallest numbers become zero"),
    Numeric("*fastpath*", False, "another attention algorithm is used"),
    Numeric("*sdp*", False, "another attention algorithm is used"),
    Numeric("*mkldnn*", False, "another convolution and matrix library is used"),
    Numeric("env.PYTHONHASHSEED", False, "the order of sets changes"),
    Numeric("env.*TF32*", False, "TF32 keeps 10 mantissa bits of a product"),
    Numeric("env.CUBLAS_WORKSPACE_CONFIG", False, "other kernels are chosen"),
    Numeric("env.PYTORCH_MPS_PREFER_METAL", False, "other kernels are chosen"),
    Numeric("env.PYTORCH_ENABLE_MPS_FALLBACK", False, "operators may use the CPU"),
    Numeric("env.ATEN_CPU_CAPABILITY", True, "other CPU kernels are chosen"),
    Numeric("*cpu_capability*", True, "vector width changes the order of sums"),
    Numeric("*capability*", True, "other kernels are chosen"),
    Numeric("env.*NUM_THREADS", True, "the number of threads changes sums"),
    Numeric("*threads*", True, "the number of threads changes the order of sums"),
    Numeric("*blas*", True, "another library multiplies matrices"),
    Numeric("*mkl*", True, "another library multiplies matrices"),
    Numeric("*cudnn*", True, "convolution kernels change between releases"),
    Numeric("*cuda*version*", True, "kernels change between releases"),
    Numeric("*driver*", True, "kernels are compiled by the driver"),
    Numeric("*mpsgraph*", True, "MPSGraph's kernels change with macOS"),
    Numeric("*metal*", True, "kernels are compiled by the system"),
    Numeric("macos.*", True, "MPSGraph's kernels change with macOS"),
    Numeric("os.build", True, "MPSGraph's kernels change with macOS"),
    Numeric("*gpu*name*", True, "kernels depend on the GPU family"),
    Numeric("*device_name*", True, "kernels depend on the GPU family"),
    Numeric("*gpu*cores*", True, "kernels depend on the GPU family"),
    Numeric("*chip*", True, "kernels depend on the GPU family"),
    Numeric("*machine*", True, "vector units differ"),
    Numeric("*architecture*", True, "vector units differ"),
    Numeric("randomness.draws.*", True, "the same seed draws other numbers"),
)


def numeric_kind(name: str) -> Numeric | None:
    """Return why a difference in this fact may change numbers, or None."""
    return next(
        (kind for kind in NUMERIC_FACTS if fnmatchcase(name, kind.pattern)), None
    )


def compare_environments(
    reference: Record, replay: Record
) -> tuple[EnvironmentDifference, ...]:
    """Return every fact in which two runs differ, numeric ones first, then by name.

    A fact that only one side knows is listed as ``other``: it may or may not differ.
    """
    left, right = _facts(reference), _facts(replay)
    found = list(_differences(left, right))
    return tuple(sorted(found, key=lambda d: (d.grade != "numeric", d.name)))


def _facts(record: Record) -> dict[str, Fact]:
    draws = {
        f"randomness.draws.{generator}": Fact(value=fingerprint, source="short draws")
        for generator, fingerprint in record.randomness.draws.items()
    }
    return {**record.environment, **draws}


def _differences(
    left: dict[str, Fact], right: dict[str, Fact]
) -> Iterator[EnvironmentDifference]:
    for name in left.keys() | right.keys():
        b, a = left.get(name), right.get(name)
        known = b is not None and a is not None and not (b.unknown or a.unknown)
        if not known:
            if _text(b) != _text(a) and (_is_known(b) or _is_known(a)):
                yield _difference(name, b, a, numeric=False)
        elif b is not None and a is not None and b.value != a.value:
            yield _difference(name, b, a, numeric=numeric_kind(name) is not None)


def _is_known(fact: Fact | None) -> bool:
    return fact is not None and not fact.unknown


def _difference(
    name: str, b: Fact | None, a: Fact | None, *, numeric: bool
) -> EnvironmentDifference:
    return EnvironmentDifference(
        name=name,
        reference=_text(b),
        replay=_text(a),
        grade="numeric" if numeric else "other",
    )


def _text(fact: Fact | None) -> str:
    if fact is None:
        return "not recorded"
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
    """Yield the finding of V18 about one replay.

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
    if not reference.environment or not replay.environment:
        side = "reference" if not reference.environment else "replay"
        reason = f"no environment facts of the {side} were recorded"
        yield finding("environment-drift", "not-checked", reason)
        return
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
    kind = numeric_kind(difference.name)
    why = f" ({kind.why})" if kind is not None else ""
    sides = f"{difference.replay}, reference {difference.reference}"
    return f"{difference.name} is {sides}{why}"
