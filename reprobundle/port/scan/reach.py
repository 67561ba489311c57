"""Which findings another file reaches: only behind its guard, or in any case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

import msgspec

from reprobundle.format.scan_report import ScanFinding
from reprobundle.port.scan.callers import bare
from reprobundle.port.scan.calls import Call
from reprobundle.port.scan.python_findings import Import, Waiting

_BUILDS = tuple(
    f"cpp_extension.{name}" for name in ("CUDAExtension", "load", "load_inline")
)
_KERNEL_FILES = (".cu", ".cuh", ".ptx")


def only_where_reached(
    findings: Sequence[ScanFinding], imports: Iterable[Import]
) -> Iterator[ScanFinding]:
    """Yield the findings; blockers that another file's guard keeps away are guarded.

    A module is kept away when the project imports it, and only behind guards or inside
    functions. CUDA files are kept away when the build names them behind a guard only.
    """
    importers = _importers(imports)
    builds = [one for one in findings if one.term.endswith(_BUILDS)]
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


def settled(waiting: Iterable[Waiting], calls: Iterable[Call]) -> Iterator[ScanFinding]:
    """Yield what waits for a call of its function: it blocks if a file calls that.

    Args:
        waiting: Blockers inside functions that their own file never calls in any case.
        calls: Calls of imported functions that are made in any case.
    """
    by_function: dict[tuple[str, str], Call] = {}
    for one in calls:
        by_function.setdefault((_path_of(one.module, one.place), one.function), one)
    for blocker in waiting:
        found, function = blocker.found, bare(blocker.function)
        names = _module_paths(found)
        callers = [
            by_function.get((name, leading))
            for name in names
            for leading in (function, *sorted(blocker.reaching))
        ]
        caller = next((call for call in callers if call is not None), None)
        if caller is not None:
            because = f"{found.because}; {caller.function} is called at {caller.place}"
            yield msgspec.structs.replace(found, because=because)
        else:
            because = f"runs when {function} is called, in no place seen here"
            yield msgspec.structs.replace(found, standing="late", because=because)


def _path_of(module: str, place: str) -> str:
    """Return the path, without suffix, of a module named in a file."""
    stem = module.lstrip(".")
    up = len(module) - len(stem)
    path = stem.replace(".", "/")
    if not up:
        return path
    folder = PurePosixPath(place.rpartition(":")[0]).parent
    for _ in range(up - 1):
        folder = folder.parent
    return (folder / path).as_posix()


def _module_paths(found: ScanFinding) -> list[str]:
    """Return the paths that a finding's module may be imported by.

    The top of the import path is not known: src/pkg/a.py may be imported as pkg.a.
    """
    parts = found.path.removesuffix(".py").removesuffix("/__init__").split("/")
    return ["/".join(parts[start:]) for start in range(len(parts))]


def _importers(imports: Iterable[Import]) -> dict[str, list[Import]]:
    """Return who imports each file, by its path without suffix."""
    found: dict[str, list[Import]] = {}
    for one in imports:
        path = _path_of(one.module, one.place)
        found.setdefault(path, []).append(one)
    return found


def _keeper(found: ScanFinding, importers: dict[str, list[Import]]) -> str:
    """Return the place that guards the finding's module; empty if none does."""
    if not found.path.endswith(".py"):
        return ""
    mine = [
        one
        for name in _module_paths(found)
        for one in importers.get(name, ())
        if one.place.rpartition(":")[0] != found.path
    ]
    if not mine or any(one.always for one in mine):
        return ""
    return mine[0].place
