"""Tell two environments apart, and which differences are known to change numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from reprobundle.format.lock import Distribution, Interpreter, Lock
from reprobundle.run.requirements import TOOLS

# Packages whose version or build is known to change computed numbers.
NUMERIC_NAMES = frozenset(
    {
        "blas",
        "bottleneck",
        "flash-attn",
        "intel-openmp",
        "jax",
        "jaxlib",
        "libblas",
        "llvmlite",
        "mkl",
        "ml-dtypes",
        "nomkl",
        "numba",
        "numexpr",
        "numpy",
        "onednn",
        "onnxruntime",
        "openblas",
        "pandas",
        "scikit-learn",
        "scipy",
        "tensorflow",
        "torch",
        "torchaudio",
        "torchvision",
        "transformers",
        "triton",
        "xformers",
    }
)
NUMERIC_PREFIXES = (
    "nvidia-",
    "cuda-",
    "cupy",
    "mkl-",
    "scipy-openblas",
    "pytorch-triton",
)


@dataclass(frozen=True)
class Drift:
    """One difference between two environments.

    Attributes:
        name: ``python``, ``python.architecture``, a distribution, or a distribution
            with `` (files)`` when the version is equal and the files are not.
        reference: What the reference had, ``absent`` for nothing.
        here: The same for this environment.
        grade: ``numeric`` when such a difference is known to change numbers.
    """

    name: str
    reference: str
    here: str
    grade: Literal["numeric", "other"]


def is_numeric(name: str) -> bool:
    """Tell whether another version of `name` is known to change computed numbers."""
    return name in NUMERIC_NAMES or name.startswith(NUMERIC_PREFIXES)


def drift(reference: Lock, here: Lock) -> tuple[Drift, ...]:
    """Return all differences between two environments, numeric ones first."""
    found = [*_interpreter_drift(reference.python, here.python)]
    names = {item.name for item in (*reference.distributions, *here.distributions)}
    same_platform = reference.python.platform == here.python.platform
    for name in sorted(names - TOOLS):
        one = _package_drift(
            reference.find(name), here.find(name), same_platform=same_platform
        )
        if one is not None:
            found.append(one)
    return tuple(sorted(found, key=lambda item: item.grade != "numeric"))


def _interpreter_drift(reference: Interpreter, here: Interpreter) -> Iterator[Drift]:
    if reference.version != here.version:
        grade: Literal["numeric", "other"] = (
            "other" if reference.minor == here.minor else "numeric"
        )
        yield Drift("python", reference.version, here.version, grade)
    for field in ("implementation", "architecture", "system"):
        before, now = getattr(reference, field), getattr(here, field)
        if before != now:
            yield Drift(f"python.{field}", before, now, "numeric")
    if reference.libc != here.libc:
        # The C library computes exp, sin and pow for scalar Python code.
        yield Drift(
            "python.libc", reference.libc or "absent", here.libc or "absent", "numeric"
        )


def _package_drift(
    reference: Distribution | None, here: Distribution | None, *, same_platform: bool
) -> Drift | None:
    known = reference or here
    if known is None:
        return None
    grade: Literal["numeric", "other"] = (
        "numeric" if is_numeric(known.name) else "other"
    )
    before = reference.version if reference else "absent"
    now = here.version if here else "absent"
    if before != now:
        return Drift(known.name, before, now, grade)
    if reference is None or here is None or not same_platform:
        return None
    return _files_drift(reference, here, grade)


def _files_drift(
    reference: Distribution, here: Distribution, grade: Literal["numeric", "other"]
) -> Drift | None:
    """Compare the files of one version; an editable install's RECORD tells nothing."""
    digests = (reference.record_digest, here.record_digest)
    if "editable" in (reference.origin, here.origin) or None in digests:
        return None
    if digests[0] == digests[1]:
        return None
    if reference.origin != "index":
        # Its version names no published release, so other files are other code.
        grade = "numeric"
    short = [f"blake3 {str(digest)[:12]}" for digest in digests]
    return Drift(f"{reference.name} (files)", short[0], short[1], grade)
