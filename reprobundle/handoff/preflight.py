"""Is the other machine fit for it: asked before a single byte of the bundle travels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reprobundle.handoff.errors import UnfitMachineError
from reprobundle.handoff.pythons import OLDEST, FarMachine, FarPython, find_machine
from reprobundle.handoff.ssh import Agent
from reprobundle.handoff.wish import Wish
from reprobundle.replay.plan import ReplayPlan
from reprobundle.run.space import RESERVE_BYTES, format_bytes
from reprobundle.run.targets import Target, target_of

# A copied wheel and what is unpacked from it.
UNPACKED = 4
# Copies of the project that a replay makes.
COPIES = 3
TOOL_BYTES = 60 << 20


@dataclass(frozen=True)
class Looked:
    """What was found.

    Attributes:
        machine: Its interpreters.
        python: The one that answers and runs our program.
        facts: The agent's own answer.
    """

    machine: FarMachine
    python: FarPython
    facts: dict[str, Any]

    @property
    def target(self) -> Target:
        """What our own wheels have to fit."""
        mac = str(self.facts["mac"])
        stated = mac or str((self.facts["libc"] or ["", ""])[1])
        parts = [int(part) for part in stated.split(".")[:2] if part.isdigit()]
        return target_of(
            version=self.python.version,
            implementation=self.python.implementation,
            system="darwin" if self.machine.system == "Darwin" else "linux",
            machine=self.python.machine,
            release=(parts[0], parts[1]) if len(parts) == 2 else (0, 0),
        )

    @property
    def lock_target(self) -> str:
        """Name under which a bundle's lock knows this kind of machine."""
        return self.target.name

    def describe(self) -> str:
        """Return one line about the machine."""
        facts = self.facts["facts"]
        memory = self.facts["memory"]
        system = "macOS" if self.machine.system == "Darwin" else facts["system"]
        return (
            f"{facts['host']}: {system} {facts['os']} on {facts['machine']}, "
            f"Python {self.python.version} ({self.python.path}), "
            f"{format_bytes(self.facts['disk_free_bytes'])} of disk and "
            f"{format_bytes(memory['free_bytes'])} of "
            f"{format_bytes(memory['total_bytes'])} memory free"
        )


def look(wish: Wish, plan: ReplayPlan, far_name: str) -> Looked:
    """Look at the other machine; nothing is written there.

    Args:
        wish: The call.
        plan: What would be replayed.
        far_name: Name of the folder there.

    Raises:
        UnreachableError, ConnectionLostError: It cannot be asked.
        UnfitMachineError: It lacks what the replay needs.
    """
    minor = plan.lock.python.minor
    named = wish.python or ("" if wish.fresh else wish.environment)
    machine = find_machine(wish.destination, named)
    if machine.system not in ("Darwin", "Linux"):
        raise UnfitMachineError(
            f"{wish.destination.name} runs {machine.system}, a replay needs Linux or "
            "macOS",
            advice="choose another machine",
        )
    python = machine.best(minor, wish.python)
    agent = Agent(wish.destination, python.path, wish.root, far_name)
    asked = "" if wish.fresh else wish.environment
    found = Looked(machine, python, agent.ask("look", python=asked))
    _require_environment(wish, plan, found)
    return found


def _require_environment(wish: Wish, plan: ReplayPlan, found: Looked) -> None:
    """Refuse a machine on which the replay cannot even begin.

    Raises:
        UnfitMachineError: It cannot.
    """
    where = wish.destination.name
    if not found.facts["writable"]:
        raise UnfitMachineError(
            f"{found.facts['folder']} cannot be made on {where}",
            advice="name a folder of your own there: --folder DIRECTORY",
        )
    if not wish.fresh and not found.facts["named_python"]:
        raise UnfitMachineError(
            f"there is no interpreter {wish.environment!r} on {where}",
            advice="name one that is there, or leave out --env to build one",
        )
    _require_recent(wish, found, where)
    torch = next((d for d in plan.lock.distributions if d.name == "torch"), None)
    loads = any(run.record.loaded_torch for run in plan.runs)
    if torch and loads and not wish.fresh and not found.facts["torch"]:
        raise UnfitMachineError(
            f"{wish.environment!r} on {where} has no torch, and the command needs "
            f"torch {torch.version}",
            advice="install torch there, or leave out --env to build the environment "
            "from the bundle's lock",
        )
    if wish.fresh and not wish.other_python:
        _require_minor(plan.lock.python.minor, found, where)


def _require_recent(wish: Wish, found: Looked, where: str) -> None:
    """Refuse an interpreter that the recorder cannot run in."""
    for one in found.machine.pythons:
        if not wish.fresh and one.path == wish.environment and one.release < OLDEST:
            raise UnfitMachineError(
                f"{one.path!r} on {where} is Python {one.version}, and a replay needs "
                f"{'.'.join(map(str, OLDEST))} or newer",
                advice="name another, or leave out --env to build the environment from "
                "the bundle's lock",
            )


def _require_minor(minor: str, found: Looked, where: str) -> None:
    releases = {".".join(map(str, one.release)) for one in found.machine.pythons}
    if minor not in releases:
        listed = ", ".join(sorted(releases))
        raise UnfitMachineError(
            f"the lock is for Python {minor}, and {where} has {listed}",
            advice=f"install it there without root (`uv python install {minor}`), or "
            "add: -- --allow-other-python",
        )


def require_room(
    found: Looked, needed_bytes: int, where: str, unpacked_bytes: int = 0
) -> None:
    """Refuse a machine whose disk is too small.

    Raises:
        UnfitMachineError: It is.
    """
    free = int(found.facts["disk_free_bytes"])
    whole = needed_bytes + unpacked_bytes + RESERVE_BYTES
    if free < whole:
        raise UnfitMachineError(
            f"the hand-off needs {format_bytes(whole)} on {where}, and "
            f"{format_bytes(free)} are free in {found.facts['folder']}",
            advice="free some space there, or name a folder on another disk: --folder",
        )


def warnings(found: Looked, plan: ReplayPlan) -> Iterator[str]:
    """Yield what may go wrong there, from the figures of the author's run."""
    memory = found.facts["memory"]
    if memory["total_bytes"] and plan.peak_bytes > memory["total_bytes"]:
        yield (
            f"the author's run took {format_bytes(plan.peak_bytes)} of memory, that "
            f"machine has {format_bytes(memory['total_bytes'])}"
        )
    elif memory["free_bytes"] and plan.peak_bytes > memory["free_bytes"]:
        yield (
            f"the author's run took {format_bytes(plan.peak_bytes)} of memory, "
            f"{format_bytes(memory['free_bytes'])} are free there now"
        )
