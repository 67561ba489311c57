"""The versions that a maintainer asks for, from the facts of a record."""

from __future__ import annotations

from collections.abc import Iterable

from reprobundle.format.record import Record
from reprobundle.verify.devices import platform_label

_FACTS = (
    ("PyTorch", ("torch.version", "torch.git_version")),
    ("CUDA", ("torch.cuda.built", "torch.cudnn.version", "gpu.driver")),
    ("GPU", ("torch.cuda.devices", "gpu.models", "torch.mps.name")),
    ("ROCm", ("torch.hip.built",)),
    ("MPS", ("torch.mps.built", "torch.mps.available")),
    ("Python", ("python.build",)),
    ("OS", ("os.name", "os.version", "os.build", "os.kernel", "machine.architecture")),
    ("libc", ("os.libc",)),
    ("CPU", ("cpu.model", "cpu.usable", "torch.cpu_capability")),
    ("threads", ("torch.num_threads", "torch.num_interop_threads")),
    ("BLAS", ("torch.blas", "numpy.blas")),
    ("numpy", ("numpy.version",)),
    ("deterministic", ("torch.deterministic",)),
    ("matmul precision", ("torch.matmul_precision",)),
    ("container", ("machine.container",)),
)
_MOST = 160


def version_lines(record: Record) -> list[str]:
    """Return one line for each thing that is known, the kind of machine first."""
    lines = [f"ran on: {platform_label(record)}"]
    for label, names in _FACTS:
        known = list(_known(record, names))
        if known:
            lines.append(f"{label}: {', '.join(known)}"[:_MOST])
    return lines


def _known(record: Record, names: Iterable[str]) -> Iterable[str]:
    for name in names:
        fact = record.environment.get(name)
        if fact is None or fact.unknown or fact.value in (None, "", ()):
            continue
        value = fact.value
        shown = (
            ", ".join(map(str, value))
            if isinstance(value, (list, tuple))
            else str(value)
        )
        is_switch = isinstance(value, bool)
        yield f"{name.rpartition('.')[2]}={shown}" if is_switch else shown
