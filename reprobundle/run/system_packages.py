"""Which packages of the system a run used: Debian, RPM, Homebrew, Xcode's tools.

They are recorded and compared. Installing them takes rights that no step here asks
for, so the command is shown and never run.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping

from reprobundle.format.record import Fact

Run = Callable[[tuple[str, ...]], str | None]

LIBRARIES = "system.libraries"
PACKAGES = "system.packages"
XCODE = "system.xcode_tools"
TIMEOUT_SECONDS = 30
_XCODE_RECEIPT = "com.apple.pkg.CLTools_Executables"


def run_command(argv: tuple[str, ...]) -> str | None:
    """Return what a program prints; None where it is missing or prints nothing.

    An exit status other than 0 does not matter: ``dpkg-query`` ends with 1 when it
    knows one path and not another.
    """
    if shutil.which(argv[0]) is None:
        return None
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=TIMEOUT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout or None


def package_facts(
    environment: Mapping[str, Fact], *, run: Run = run_command, system: str = ""
) -> dict[str, Fact]:
    """Return the facts about system packages that go with the facts of a run.

    Args:
        environment: Facts of the run; names the loaded libraries on Linux.
        run: Runs a program.
        system: As ``sys.platform`` says it; this machine's by default.
    """
    if (system or sys.platform) == "darwin":
        return {PACKAGES: _brew(run), XCODE: _xcode(run)}
    libraries = environment.get(LIBRARIES)
    if libraries is None or not isinstance(libraries.value, tuple):
        reason = "the libraries of the run are not known"
        return {PACKAGES: Fact(unknown=reason)}
    if run is run_command:
        return {PACKAGES: _owners_here(libraries.value)}
    return {PACKAGES: _owners(libraries.value, run)}


@functools.lru_cache(maxsize=8)
def _owners_here(libraries: tuple[str, ...]) -> Fact:
    # Every pass of a run loads the same libraries, and asking takes a while.
    return _owners(libraries, run_command)


def _owners(libraries: tuple[str, ...], run: Run) -> Fact:
    for ask, source in ((_debian, "dpkg-query"), (_rpm, "rpm -qf")):
        found = ask(libraries, run)
        if found is not None:
            return Fact(value=tuple(sorted(found)), source=source)
    return Fact(unknown="neither dpkg-query nor rpm answers")


def _debian(libraries: Iterable[str], run: Run) -> set[str] | None:
    """Return ``name version`` of the Debian packages that own `libraries`.

    Packages list a library below ``/lib`` or below ``/usr/lib``, whichever was right
    before the two became one.
    """
    paths = []
    for path in libraries:
        paths += [path, path.removeprefix("/usr")]
    owners = run(("dpkg-query", "--search", *dict.fromkeys(paths)))
    if owners is None:
        return None
    names = {line.partition(": ")[0].split(",")[0] for line in owners.splitlines()}
    wanted = tuple(sorted(name for name in names if " " not in name))
    if not wanted:
        return None
    shown = "${Package} ${Version}\n"
    versions = run(("dpkg-query", "--show", f"--showformat={shown}", *wanted))
    return set(versions.splitlines()) if versions else None


def _rpm(libraries: Iterable[str], run: Run) -> set[str] | None:
    shown = "%{NAME} %{VERSION}-%{RELEASE}\n"
    found = run(("rpm", "-qf", "--queryformat", shown, *libraries))
    if found is None:
        return None
    return {line for line in found.splitlines() if " is not owned " not in line} or None


def _brew(run: Run) -> Fact:
    listed = run(("brew", "list", "--versions"))
    if listed is None:
        return Fact(unknown="Homebrew is not installed or lists nothing")
    return Fact(value=tuple(sorted(listed.splitlines())), source="brew list --versions")


def _xcode(run: Run) -> Fact:
    receipt = run(("pkgutil", f"--pkg-info={_XCODE_RECEIPT}")) or ""
    for line in receipt.splitlines():
        name, _, version = line.partition(": ")
        if name == "version" and version:
            return Fact(value=version.strip(), source="pkgutil --pkg-info")
    return Fact(unknown="Xcode's command line tools are not installed")


# --- what a person could do about it


def missing_packages(recorded: Fact | None, *, run: Run = run_command) -> list[str]:
    """Return the recorded packages that this machine lacks, of any version.

    Only the kind of package this machine has is asked about; on another system the
    names mean something else, and nothing is said.
    """
    if recorded is None or not isinstance(recorded.value, tuple):
        return []
    names = [line.split(" ")[0] for line in recorded.value]
    listing = {
        "dpkg-query": ("dpkg-query", "--show", "--showformat=${Package}\n"),
        "rpm -qf": ("rpm", "-qa", "--queryformat", "%{NAME}\n"),
        "brew list --versions": ("brew", "list", "-1"),
    }.get(recorded.source)
    here = run(listing) if listing is not None else None
    if here is None:
        return []
    installed = set(here.split())
    return [name for name in names if name not in installed]


def install_command(recorded: Fact, names: list[str]) -> str:
    """Return the command with which a person would install `names`."""
    tools = {
        "dpkg-query": "sudo apt-get install",
        "rpm -qf": "sudo dnf install",
        "brew list --versions": "brew install",
    }
    return f"{tools.get(recorded.source, 'install')} {' '.join(names)}"
