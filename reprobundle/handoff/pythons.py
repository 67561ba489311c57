"""Find the interpreters of the other machine, before anything else is known of it."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from reprobundle.handoff.errors import UnfitMachineError
from reprobundle.handoff.ssh import Destination, shell

OLDEST = (3, 10)
_MARK = "reprobundle-found"
_VERSION = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}(?![0-9])")
_MINORS = tuple(range(14, 5, -1))
# A login over ssh has a short path: interpreters are looked for where their installers
# put them. On macOS /usr/bin/python3 is a stub that opens a window until the command
# line tools are there, so it is asked only where they are.
SCRIPT = rf"""
hardware=$(uname -m)
system=$(uname -s)
if [ "$system" = Darwin ] && \
   [ "$(/usr/sbin/sysctl -n hw.optional.arm64 2>/dev/null)" = 1 ]; then
  hardware=arm64
fi
printf '{_MARK}\tsystem\t%s\t%s\n' "$system" "$hardware"
ask() {{
  [ -x "$1" ] && [ ! -d "$1" ] || return 0
  if [ "$1" = /usr/bin/python3 ] && [ "$system" = Darwin ]; then
    xcode-select -p >/dev/null 2>&1 || return 0
  fi
  "$1" -I -S -c 'import platform as p, sys; sys.stdout.write("\t".join(
    ["{_MARK}", "python", p.python_version(), p.python_implementation(), p.machine(),
     sys.argv[1]]) + "\n")' "$1" 2>/dev/null </dev/null
}}
for name in {" ".join(f"python3.{minor}" for minor in _MINORS)} python3; do
  path=$(command -v "$name" 2>/dev/null) && ask "$path"
  for folder in /opt/homebrew/bin /usr/local/bin /usr/bin "$HOME/.local/bin"; do
    ask "$folder/$name"
  done
done
for path in "$HOME"/.local/share/uv/python/cpython-*/bin/python3 \
            "$HOME"/.pyenv/versions/*/bin/python3 \
            "$HOME"/miniconda3/bin/python3 "$HOME"/miniforge3/bin/python3 \
            /Library/Frameworks/Python.framework/Versions/3.*/bin/python3; do
  ask "$path"
done
exit 0
"""


@dataclass(frozen=True)
class FarPython:
    """An interpreter of the other machine.

    Attributes:
        path: Where it is.
        version, implementation, machine: As it says itself.
    """

    path: str
    version: str
    implementation: str
    machine: str

    @property
    def release(self) -> tuple[int, int]:
        """Its version without the patch number."""
        major, minor = self.version.split(".")[:2]
        return int(major), int(minor)


@dataclass(frozen=True)
class FarMachine:
    """What a shell tells of the other machine.

    Attributes:
        system: As ``uname -s`` says it: ``Darwin``, ``Linux``.
        hardware: Its processor, even where the shell runs translated.
        pythons: All interpreters that were found, each once.
    """

    system: str
    hardware: str
    pythons: tuple[FarPython, ...]

    def best(self, minor: str, named: str = "") -> FarPython:
        """Return the interpreter to work with there.

        Args:
            minor: Wanted version, such as ``3.11``; the newest serves otherwise.
            named: The only path that may be taken, if not empty.

        Raises:
            UnfitMachineError: There is none of 3.10 or newer.
        """
        fit = [
            one
            for one in self.pythons
            if one.release >= OLDEST
            and one.machine == self.hardware
            and one.implementation == "CPython"
            and (not named or one.path == named)
        ]
        if not fit:
            raise self._unfit(named)
        wanted = tuple(map(int, minor.split(".")[:2])) if minor else ()
        return max(fit, key=lambda one: (one.release == wanted, one.release))

    def _unfit(self, named: str) -> UnfitMachineError:
        told = sorted({f"{one.version} ({one.path})" for one in self.pythons})
        translated = any(one.machine != self.hardware for one in self.pythons)
        found = ", ".join(told) or "none"
        where = f" at {named!r}" if named else ""
        why = ", some for another processor" if translated else ""
        return UnfitMachineError(
            f"no CPython 3.10 or newer{where} on the other machine, found: "
            f"{found}{why}",
            advice="install one there without root: `uv python install 3.12`, "
            "Miniforge, or the installer of python.org; then call again",
        )


def find_machine(destination: Destination, named: str = "") -> FarMachine:
    """Return what a shell there finds.

    Args:
        destination: Where it is.
        named: A further interpreter to look at.

    Raises:
        UnreachableError, ConnectionLostError: It cannot be asked.
    """
    extra = f"ask {shlex.quote(named)}\nexit 0\n" if named else "exit 0\n"
    script = SCRIPT.removesuffix("exit 0\n") + extra
    with shell(destination, script) as session:
        lines = [line.split("\t") for line in session.text().splitlines()]
    told = [line[1:] for line in lines if line[0] == _MARK]
    systems = [line[1:3] for line in told if line[0] == "system" and len(line) == 3]
    if not systems:
        raise UnfitMachineError(
            f"{destination.name} runs no shell that says what it is",
            advice=f"see what `ssh {destination.name} uname -s` prints",
        )
    pythons = {
        line[4]: FarPython(line[4], line[1], line[2], line[3])
        for line in told
        if line[0] == "python" and len(line) == 5 and _VERSION.match(line[1])
    }
    return FarMachine(systems[0][0], systems[0][1], tuple(pythons.values()))
