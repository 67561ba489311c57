"""What to say when a pass did not end as it should, and what to do next."""

from __future__ import annotations

from pathlib import Path

from reprobundle.errors import CommandFailedError, PackRefusedError
from reprobundle.run.finished import FinishedRun
from reprobundle.run.secrets.scan import redacted


def judge_exit(
    run: FinishedRun, *, expected: bool, python: Path, project: Path, held: set[str]
) -> None:
    """Refuse a first pass that did not end as the call says.

    Args:
        run: The first pass.
        expected: Whether failing is the result.
        python: Interpreter it ran with.
        project: Top of the author's project.
        held: Names of the files that its copy holds.

    Raises:
        CommandFailedError: It failed, and that was not expected.
        PackRefusedError: It was interrupted, or did not fail as expected.
    """
    launched = run.launched
    if launched.interrupted:
        raise PackRefusedError("interrupted; no bundle was written")
    if launched.exit_status != 0 and not expected:
        raise CommandFailedError(
            f"the command ended with status {launched.exit_status}: {last_line(run)}",
            status=launched.exit_status,
            advice=_failure_advice(run, python, project, held),
        )
    if launched.exit_status == 0 and expected:
        raise PackRefusedError(
            "the command was expected to fail but ended with status 0",
            advice="leave out --expect-failure",
        )


def _failure_advice(
    run: FinishedRun, python: Path, project: Path, held: set[str]
) -> str:
    """Return the likeliest remedy for a failed first pass."""
    text = run.launched.session.stderr.read_text(errors="replace")
    if "ModuleNotFoundError" in text:
        return f"it ran with {python}; activate the environment that it needs"
    if "FileNotFoundError" in text or "No such file" in text:
        return _missing_advice(text, str(run.places.scratch), project, held)
    return "nothing was written; if failing is the result, add --expect-failure"


def _missing_advice(text: str, scratch: str, root: Path, held: set[str]) -> str:
    """Return what to do about a file that the copy of the project lacks."""
    for line in reversed(text.splitlines()):
        for word in line.replace('"', "'").split("'"):
            name = word.removeprefix(f"{scratch}/").removeprefix("./")
            if not name or name in held or name.startswith("/") or "\0" in name:
                continue
            if (root / name).exists():
                return f"{name} exists but git ignores it: add --input {name}"
            folder = Path(name).parent
            if folder.name and "No such file" in line and (root / folder).is_dir():
                return (
                    f"folder {folder} holds nothing that git keeps, so the copy "
                    "has none: have the command make it"
                )
    return "a file of that name is neither in the project nor among --input"


def last_line(run: FinishedRun) -> str:
    """Return the last words of a run on stderr, without what looks like a secret."""
    lines = run.launched.session.stderr.read_text(errors="replace").split("\n")
    last = next(
        (line.strip() for line in reversed(lines) if line.strip()), "no message"
    )
    return redacted(last)
