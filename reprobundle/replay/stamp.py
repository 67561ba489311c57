"""The stamp of a complete environment, and whether one still is as it was built."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from reprobundle.errors import EnvironmentUnusableError
from reprobundle.format.lock import Lock
from reprobundle.run.installed_files import damaged_files
from reprobundle.run.lock import probe, to_lock

STAMP_NAME = "complete.json"


class Built(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The stamp of a complete environment.

    Attributes:
        lock: Digest of the locks it was built from.
        installer: Name and version of the installer.
        commands: Commands run, with ``{environment}`` for the target folder.
        environment: What was installed in the end.
        left_out: Locked packages that are not installed: name, version, reason.
        other_builds: Packages whose plain release took the place of a labelled build.
        elapsed_ns: Time the build took.
    """

    schema: Literal["reprobundle/environment/1"] = "reprobundle/environment/1"
    lock: str
    installer: str
    commands: tuple[tuple[str, ...], ...]
    environment: Lock
    left_out: tuple[tuple[str, str, str], ...]
    other_builds: tuple[str, ...]
    elapsed_ns: int


def outside_a_run() -> dict[str, str]:
    """Return our environment without a session: a probe is no part of a run."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("REPROBUNDLE_", "PYTHON"))
    }


def python_of(folder: Path) -> Path:
    """Return the interpreter of the environment in `folder`."""
    return folder / "venv" / "bin" / "python"


def write_stamp(folder: Path, built: Built) -> None:
    """Write the stamp of the environment in `folder`, the last step of a build."""
    path = folder / STAMP_NAME
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as stream:
        stream.write(msgspec.json.encode(built))
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


def standing_environment(
    folder: Path, digest: str, say: Callable[[str], None]
) -> Built | None:
    """Return the stamp of a complete environment that is still as it was built.

    A cleaner of caches, a full disk or a later installation may have changed it.

    Args:
        folder: Where it stands.
        digest: Of what it has to be built from, see `lock_digest`.
        say: Told the step.
    """
    try:
        stamp = (folder / STAMP_NAME).read_bytes()
        built = msgspec.json.decode(stamp, type=Built)
    except (OSError, msgspec.DecodeError):
        return None
    if built.lock != digest:
        return None
    say("checking the environment that stands already")
    try:
        live = probe(python_of(folder), env=outside_a_run())
    except EnvironmentUnusableError:
        return None
    metadata = [Path(item.folder) for item in live.distributions]
    if to_lock(live) != built.environment or any(map(damaged_files, metadata)):
        return None
    return built
