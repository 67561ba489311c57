"""Tell from an installer's output why it failed, one cause and one class each.

Installers have no exit status for each cause, so their words are read: those of pip
22 to 26 and of uv 0.5 to 0.13. What is not recognised stays the installer's own last
line.
"""

from __future__ import annotations

import re
from pathlib import Path

from reprobundle.errors import (
    EnvironmentUnusableError,
    HashMismatchError,
    InstallFailedError,
    MissingPackageError,
    NoNetworkError,
    NoPermissionError,
    NoSpaceError,
)
from reprobundle.format.lock import Lock
from reprobundle.run.package_origin import normalised

NO_SPACE = re.compile(
    r"No space left on device|Disk quota exceeded|Errno 28|os error 28"
)
DENIED = re.compile(
    r"Permission denied|Read-only file system|Operation not permitted"
    r"|os error (?:13|30)\b"
)
HASH_MISMATCH = re.compile(
    r"DO NOT MATCH THE HASHES|Hash mismatch for|hash mismatch", re.IGNORECASE
)
# The first lines of both installers that name the package of a mismatch.
HASH_PACKAGE = re.compile(
    r"^\s*([A-Za-z0-9][\w.-]*?)(?:==\S+)? from \S+.*:$"
    r"|[Hh]ash mismatch for `?([\w.-]+)==",
    re.MULTILINE,
)
NETWORK = re.compile(
    r"Failed to establish a new connection|NameResolutionError|ConnectTimeoutError"
    r"|Temporary failure in name resolution|Network is unreachable|Connection refused"
    r"|Name or service not known|nodename nor servname|ProxyError|Read timed out"
    r"|dns error|tcp connect error|Could not connect|operation timed out"
    r"|Network connectivity is disabled"
)
MISSING = (
    re.compile(r"No matching distribution found for ([A-Za-z0-9][\w.-]*)==([^\s;]+)"),
    re.compile(r"no version of ([a-z0-9-]+)(?:\[[^\]]*\])?==([^\s,]+)"),
    re.compile(
        r"\b([a-z0-9-]+)==([^\s,]+) has no (?:wheels|usable wheels|\S+ distribution)"
    ),
    re.compile(r"Because ([a-z0-9-]+)()(?:\[[^\]]*\])? was not found"),
)
PYTHON_TOO_OLD = re.compile(
    r"requires a different Python|requires Python|Requires-Python|depends on Python"
)
BUILD_FAILED_OF = re.compile(
    r"(?:Failed building wheel for|Failed to build|Could not build wheels for)"
    r" `?([A-Za-z0-9][\w.-]*)"
)
BUILD_FAILED = re.compile(r"subprocess-exited-with-error|metadata-generation-failed")
OTHER_VERSIONS = re.compile(r"\(from versions: ([^)]*)\)")


def explain(
    output: str, *, lock: Lock | None, target: Path, log: Path, folder_only: bool
) -> EnvironmentUnusableError:
    """Return the error that says why an installation failed.

    Args:
        output: What the installer printed.
        lock: What was to be installed; None while the empty environment is made.
        target: Folder of the environment.
        log: Where the whole output is kept.
        folder_only: Whether a folder of wheels was the only source.
    """
    if NO_SPACE.search(output):
        return NoSpaceError(
            f"the disk of {str(target)!r} is full, the environment does not fit",
            folder=str(target),
            needed_bytes=lock.size_bytes if lock else 0,
            free_bytes=0,
            advice="free some space and start again; what was fetched is kept",
        )
    if DENIED.search(output):
        return NoPermissionError(
            f"the installer may not write or read: {_line_of(DENIED, output)}",
            folder=str(target),
            advice="choose a folder of your own; no step needs more rights than that",
        )
    if HASH_MISMATCH.search(output):
        return _mismatch(output)
    # An index that cannot be reached looks like one that has no such package.
    if not folder_only and NETWORK.search(output):
        return NoNetworkError(
            f"no package index answers: {_line_of(NETWORK, output)}",
            advice="connect and start again, or give a folder that holds the wheels",
        )
    return _missing(output, lock, folder_only=folder_only) or _other(output, log)


def _mismatch(output: str) -> HashMismatchError:
    found = HASH_PACKAGE.search(output)
    package = normalised(next(filter(None, found.groups()))) if found else ""
    return HashMismatchError(
        f"{package or 'a package'}: the archive served is not the one recorded",
        package=package,
        advice="do not use it; give a folder that holds the original archive",
    )


def _missing(
    output: str, lock: Lock | None, *, folder_only: bool
) -> MissingPackageError | None:
    for pattern in MISSING:
        found = pattern.search(output)
        locked = lock.find(normalised(found.group(1))) if found and lock else None
        if found is None or locked is None:
            continue
        version = found.group(2).strip("`'\".") or locked.version
        return missing_package(
            locked.name,
            version,
            served=_served(output),
            folder_only=folder_only,
            other_python=bool(PYTHON_TOO_OLD.search(output)),
        )
    return None


def missing_package(
    package: str,
    version: str,
    *,
    served: str = "",
    folder_only: bool = False,
    other_python: bool = False,
) -> MissingPackageError:
    """Return the error for a locked package that no source serves.

    Args:
        package: Its normalised name.
        version: The version wanted, with its local label.
        served: Versions that are served instead, as text.
        folder_only: Whether a folder of wheels was the only source.
        other_python: Whether the installer spoke of an unfit Python version.
    """
    where = "in the folder of wheels" if folder_only else "on the configured indexes"
    label = version.partition("+")[2]
    words = [f"{package}=={version} is not {where}"]
    if served:
        words.append(f"which have {served}")
    if other_python:
        words.append("or not for this Python version")
    if label:
        words.append(f"the label {label!r} names a build that is not published there")
    return MissingPackageError(
        ", ".join(words),
        package=package,
        version=version,
        advice=_missing_advice(label, folder_only=folder_only),
    )


def _missing_advice(label: str, *, folder_only: bool) -> str:
    if folder_only:
        return "put its wheel into that folder"
    if label:
        return (
            "add the index of that build to pip's extra-index-url, or give a folder "
            "that holds its wheel; no other build is taken in its place"
        )
    return "add the index that serves it to pip's settings, or give a folder of wheels"


def _served(output: str) -> str:
    found = OTHER_VERSIONS.search(output)
    versions = found.group(1).split(", ") if found else []
    if versions in ([], ["none"]):
        return ""
    return ", ".join(versions[-3:])


def _other(output: str, log: Path) -> InstallFailedError:
    named = BUILD_FAILED_OF.search(output)
    package = named.group(1) if named else ""
    if not package and BUILD_FAILED.search(output):
        package = "a package"
    if package:
        return InstallFailedError(
            f"{package} has no wheel for this machine and does not build from source",
            log=str(log),
            advice=f"see {str(log)!r}; a compiler or a system library may be missing",
        )
    return InstallFailedError(
        f"the installer failed: {_last_line(output)}",
        log=str(log),
        advice=f"see {str(log)!r}",
    )


def _line_of(pattern: re.Pattern[str], output: str) -> str:
    line = next(line for line in output.splitlines() if pattern.search(line))
    return _without_credentials(line.strip())


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return _without_credentials((errors or lines or ["it printed nothing"])[-1])


def _without_credentials(text: str) -> str:
    return re.sub(r"://[^/@\s]+@", "://", text)
