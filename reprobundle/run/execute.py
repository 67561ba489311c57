"""One pass of a command: fresh scratch folder, fresh session, fresh process."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reprobundle.format.policy import Metric
from reprobundle.format.record import Command, Fact, WithheldFile
from reprobundle.run.accessed import Places
from reprobundle.run.assemble import OUTPUT_LIMIT_BYTES, FinishedRun, PassName
from reprobundle.run.command import run_environment, runnable_argv
from reprobundle.run.launch import launch, make_session
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
        extra_facts: Facts the launcher knows.
        echo: Copy what the command prints to our standard error.
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
    extra_facts: Mapping[str, Fact] = field(default_factory=dict)
    echo: bool = False
    output_limit_bytes: int = OUTPUT_LIMIT_BYTES


def execute(plan: PassPlan, folder: Path) -> FinishedRun:
    """Run the command once in new folders below `folder`.

    Raises:
        BadCallError: The command cannot be started.
    """
    scratch = folder / "project"
    make_scratch(plan.stage, plan.names, scratch)
    scratch = scratch.resolve()
    session = make_session(
        folder / "session",
        scratch,
        seed=plan.command.seed,
        device=plan.device,
        pass_name=plan.pass_name,
    )
    work = folder / "work"
    work.mkdir()
    before = snapshot(scratch)
    launched = launch(
        runnable_argv(plan.command.argv, scratch, plan.python, device=plan.device),
        session=session,
        working_directory=scratch / plan.command.working_directory,
        environment=run_environment(
            plan.base_environment,
            plan.command.environment,
            scratch=scratch,
            python=plan.python,
            device=plan.device,
        ),
        echo=plan.echo,
    )
    return FinishedRun(
        launched=launched,
        places=Places(
            scratch=scratch,
            original=plan.original,
            ignored=(folder.resolve(), *plan.ignored),
        ),
        staged=plan.staged,
        members=plan.members,
        withheld=plan.withheld,
        changed=changed_files(scratch, before),
        command=plan.command,
        python=plan.python,
        work=work,
        device=plan.device,
        pass_name=plan.pass_name,
        metrics=plan.metrics,
        hide=_hidden(scratch, plan.original, folder),
        extra_facts=plan.extra_facts,
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
