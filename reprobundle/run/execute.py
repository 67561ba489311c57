"""One pass of a command: fresh scratch folder, fresh session, fresh process."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reprobundle.format.policy import Metric, RoleRule
from reprobundle.format.record import Command, Fact, WithheldFile
from reprobundle.run.accessed import Places
from reprobundle.run.asked import NOTHING, Asked
from reprobundle.run.command import run_environment, runnable_argv
from reprobundle.run.device_facts import DeviceMapping
from reprobundle.run.finished import OUTPUT_LIMIT_BYTES, FinishedRun, PassName
from reprobundle.run.launch import NATIVE, Draws, Launched, launch, make_session
from reprobundle.run.own_words import own_words
from reprobundle.run.project import Stage, changed_files, make_scratch, snapshot


@dataclass(frozen=True)
class PassPlan:
    """What one pass needs.

    Attributes:
        stage: Pristine files.
        names: Which of them the pass starts from.
        staged: Digest of each file that the bundle holds, by name.
        members: Member of the bundle for each of those files.
        withheld: Those that the bundle holds by digest only.
        command: As recorded.
        python: The interpreter to run with.
        base_environment: Variables of the machine.
        device: ``as-is`` or a device type.
        pass_name: As in the run record.
        original: The original project at pack, None at replay.
        ignored: Folders that are machinery, never inputs: environments, caches.
        metrics: Numbers to read from the standard output.
        roles: What outputs are for.
        extra_facts: Facts the launcher knows.
        forced: Variables that hold whatever was recorded.
        echo: Copy what the command prints to our standard error.
        draws: How random draws are made.
        mapping: As in `reprobundle.format.record.Devices`.
        placed: Path of a file outside the project, as arguments name it → where the
            same file lies here.
        asked: What the run is asked to do otherwise.
    """

    stage: Stage
    names: list[str]
    staged: Mapping[str, str]
    members: Mapping[str, str]
    command: Command
    python: Path
    base_environment: Mapping[str, str]
    withheld: tuple[WithheldFile, ...] = ()
    device: str = "as-is"
    pass_name: PassName = "measured"
    original: Path | None = None
    ignored: tuple[Path, ...] = ()
    metrics: tuple[Metric, ...] = ()
    roles: tuple[RoleRule, ...] = ()
    extra_facts: Mapping[str, Fact] = field(default_factory=dict)
    forced: Mapping[str, str] = field(default_factory=dict)
    echo: bool = False
    output_limit_bytes: int = OUTPUT_LIMIT_BYTES
    draws: Draws = NATIVE
    mapping: DeviceMapping = ""
    placed: Mapping[str, str] = field(default_factory=dict)
    asked: Asked = NOTHING


def execute(plan: PassPlan, folder: Path) -> FinishedRun:
    """Run the command once in new folders below `folder`.

    Raises:
        BadCallError: The command cannot be started.
    """
    scratch = new_scratch(plan, folder)
    before = snapshot(scratch)
    launched = launch_in(plan, folder / "session", scratch)
    return finished(plan, folder, scratch, before=before, launched=launched)


def new_scratch(plan: PassPlan, folder: Path) -> Path:
    """Make the folder in which the command runs, and return it resolved."""
    scratch = folder / "project"
    make_scratch(plan.stage, plan.names, scratch)
    (folder / "work").mkdir()
    return scratch.resolve()


def launch_in(
    plan: PassPlan,
    session_folder: Path,
    scratch: Path,
    *,
    argv: tuple[str, ...] = (),
    pass_name: PassName | None = None,
) -> Launched:
    """Run a command to its end in `scratch`.

    Args:
        plan: Of the pass.
        session_folder: New folder for the session.
        scratch: From `new_scratch`.
        argv: As recorded; the plan's command by default.
        pass_name: What the recorder is told; the plan's by default.

    Raises:
        BadCallError: The command cannot be started.
    """
    session = make_session(
        session_folder,
        scratch,
        seed=plan.command.seed,
        device=plan.device,
        pass_name=pass_name or plan.pass_name,
        draws=plan.draws,
        mapping=plan.mapping,
        switches=plan.asked.of_recorder,
    )
    return launch(
        runnable_argv(
            plan.asked.applied(argv or plan.command.argv),
            scratch,
            plan.python,
            device=plan.device,
            words=own_words(plan.command.placeholders),
            placed=plan.placed,
        ),
        session=session,
        working_directory=scratch / plan.command.working_directory,
        environment=run_environment(
            plan.base_environment,
            plan.command.environment,
            scratch=scratch,
            python=plan.python,
            device=plan.device,
        )
        | plan.asked.told
        | dict(plan.forced),
        echo=plan.echo,
    )


def finished(
    plan: PassPlan,
    folder: Path,
    scratch: Path,
    *,
    before: dict[str, tuple[int, int]],
    launched: Launched,
) -> FinishedRun:
    """Return what is known after the command ended.

    Args:
        plan: Of the pass.
        folder: Holds the folders of the run.
        scratch: From `new_scratch`.
        before: Snapshot of it before anything ran.
        launched: From `launch_in`.
    """
    return FinishedRun(
        launched=launched,
        places=Places(
            scratch=scratch,
            original=plan.original,
            ignored=(folder.resolve(), *plan.ignored),
            placed=frozenset(Path(path).resolve() for path in plan.placed.values()),
        ),
        staged=plan.staged,
        members=plan.members,
        withheld=plan.withheld,
        changed=changed_files(scratch, before),
        command=plan.command,
        python=plan.python,
        work=folder / "work",
        device=plan.device,
        mapping=plan.mapping,
        pass_name=plan.pass_name,
        metrics=plan.metrics,
        roles=plan.roles,
        hide=_hidden(scratch, plan.original, folder),
        extra_facts={**plan.extra_facts, **plan.asked.facts()},
        inherited=frozenset(plan.base_environment),
        output_limit_bytes=plan.output_limit_bytes,
    )


def _hidden(
    scratch: Path, original: Path | None, folder: Path
) -> list[tuple[str, str]]:
    """Return what no recorded text may show: scratch paths and the home folder."""
    pairs = [(str(scratch), "{project}")]
    if original is not None:
        pairs.append((str(original), "{project}"))
    pairs.append((str(folder.resolve()), "{run}"))
    pairs.append((str(Path.home()), "~"))
    pairs.append((str(Path(tempfile.gettempdir()).resolve()), "{tmp}"))
    return [pair for pair in pairs if pair[0] not in {"/", ""}]
