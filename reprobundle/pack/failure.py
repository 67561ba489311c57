"""What to say when a pass did not end as it should, and what to do next."""

from __future__ import annotations

import signal
from pathlib import Path

from reprobundle.errors import CommandFailedError, PackRefusedError
from reprobundle.pack.without_cuda import cuda_advice, needs_cuda
from reprobundle.run.events import Error, read_events
from reprobundle.run.facts import events_of
from reprobundle.run.finished import Assembled, FinishedRun
from reprobundle.run.secrets.scan import redacted
from reprobundle.run.space import free_bytes

_FULL_BYTES = 1 << 20


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
            f"the command {_ended(launched.exit_status)}: {last_line(run)}",
            status=launched.exit_status,
            advice=_failure_advice(run, python, project, held),
        )
    if launched.exit_status == 0 and expected:
        raise PackRefusedError(
            "the command was expected to fail but ended with status 0",
            advice="leave out --expect-failure",
        )


def _ended(status: int) -> str:
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended with status {status}"


def _failure_advice(
    run: FinishedRun, python: Path, project: Path, held: set[str]
) -> str:
    """Return the likeliest remedy for a failed first pass."""
    folder = run.launched.session.folder
    if free_bytes(folder) < _FULL_BYTES:
        return f"the disk of {str(folder)!r} is full: free some space, or set TMPDIR"
    if needs_cuda(run):
        return cuda_advice(run)
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
                return _left_out_advice(root, name)
            folder = Path(name).parent
            if folder.name and "No such file" in line and (root / folder).is_dir():
                return (
                    f"folder {folder} holds nothing that git keeps, so the copy "
                    "has none: have the command make it"
                )
    return "a file of that name is neither in the project nor among --input"


def _left_out_advice(root: Path, name: str) -> str:
    """Return why a file of the project is not in its copy, and how it gets there."""
    link = next(
        (
            parent
            for parent in reversed(Path(name).parents)
            if (root / parent).is_symlink()
        ),
        None,
    )
    if link is not None:
        return f"the linked folder {link} was not copied: add --input {link}"
    return f"{name} exists but git ignores it: add --input {name}"


def nothing_to_compare(done: Assembled) -> PackRefusedError:
    """Return the refusal of a run without outputs, naming what it left elsewhere."""
    left = [
        f"{remark.where} (outside the project)"
        for remark in done.record.remarks
        if remark.id == "wrote-outside-project" and remark.where
    ] + [
        f"{remark.where} (no regular file)"
        for remark in done.record.remarks
        if remark.id == "left-aside"
    ]
    more = f" and {len(left) - 1} more" if len(left) > 1 else ""
    saw = f"; it left {left[0]}{more}" if left else ""
    return PackRefusedError(
        "nothing to compare: the command wrote no file in the project and recorded no "
        f"value{saw}",
        advice="write a result file there, or name a printed number with "
        "--metric NAME=REGEX",
    )


def last_line(run: FinishedRun) -> str:
    """Return the last words of a run on stderr, without what looks like a secret.

    A launcher of several processes closes with a ruler, and some errors of torch with a
    long list; then the first error that a process ended with is told.
    """
    lines = run.launched.session.stderr.read_text(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    events = events_of(read_events(run.launched.session.events), Error)
    first = min((event for _, event in events), key=lambda e: e.t_ns, default=None)
    if first is not None and last:
        is_ruler = not any(letter.isalnum() for letter in last)
        is_list = last in "\n".join(first.message.split("\n")[1:])
        last = f"{first.type}: {first.message}" if is_ruler or is_list else last
    return redacted(last.split("\n")[0][:400] or "no message")
