"""Checks of prerequisites, memory, variables, session and clock, each guarded."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from reprobundle.format.doctor_report import CheckState, DoctorCheck
from reprobundle.port.doctor.asked import Facts
from reprobundle.port.doctor.causes import RULE_DATE, numbers, oldest_macos

OLDEST_PYTHON = (3, 10)
LITTLE_FREE_BYTES = 5 << 30
MOST_SKEW_SECONDS = 2.0
_VARIABLES = {
    "PYTORCH_ENABLE_MPS_FALLBACK": (
        "operators without a kernel run on the CPU without an error",
        "unset it to see what MPS lacks; replay sets it to 0",
    ),
    "PYTORCH_MPS_HIGH_WATERMARK_RATIO": (
        "the memory limit of MPS is not the default",
        "unset it: memory under another limit is not comparable",
    ),
    "PYTORCH_MPS_LOW_WATERMARK_RATIO": (
        "the collection of memory begins elsewhere",
        "unset it: memory under another limit is not comparable",
    ),
    "PYTORCH_MPS_FAST_MATH": (
        "compiled shaders round otherwise",
        "unset it, or set it on both sides",
    ),
}


class _Rule(NamedTuple):
    """One prerequisite.

    Attributes:
        name: Of the check.
        fact: What it looks at.
        wanted: The rule in words, with the torch version and date it holds for.
        fits: Whether a value keeps the rule.
        mac_only: Whether it is asked of a Mac only.
        mild: Whether a breach is a warning.
    """

    name: str
    fact: str
    wanted: str
    fits: Callable[[object], bool]
    mac_only: bool = True
    mild: bool = False


def prerequisites(facts: Facts) -> Iterator[DoctorCheck]:
    """Yield Apple Silicon, macOS, Python and the command line tools."""
    torch = facts.text("torch.version")
    wanted = oldest_macos(facts)
    oldest = f"{wanted[0]}.{wanted[1]}" if wanted else "unknown"
    for_torch = f"torch {torch}" if torch else "the newest torch"
    rules = (
        _Rule(
            "macos",
            # Without the rule the answer is not known.
            "os.version" if wanted else "mps.oldest_macos",
            f"macOS {oldest} or newer for {for_torch}, {RULE_DATE}",
            lambda value: wanted is not None and numbers(str(value)) >= wanted,
        ),
        _Rule(
            "apple-silicon",
            "machine.architecture",
            # pytorch/pytorch#114602
            "arm64, machine and Python, for torch 2.3 and newer; PyTorch ended its "
            "builds for Intel in 2024",
            lambda value: value == "arm64",
        ),
        _Rule(
            "python",
            "python.version",
            f"Python 3.10 or newer for torch 2.9 and newer, {RULE_DATE}",
            lambda value: numbers(str(value)) >= OLDEST_PYTHON,
            mac_only=False,
        ),
        _Rule(
            "xcode-tools",
            "tools.xcode",
            "Xcode's command line tools, where a package has to be compiled, for any "
            "torch, as of December 2026",
            bool,
            mild=True,
        ),
    )
    is_mac = facts.text("os.system") == "Darwin"
    for rule in rules:
        yield _judged(facts, rule, applies=is_mac or not rule.mac_only)


def _judged(facts: Facts, rule: _Rule, *, applies: bool) -> DoctorCheck:
    value = facts.value(rule.fact)
    state: CheckState = "ok"
    got = facts.text(rule.fact)
    if not applies:
        state, got = "not-applicable", "this is no Mac"
    elif value is None:
        state, got = "unknown", facts.why(rule.fact)
    elif not rule.fits(value):
        state = "warn" if rule.mild else "problem"
    broken = state in {"problem", "warn"} or (state == "unknown" and rule.mild)
    return DoctorCheck(
        group="prerequisites",
        name=rule.name,
        state=state,
        got=got,
        wanted=rule.wanted,
        remedy=f"needed: {rule.wanted}" if broken else "",
    )


def torch_build(facts: Facts, python: str) -> DoctorCheck:
    """Return which torch was found, and where.

    Args:
        facts: What the interpreter said.
        python: The interpreter.
    """
    version = facts.text("torch.version")
    return DoctorCheck(
        group="torch",
        name="torch",
        state="ok" if version else "problem",
        got=f"{version} in {facts.text('torch.file')}"
        if version
        else f"{facts.why('torch.version')}, in {python}",
        remedy=""
        if version
        else "install it there, or name the interpreter that has it with --python",
    )


def memory(facts: Facts) -> Iterator[DoctorCheck]:
    """Yield the size of the memory, its pressure, and heavy programs."""
    total = facts.value("memory.total_bytes")
    known = isinstance(total, int)
    yield DoctorCheck(
        group="memory",
        name="total",
        state="ok" if known else "unknown",
        got=f"{int(str(total)) / 2**30:.1f} GiB"
        if known
        else facts.why("memory.total_bytes"),
    )
    yield _working_set(facts)
    yield _pressure(facts)
    for name, fact in (
        ("heavy-processes", "state.large_processes"),
        ("busy-processes", "state.running_processes"),
    ):
        value = facts.value(fact)
        found = value if isinstance(value, list) else []
        yield DoctorCheck(
            group="memory",
            name=name,
            state="unknown" if value is None else "warn" if found else "ok",
            got=", ".join(map(str, found[:4]))
            or ("none" if value is not None else facts.why(fact)),
            remedy="end them before a measured run" if found else "",
        )


def _working_set(facts: Facts) -> DoctorCheck:
    """Return what the GPU may hold without loss of speed, as Metal recommends."""
    value = facts.value("mps.recommended_max_bytes")
    state: CheckState = "ok" if isinstance(value, int) else "unknown"
    got = facts.why("mps.recommended_max_bytes")
    if isinstance(value, int):
        got = f"{value / 2**30:.1f} GiB recommended by Metal"
    if facts.text("os.system") != "Darwin":
        state, got = "not-applicable", "this is no Mac"
    return DoctorCheck(group="memory", name="gpu-working-set", state=state, got=got)


def _pressure(facts: Facts) -> DoctorCheck:
    level = facts.value("state.memory_pressure_level")
    share = facts.value("state.pressure_memory_some_percent")
    state: CheckState = "unknown"
    got = facts.why("state.memory_pressure_level")
    if isinstance(level, int):
        # 1 normal, 2 warning, 4 critical: kern.memorystatus_vm_pressure_level.
        state = "ok" if level == 1 else "warn"
        got = {1: "normal", 2: "warning", 4: "critical"}.get(level, f"level {level}")
    elif isinstance(share, (int, float)):
        state = "ok" if share < 1 else "warn"
        got = f"{share} % of the last 10 s were spent waiting for memory"
    wanted = "normal" if state == "warn" else ""
    remedy = "end other programs: they distort memory and time" if wanted else ""
    return DoctorCheck(
        group="memory",
        name="pressure",
        state=state,
        got=got,
        wanted=wanted,
        remedy=remedy,
    )


def settings(variables: Mapping[str, str]) -> Iterator[DoctorCheck]:
    """Yield the variables of MPS that are set in this process."""
    for name, (meaning, remedy) in _VARIABLES.items():
        value = variables.get(name)
        is_set = value is not None and not (name.endswith("FALLBACK") and value == "0")
        yield DoctorCheck(
            group="variables",
            name=name,
            state="warn" if is_set else "ok",
            got=f"{value}: {meaning}" if is_set else value or "not set",
            remedy=remedy if is_set else "",
        )


def session(
    variables: Mapping[str, str],
    *,
    hangup: object = None,
    processes: str = "",
    is_mac: bool = False,
) -> Iterator[DoctorCheck]:
    """Yield whether a job outlives this terminal, and whether the machine may sleep.

    Args:
        variables: Environment of the process.
        hangup: What SIGHUP does; asked of this process by default.
        processes: Names of running programs, one a line; empty if not known.
        is_mac: Whether this is macOS.
    """
    hangup = signal.getsignal(signal.SIGHUP) if hangup is None else hangup
    keeper = next((n for n in ("TMUX", "STY", "ZELLIJ") if variables.get(n)), "")
    names = {"TMUX": "tmux", "STY": "screen", "ZELLIJ": "zellij"}
    survives = bool(keeper) or hangup is signal.SIG_IGN
    over = " over SSH" if variables.get("SSH_CONNECTION") else ""
    yield DoctorCheck(
        group="session",
        name="survives-disconnect",
        state="ok" if survives else "warn",
        got=f"yes, {names[keeper]}"
        if keeper
        else "yes, hang-ups are ignored (nohup)"
        if survives
        else f"no: a job of this terminal{over} ends with it",
        remedy="" if survives else "replay --detach, or start it in tmux",
    )
    awake = "caffeinate" in processes.split()
    state: CheckState = "ok" if awake else "warn" if processes else "unknown"
    yield DoctorCheck(
        group="session",
        name="stays-awake",
        state=state if is_mac else "not-applicable",
        got="caffeinate runs"
        if awake
        else "nothing keeps this Mac awake"
        if processes
        else "running programs are not known"
        if is_mac
        else "this is no Mac",
        remedy="caffeinate -is, for as long as the run takes"
        if is_mac and not awake
        else "",
    )


def clock(
    folder: Path | None = None, now: Callable[[], float] = time.time
) -> DoctorCheck:
    """Return whether the clock and the time of a new file agree.

    Args:
        folder: Where the file is made; the system's temporary folder by default.
        now: Wall clock, in seconds.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            skew = abs(os.fstat(file.fileno()).st_mtime - now())
    except OSError as error:
        return DoctorCheck(group="clock", name="clock", state="unknown", got=str(error))
    is_right = skew <= MOST_SKEW_SECONDS
    return DoctorCheck(
        group="clock",
        name="clock",
        state="ok" if is_right else "warn",
        got=f"clock and file times differ by {skew:.1f} s",
        wanted="" if is_right else f"at most {MOST_SKEW_SECONDS:.0f} s",
        remedy="" if is_right else "set the clock; records carry its time",
    )
