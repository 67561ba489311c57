"""What somebody changed between reference and replay, as seen in the findings."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from reprobundle.verify.causes.case import Case, Seen
from reprobundle.verify.causes.commands import filled, packed, replayed


def saw(*names: str, command: str = "") -> Callable[[Case], Seen]:
    """Return a test for a finding; ``{bundle}`` in the command is the file's name."""

    def test(case: Case) -> Seen:
        told = _told(case, *names)
        return None if told is None else (told, filled(case, command))

    return test


def _told(case: Case, *names: str) -> str | None:
    one = case.found(*names)
    if one is None:
        return None
    sides = f": {one.got}, expected {one.expected}" if one.expected else ""
    place = f" ({one.where})" if one.where else ""
    return f"{one.reason}{place}{sides}"


def pipeline(case: Case) -> Seen:
    """Return the masked failure, and the same command by a shell that notices."""
    one = case.found("masked-failure")
    if one is None:
        return None
    argv = case.reference.command.argv
    # A script that a shell was given is run by one that notices the failure.
    script = argv[2] if argv[1:2] == ("-c",) and len(argv) > 2 else shlex.join(argv)
    command = f"bash -o pipefail -c {shlex.quote(script)}"
    return f"{one.reason} ({one.where})", command


def asked(case: Case) -> Seen:
    """Return what the replay was asked to do otherwise."""
    words = [
        f"{name.removeprefix('asked.')}={fact.value}"
        for name, fact in case.replay.environment.items()
        if name.startswith("asked.")
    ]
    return (f"it was asked for {', '.join(words)}", replayed(case)) if words else None


def seeds(case: Case) -> Seen:
    """Return other seeds than the reference's, and how to choose one."""
    told = _told(case, "seed-calls")
    return None if told is None else (told, packed(case, "--seed 0"))


def start(case: Case) -> Seen:
    """Return another beginning, and how to begin with the reference's own numbers."""
    told = _told(case, "same-start")
    if told is None:
        return None
    if case.reference.randomness.drawn.mode == "recorded":
        return told, replayed(case, "--rng recorded")
    return told, packed(case, "--rng recorded")


def package(case: Case) -> Seen:
    """Return a package that the replay's environment lacks."""
    error = case.replay.outcome.error
    if error is None or not error.type.endswith(("ModuleNotFoundError", "ImportError")):
        return None
    return f"{error.message} ({error.where})", replayed(case, "--env fresh")


def stopped(reason: str, command: str = "") -> Callable[[Case], Seen]:
    """Return a test for a replay that stopped for this reason."""

    def test(case: Case) -> Seen:
        outcome = case.replay.outcome
        if outcome.stop != reason:
            return None
        return outcome.stop_detail or reason, filled(case, command)

    return test


def names_cuda(case: Case) -> Seen:
    """Return a command that needs CUDA, and how it gets or does without it."""
    seen = stopped("cuda_required")(case)
    if seen is None:
        return None
    if case.replay.devices.mapping:
        return seen[0], ""
    if _hides_cuda(case) and "driver" not in seen[0]:
        again = f"env -u CUDA_VISIBLE_DEVICES {replayed(case)}"
        return f"{seen[0]}; CUDA_VISIBLE_DEVICES hides every GPU", again
    return seen[0], replayed(case, "--map-device cuda=cpu")


def _hides_cuda(case: Case) -> bool:
    """Tell whether a variable keeps CUDA from a build that has it, and not we."""
    facts = case.replay.environment
    built, hidden = facts.get("torch.cuda.built"), facts.get("env.CUDA_VISIBLE_DEVICES")
    return (
        case.replay.devices.requested in ("as-is", "cuda")
        and built is not None
        and bool(built.value)
        and hidden is not None
        and hidden.value in ("", "-1")
    )
