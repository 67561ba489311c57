"""Which findings are reached only behind a guard that stands in another file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

import msgspec

from reprobundle.format.scan_report import ScanFinding
from reprobundle.port.scan.python_findings import Import

_KERNEL_FILES = (".cu", ".cuh", ".ptx")


def only_where_reached(
    findings: Sequence[ScanFinding], imports: Iterable[Import]
) -> Iterator[ScanFinding]:
    """Yield the findings; blockers that another file's guard keeps away are guarded.

    A module is kept away when the project imports it, and only behind guards or inside
    functions. CUDA files are kept away when the build names them behind a guard only.
    """
    importers = _importers(imports)
    builds = [f for f in findings if f.term.endswith("cpp_extension.CUDAExtension")]
    guarded_build = next((f for f in builds if f.standing == "guarded"), None)
    if any(one.standing == "blocker" for one in builds):
        guarded_build = None
    for one in findings:
        place = _keeper(one, importers)
        if one.term in _KERNEL_FILES and guarded_build is not None:
            place = guarded_build.place
        if one.standing == "blocker" and place:
            because = f"reached only behind the guard at {place}"
            yield msgspec.structs.replace(one, standing="guarded", because=because)
        else:
            yield one


def _importers(imports: Iterable[Import]) -> dict[str, list[Import]]:
    """Return who imports each file, by its path without suffix."""
    found: dict[str, list[Import]] = {}
    for one in imports:
        stem = one.module.lstrip(".")
        up = len(one.module) - len(stem)
        path = stem.replace(".", "/")
        if up:
            folder = PurePosixPath(one.place.rpartition(":")[0]).parent
            for _ in range(up - 1):
                folder = folder.parent
            path = (folder / path).as_posix()
        found.setdefault(path, []).append(one)
    return found


def _keeper(found: ScanFinding, importers: dict[str, list[Import]]) -> str:
    """Return the place that guards the finding's module; empty if none does."""
    if not found.path.endswith(".py"):
        return ""
    parts = found.path.removesuffix(".py").removesuffix("/__init__").split("/")
    # The top of the import path is not known: src/pkg/a.py may be imported as pkg.a.
    names = ["/".join(parts[start:]) for start in range(len(parts))]
    mine = [
        one
        for name in names
        for one in importers.get(name, ())
        if one.place.rpartition(":")[0] != found.path
    ]
    if not mine or any(one.always for one in mine):
        return ""
    return mine[0].place
