"""Find a Python on this machine that can stand for the recorded one."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reprobundle.errors import UnfitPythonError
from reprobundle.format.lock import Interpreter
from reprobundle.run.targets import Target, target_of

ASK = (
    "import platform as p, sys; sys.stdout.write('\\n'.join(["
    "p.python_version(), p.python_implementation(), p.machine(), sys.platform]))"
)
ASK_TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class FoundPython:
    """An interpreter of this machine.

    Attributes:
        path: Where it is.
        version, implementation, architecture, system: As it says itself.
    """

    path: Path
    version: str
    implementation: str
    architecture: str
    system: str

    @property
    def minor(self) -> str:
        """Its version without the patch number, such as ``3.11``."""
        return ".".join(self.version.split(".")[:2])


def find_interpreter(
    wanted: Interpreter, *, named: Path | None, allow_other_python: bool = False
) -> FoundPython:
    """Return an interpreter of the recorded minor version, the same patch if possible.

    Args:
        wanted: The recorded interpreter.
        named: The one the user named; then no other is looked for.
        allow_other_python: Take another minor version rather than none.

    Raises:
        UnfitPythonError: There is none, or the named one does not fit.
    """
    found: list[FoundPython] = []
    fitting: list[FoundPython] = []
    for path in [named] if named else _candidates(wanted.minor):
        python = ask(path)
        if python is None:
            continue
        found.append(python)
        if _fits(python, wanted):
            fitting.append(python)
            if python.version == wanted.version:
                return python
    if not fitting and allow_other_python:
        fitting = [python for python in found if _is_native(python)]
    if not fitting:
        raise _unfit(wanted, named, found)
    return min(fitting, key=lambda python: _distance(python, wanted))


def ask(path: Path) -> FoundPython | None:
    """Return what the interpreter at `path` says of itself, None if it does not run."""
    try:
        done = subprocess.run(
            [str(path), "-I", "-S", "-c", ASK],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=ASK_TIMEOUT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.decode(errors="replace").splitlines()
    if done.returncode != 0 or len(lines) != 4:
        return None
    return FoundPython(path, *lines)


def _candidates(minor: str) -> Iterator[Path]:
    """Yield the places where an interpreter of `minor` usually is, each once.

    A virtual environment made from another one shares nothing with it but the base
    interpreter, so our own may serve.
    """
    seen: set[Path] = set()
    for path in _all_candidates(minor):
        if path.is_file() and path not in seen:
            seen.add(path)
            yield path


def _all_candidates(minor: str) -> Iterator[Path]:
    name = f"python{minor}"
    yield Path(getattr(sys, "_base_executable", None) or sys.executable)
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if folder:
            yield Path(folder) / name
            yield Path(folder) / "python3"
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT") or home / ".pyenv")
    managed = home / ".local/share/uv/python"
    yield from sorted(pyenv.glob(f"versions/{minor}.*/bin/{name}"))
    yield from sorted(managed.glob(f"cpython-{minor}.*/bin/{name}"))
    yield Path(f"/Library/Frameworks/Python.framework/Versions/{minor}/bin/{name}")
    yield Path(f"/opt/homebrew/bin/{name}")
    yield Path(f"/usr/local/bin/{name}")


def _fits(python: FoundPython, wanted: Interpreter) -> bool:
    return (
        python.minor == wanted.minor
        and python.implementation == wanted.implementation
        and _is_native(python)
    )


def _is_native(python: FoundPython) -> bool:
    """Tell whether it runs without translation.

    On an Apple chip an Intel build of Python runs under Rosetta: it sees no GPU and
    computes with other kernels.
    """
    return not (python.system == "darwin" and python.architecture != hardware())


def hardware() -> str:
    """Return the processor's architecture, even where this process is translated."""
    if platform.system() != "Darwin":
        return platform.machine()
    try:
        done = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "hw.optional.arm64"],
            capture_output=True,
            check=False,
        )
    except OSError:
        return platform.machine()
    return "arm64" if done.stdout.strip() == b"1" else platform.machine()


def _distance(python: FoundPython, wanted: Interpreter) -> tuple[bool, bool, bool]:
    """Order by implementation, exact version, minor version; the first found wins."""
    return (
        python.implementation != wanted.implementation,
        python.version != wanted.version,
        python.minor != wanted.minor,
    )


def _unfit(
    wanted: Interpreter, named: Path | None, found: list[FoundPython]
) -> UnfitPythonError:
    target = f"{wanted.implementation} {wanted.minor}"
    phrases = tuple(sorted({_phrase(python) for python in found}))
    if named and not found:
        message = f"{str(named)!r} is no working Python; {target} was recorded"
    elif named:
        message = f"{str(named)!r} is {phrases[0]}; {target} was recorded"
    else:
        listed = ", ".join(phrases) or "none"
        message = f"no {target} is on this machine, found: {listed}"
    return UnfitPythonError(message, wanted=target, found=phrases)


def _phrase(python: FoundPython) -> str:
    words = f"{python.implementation} {python.version}"
    if not _is_native(python):
        return f"{words} for {python.architecture}, which runs only translated here"
    return words


def as_target(python: FoundPython) -> Target:
    """Return what the interpreter `python` of this machine can install."""
    if python.system == "darwin":
        stated = platform.mac_ver()[0]
    else:
        stated = platform.libc_ver()[1]
    parts = [int(part) for part in stated.split(".")[:2] if part.isdigit()]
    return target_of(
        version=python.version,
        implementation=python.implementation,
        system=python.system,
        machine=python.architecture,
        release=(parts[0], parts[1]) if len(parts) == 2 else (0, 0),
    )
