"""What is carried there: the bundle, our own program, and the packages of the lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reprobundle.errors import BadCallError
from reprobundle.format.reader import open_bundle
from reprobundle.handoff.carried import carried_wheels
from reprobundle.handoff.copying import Carried, carry
from reprobundle.handoff.preflight import Looked
from reprobundle.handoff.sent import agent_source
from reprobundle.handoff.wish import BUNDLE_NAME, Wish
from reprobundle.replay.wheel_folder import fetch_wheels
from reprobundle.run.bundle_lock import locked_selection
from reprobundle.run.package_origin import normalised


@dataclass(frozen=True)
class Load:
    """The files that go there.

    Attributes:
        files: All of them.
        tool: Names of our own wheels.
        locked: Whether the packages of the lock are among the files.
    """

    files: tuple[Carried, ...]
    tool: tuple[str, ...]
    locked: bool

    @property
    def size_bytes(self) -> int:
        """Size of all files."""
        return sum(one.size_bytes for one in self.files)


def make_load(
    wish: Wish, bundle: Path, found: Looked, say: Callable[[str], None]
) -> Load:
    """Gather what the other machine lacks.

    Args:
        wish: The call.
        bundle: The file that goes there: the bundle, or an encrypted copy of it.
        found: What the machine is.
        say: Told each step as one line.

    Raises:
        MissingPackageError: A wheel cannot be had for that machine.
        EnvironmentUnusableError: It cannot be fetched here.
    """
    cache = _cache()
    target = found.target
    folder = cache / "carried" / f"{target.name}-{target.python}"
    tool = carried_wheels(target, folder, given=wish.tool_wheels, say=say)
    locked = _locked(wish, found, cache / "locked", say) if wish.fresh else []
    agent = folder / "agent.py"
    agent.write_bytes(agent_source())
    suffix = bundle.name.removeprefix(wish.bundle.name)
    files = [
        carry(agent, "agent.py"),
        *(carry(wheel, f"tool/{wheel.name}") for wheel in tool),
        carry(bundle, BUNDLE_NAME + suffix),
        *(carry(wheel, f"locked/{wheel.name}") for wheel in locked),
    ]
    return Load(tuple(files), tuple(wheel.name for wheel in tool), bool(locked))


def _locked(
    wish: Wish, found: Looked, cache: Path, say: Callable[[str], None]
) -> list[Path]:
    """Return the wheels of the bundle's lock for that machine."""
    if wish.fetch_there:
        return []
    if wish.wheels is not None:
        return sorted(wish.wheels.glob("*.whl"))
    with open_bundle(wish.bundle) as bundle:
        try:
            target, selection, _ = locked_selection(bundle, found.lock_target)
        except BadCallError as error:
            raise BadCallError(
                error.message,
                advice="let the other machine fetch the recorded versions itself: "
                "--fetch-there",
            ) from error
    without = frozenset(map(normalised, wish.without))
    folder = cache / found.lock_target
    fetched = fetch_wheels(selection, target, folder, without=without, say=say)
    return [folder / name for name in (*fetched.fetched, *fetched.present)]


def _cache() -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "reprobundle" / "handoff"
