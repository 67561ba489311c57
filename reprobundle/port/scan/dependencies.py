"""What requirement files, project files and locks ask for that is CUDA's alone."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement

from reprobundle.format.scan_report import ScanFinding, Standing
from reprobundle.port.scan.lock_graph import LockGraph
from reprobundle.port.scan.packages import GPU_LABEL, Package, distribution
from reprobundle.port.scan.sources import Source
from reprobundle.port.scan.versions import of_poetry

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MAC = {
    "sys_platform": "darwin",
    "platform_system": "Darwin",
    "os_name": "posix",
    "platform_machine": "arm64",
    "extra": "",
}
_INDEX = re.compile(r"(--index-url|-i)[ =]+\S*/whl/(?:nightly/)?(cu\d+|rocm\S*)")
_WHEEL = re.compile(r"\b(\w[\w.]*-[\w.+]+-\w+-\w+-(?:many)?linux[\w.]*\.whl)")
_GPU_BUILD = Package(
    "third-party",
    "blocker",
    "names a build for one kind of GPU, which macOS has no file of",
    "leave the label out for macOS, such as torch==2.8.0",
    replaceable=True,
)
_LINUX_WHEEL = _GPU_BUILD._replace(
    because="names a wheel for Linux", remedy="name the package and its version"
)
_GPU_INDEX = _GPU_BUILD._replace(
    because="takes every package from an index of CUDA builds",
    remedy="use the plain package index on macOS",
)
_NO_WHEEL = _GPU_BUILD._replace(
    because="the lock has files of it for other systems only",
    remedy="lock again with macOS among the targets",
)


def is_requirements(source: Source) -> bool:
    """Whether a text file lists requirements, by its name."""
    named = re.search(r"require|constraint|(^|[-_])deps?([-_.]|$)", source.name)
    return source.suffix in {".txt", ".in"} and bool(
        named or "/requirements/" in f"/{source.path}"
    )


def requirements_file(source: Source) -> Iterator[ScanFinding]:
    """Yield the findings of a pip requirements file."""
    for number, line in enumerate(source.text.splitlines(), 1):
        text = re.sub(r"(^|\s)#.*", "", line).strip().rstrip("\\").strip()
        if match := _INDEX.search(text):
            yield _finding(source, number, match[2], _GPU_INDEX)
        elif text and not text.startswith("-"):
            yield from requirement_findings(source, number, text)


def requirement_findings(
    source: Source, line: int, text: str, *, extra: str = ""
) -> Iterator[ScanFinding]:
    """Yield what one requirement asks for.

    Args:
        source: Where it stands.
        line: Its line.
        text: The requirement, such as ``triton; sys_platform == "linux"``.
        extra: Why it is not wanted by everybody; empty if it is.
    """
    if match := _WHEEL.search(text):
        yield _finding(source, line, match[1], _LINUX_WHEEL)
        return
    text = text.split(" --hash")[0].rstrip("\\ ")
    try:
        wanted = Requirement(text)
    except InvalidRequirement:
        match = re.match(r"(?:\S+::)?([A-Za-z0-9][\w.-]*)", text)
        name, marker, label = (match[1] if match else "", None, text)
        git = re.search(r"/([\w.-]+?)(\.git)?(@|#|$)", text)
        name = git[1] if git and "git+" in text else name
        which = ""
    else:
        name, marker, which = wanted.name, wanted.marker, str(wanted.specifier)
        label = which
    package = distribution(name, which)
    package = package or (_GPU_BUILD if GPU_LABEL.search(label) else None)
    if package is None:
        return
    standing: Standing = package.standing
    because = package.because
    if extra:
        standing, because = "optional", f"is wanted by {extra} only"
    if marker is not None and not _on_mac(marker):
        standing, because = "optional", f"is not wanted on macOS: {marker}"
    yield _finding(source, line, name, package, standing=standing, because=because)


def _on_mac(marker: Marker) -> bool:
    # An extra's marker is about the extra; everything else is about the machine.
    return any(marker.evaluate({**_MAC, "extra": extra}) for extra in ("", "all"))


def project_file(source: Source) -> Iterator[ScanFinding | str]:
    """Yield the findings of a pyproject.toml, or why it cannot be read."""
    try:
        data = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError:
        yield "no TOML"
        return
    project = _table(data, "project")
    for text in _texts(project.get("dependencies")):
        yield from requirement_findings(source, _line(source, text), text)
    for text in _texts(_table(data, "build-system").get("requires")):
        yield from requirement_findings(source, _line(source, text), text)
    optional = (
        ("the extra", _table(project, "optional-dependencies")),
        ("the group", _table(data, "dependency-groups")),
    )
    for kind, groups in optional:
        for name, texts in groups.items():
            for text in _texts(texts):
                line = _line(source, text)
                extra = f"{kind} {name}"
                yield from requirement_findings(source, line, text, extra=extra)
    poetry = _table(_table(data, "tool"), "poetry")
    for name, wanted in _table(poetry, "dependencies").items():
        is_optional = isinstance(wanted, dict) and wanted.get("optional")
        marker = wanted.get("markers", "") if isinstance(wanted, dict) else ""
        version = wanted.get("version", "") if isinstance(wanted, dict) else wanted
        which = of_poetry(version) if isinstance(version, str) else ""
        text = f"{name}{which} ; {marker}" if marker else f"{name}{which}"
        extra = "an extra" if is_optional else ""
        line = _line(source, name)
        yield from requirement_findings(source, line, text, extra=extra)


def conda_file(source: Source) -> Iterator[ScanFinding]:
    """Yield the findings of a conda environment; its lists are read line by line."""
    for number, line in enumerate(source.text.splitlines(), 1):
        match = re.match(r"\s*-\s+[\"']?([^\s#\"']+[^#\"']*)", line)
        # Lists in one line: ``dependencies: [pytorch, {pip: [apex]}]``.
        inline = re.match(r"\s*(?:dependencies|-?\s*pip)\s*:\s*\[(.*)", line)
        if inline:
            words = re.split(r"[\[\]{},]|\bpip\s*:", inline[1].partition(" #")[0])
        elif match and not match[1].rstrip().endswith(":"):
            words = [match[1]]
        else:
            continue
        for word in words:
            text = word.strip(" \"'").rpartition("::")[2]
            plain = re.sub(r"^([\w.-]+)=([\w.*]+)(=\S+)?$", r"\1==\2", text)
            yield from requirement_findings(source, number, plain)


def lock_file(source: Source) -> Iterator[ScanFinding | str]:
    """Yield packages of a TOML lock that macOS has no file of, or why it is unread."""
    try:
        data = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError:
        yield "no TOML"
        return
    packages = [*_tables(data, "package"), *_tables(data, "packages")]
    graph = LockGraph(packages, _marker_on_mac) if source.name == "uv.lock" else None
    for entry in packages:
        name = str(entry.get("name", ""))
        wheels = [*_tables(entry, "wheels"), *_tables(entry, "files")]
        files = [str(one.get("url") or one.get("file") or "") for one in wheels]
        files += [str(one.get("name", "")) for one in wheels]
        if not any(".whl" in one for one in files) or _has_mac_file(entry, files):
            continue
        if graph is not None and graph.has_root:
            standing, because = _by_graph(graph, entry)
        else:
            standing, because = _by_marker(source, entry)
        line = _line(source, f'name = "{name}"')
        which = f"=={entry['version']}" if entry.get("version") else ""
        package = distribution(name, which) or _NO_WHEEL
        yield _finding(source, line, name, package, standing=standing, because=because)


def _by_graph(graph: LockGraph, entry: Mapping[str, Any]) -> tuple[Standing, str]:
    """Return how a package without a file for macOS stands, by who wants it there."""
    wanted = graph.wanted(entry)
    if wanted.how == "always":
        return "blocker", f"{_NO_WHEEL.because}; {wanted.why}"
    return "optional", wanted.why


def _by_marker(source: Source, entry: Mapping[str, Any]) -> tuple[Standing, str]:
    """Return the same where the lock has a marker at most."""
    marker = str(entry.get("marker") or entry.get("markers") or "")
    if marker and not _marker_on_mac(marker):
        return "optional", f"is not wanted on macOS: {marker}"
    if source.name == "pylock.toml":
        return "blocker", _NO_WHEEL.because
    because = f"{_NO_WHEEL.because}; whether macOS wants it, the lock's markers decide"
    return "check", because


def _marker_on_mac(text: str) -> bool:
    try:
        return _on_mac(Marker(text))
    except InvalidMarker:
        return True


def _has_mac_file(entry: Mapping[str, Any], files: list[str]) -> bool:
    if entry.get("sdist") or any(one.endswith((".tar.gz", ".zip")) for one in files):
        return True
    pattern = r"-any\.whl|macosx_\d+_\d+_(arm64|universal2)"
    return any(re.search(pattern, one) for one in files)


def _table(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = data.get(name)
    return found if isinstance(found, dict) else {}


def _tables(data: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = data.get(name)
    return (
        [one for one in found if isinstance(one, dict)]
        if isinstance(found, list)
        else []
    )


def _texts(value: object) -> list[str]:
    return (
        [one for one in value if isinstance(one, str)]
        if isinstance(value, list)
        else []
    )


def _line(source: Source, text: str) -> int:
    at = source.text.find(text)
    return source.text.count("\n", 0, at) + 1 if at >= 0 else 0


def _finding(
    source: Source,
    line: int,
    term: str,
    package: Package,
    *,
    standing: Standing | None = None,
    because: str = "",
) -> ScanFinding:
    return ScanFinding(
        path=source.path,
        line=line,
        cell=source.cell,
        level=package.level,
        rule="cuda-requirement",
        standing=standing or package.standing,
        term=term,
        because=because or package.because,
        remedy=package.remedy,
    )
