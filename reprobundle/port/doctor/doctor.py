"""Put all answers about this machine together; no probe can end the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from reprobundle.errors import EnvironmentUnusableError
from reprobundle.format.doctor_report import DoctorCheck, DoctorReport
from reprobundle.port.doctor import machine
from reprobundle.port.doctor.asked import Facts, ask
from reprobundle.port.doctor.causes import causes, mps_answer
from reprobundle.port.doctor.folders import folder_checks, usual_folders
from reprobundle.port.doctor.needs import Needs, needs_checks
from reprobundle.run.launch import find_python

EXIT_NOTHING_BLOCKS = 0
EXIT_BLOCKED = 10
# Nothing blocks, and nobody saw a tensor computed on MPS.
EXIT_NOT_TESTED = 11


def examine_machine(
    variables: Mapping[str, str],
    *,
    python: Path | None = None,
    read: tuple[Path, ...] = (),
    write: tuple[Path, ...] = (),
    needs: Needs | None = None,
) -> DoctorReport:
    """Return the state of this machine.

    Args:
        variables: Environment of the process.
        python: Interpreter to ask; the first one on the path by default.
        read: Data that a run has to read.
        write: Further folders that it has to write to.
        needs: What a bundle needs, to be compared with it.

    Raises:
        EnvironmentUnusableError: There is no interpreter.
    """
    found = python or find_python((), variables.get("PATH"))
    if found is None or not found.is_file():
        raise EnvironmentUnusableError(
            f"there is no interpreter {str(found or 'on the path')!r}",
            advice="name one with --python",
        )
    written = usual_folders(variables)
    written |= {f"output {number}": path for number, path in enumerate(write, 1)}
    facts = ask(found, variables)
    return judge(
        facts, variables, python=str(found), written=written, read=read, needs=needs
    )


def judge(
    facts: Facts,
    variables: Mapping[str, str],
    *,
    python: str,
    written: Mapping[str, Path],
    read: tuple[Path, ...] = (),
    needs: Needs | None = None,
) -> DoctorReport:
    """Return the report that follows from facts.

    Args:
        facts: What the interpreter said.
        variables: Environment of the process.
        python: The interpreter.
        written: Folders that have to be writable, by name.
        read: Data that have to be readable.
        needs: What a bundle needs.
    """
    is_mac = facts.text("os.system") == "Darwin"
    awake = facts.value("state.keeps_awake")
    programs = "\n".join(map(str, awake)) if isinstance(awake, list) else ""
    groups: tuple[tuple[str, Callable[[], Iterable[DoctorCheck]]], ...] = (
        ("prerequisites", lambda: machine.prerequisites(facts)),
        ("torch", lambda: [machine.torch_build(facts, python)]),
        ("folders", lambda: folder_checks(written, read)),
        ("memory", lambda: machine.memory(facts)),
        ("variables", lambda: machine.settings(variables)),
        (
            "session",
            lambda: machine.session(variables, processes=programs, is_mac=is_mac),
        ),
        ("clock", lambda: [machine.clock()]),
        ("needs", lambda: needs_checks(facts, needs) if needs else ()),
    )
    checks = [check for name, group in groups for check in _guarded(name, group)]
    mps, answer = mps_answer(facts)
    blocked = mps == "not-usable" or any(one.state == "problem" for one in checks)
    return DoctorReport(
        machine=_machine(facts),
        python=f"{facts.text('python.version') or 'unknown'} in {python}",
        mps=mps,
        answer=answer,
        causes=tuple(causes(facts, variables)),
        checks=tuple(checks),
        bundle=needs.bundle if needs else "",
        exit_status=EXIT_BLOCKED
        if blocked
        else EXIT_NOTHING_BLOCKS
        if mps == "usable"
        else EXIT_NOT_TESTED,
    )


def _guarded(
    name: str, group: Callable[[], Iterable[DoctorCheck]]
) -> Iterator[DoctorCheck]:
    try:
        yield from group()
    except Exception as error:  # noqa: BLE001 -- a reporter that crashes helps nobody
        got = f"the probe failed: {type(error).__name__}: {error}"
        yield DoctorCheck(group=name, name=name, state="unknown", got=got)


def _machine(facts: Facts) -> str:
    names = ("os.name", "os.version", "os.build", "machine.architecture")
    parts = [facts.text(name) for name in names]
    model = facts.text("machine.chip") or facts.text("cpu.model")
    return " ".join(part for part in (*parts, model) if part) or "unknown"
