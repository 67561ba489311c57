"""What a run produced: files it wrote, values it recorded, numbers it printed."""

from __future__ import annotations

import contextlib
import json
import math
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reprobundle.errors import PackRefusedError
from reprobundle.format.canonical import encode
from reprobundle.format.digests import digest_file
from reprobundle.format.policy import Metric, RoleRule
from reprobundle.format.record import Output
from reprobundle.outputs.cells import read_cell
from reprobundle.outputs.summary import summarise
from reprobundle.run.events import EventFile, Value
from reprobundle.run.facts import events_of
from reprobundle.run.launch import recorder_folder
from reprobundle.run.printed import find_all
from reprobundle.run.ranks import value_names
from reprobundle.run.roles import role_of

CHECKPOINT_SECONDS = 600


@dataclass
class Produced:
    """The outputs of a run and where their content lies on disk.

    Attributes:
        outputs: One entry for each output, sorted by name.
        content: Member name relative to the record → file.
        problems: What could not be read as the kind it seems to be: name → reason.
    """

    outputs: list[Output] = field(default_factory=list)
    content: dict[str, Path] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """One output before it is described: its name, its member and its file."""

    name: str
    member: str
    path: Path
    replaced_input: bool = False


def collect(
    found: list[Found],
    *,
    python: Path | None,
    work: Path,
    sealed: Mapping[str, str],
    limit_bytes: int,
    roles: tuple[RoleRule, ...] = (),
) -> Produced:
    """Describe every output and decide what is stored of it.

    Args:
        found: What the run left.
        python: The user's interpreter, which reads checkpoints; None if unknown.
        work: A folder for the tensors of checkpoints.
        sealed: Digest → sealed member of equal content, which is then not stored
            again; empty while the sealed part itself is made.
        limit_bytes: Largest output that may be stored.
        roles: What the author says that outputs are for.

    Raises:
        PackRefusedError: An output is larger than the limit, cannot be read, or still
            changes.
    """
    produced = Produced()
    tensors = _read_checkpoints(found, python=python, work=work, produced=produced)
    for item in sorted(found, key=lambda item: item.name):
        with _at_rest(item) as size_bytes:
            if size_bytes > limit_bytes:
                raise PackRefusedError(
                    f"output {item.name!r} has {size_bytes:,} bytes, the limit is "
                    f"{limit_bytes:,}",
                    advice="raise --output-limit, or write less",
                )
            _add(produced, item, size_bytes, tensors.get(item.name), sealed, roles)
    return produced


@contextlib.contextmanager
def _at_rest(item: Found) -> Iterator[int]:
    """Give the size of an output that nobody changes while the block reads it.

    Raises:
        PackRefusedError: It cannot be read, or it was another file afterwards.
    """
    try:
        before = item.path.stat()
        yield before.st_size
        after = item.path.stat()
    except OSError as error:
        raise PackRefusedError(
            f"output {item.name!r} cannot be read: {(error.strerror or '').lower()}",
            advice="have the command leave it readable, and in place when it ends",
        ) from error
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise PackRefusedError(
            f"output {item.name!r} was still being written after the command had ended",
            advice="have the command wait for the processes that it starts",
        )


def _add(
    produced: Produced,
    item: Found,
    size_bytes: int,
    tensors: Path | None,
    sealed: Mapping[str, str],
    roles: tuple[RoleRule, ...],
) -> None:
    digest = digest_file(item.path)
    described = summarise(item.name, item.path, tensors=tensors)
    if described.problem:
        produced.problems.setdefault(item.name, described.problem)
    role = role_of(item.name, described, roles)
    twin = sealed.get(digest, "")
    arrays_member = ""
    if tensors is not None:
        arrays_member = f"tensors/{item.member}.safetensors"
        produced.content[arrays_member] = tensors
    if not twin:
        produced.content[item.member] = item.path
    produced.outputs.append(
        Output(
            name=item.name,
            kind=described.kind,
            format=described.format,
            size_bytes=size_bytes,
            blake3=digest,
            stored="sealed" if twin else "here",
            member=twin or item.member,
            arrays_member=arrays_member,
            arrays=described.arrays,
            rows=described.rows,
            role=role.role,
            role_source=role.source,
            replaced_input=item.replaced_input,
        )
    )


def files_found(
    scratch: Path, names: tuple[str, ...], staged: frozenset[str], read: set[str]
) -> list[Found]:
    """Return the files a run wrote as outputs.

    Args:
        scratch: Where it ran.
        names: Files it created or changed.
        staged: Files that were there before it started.
        read: Files it read.
    """
    return [
        Found(
            name=name,
            member=f"outputs/{name}",
            path=scratch / name,
            replaced_input=name in staged and name in read,
        )
        for name in names
    ]


def values_found(files: tuple[EventFile, ...], values: Path) -> list[Found]:
    """Return the values that the script recorded, whose files are whole."""
    names = value_names(files)
    return [
        Found(
            name=f"record:{names[pid, event.name]}",
            member=f"values/{event.file}",
            path=values / event.file,
        )
        for pid, event in events_of(files, Value)
        if (values / event.file).is_file()
    ]


def metrics_found(
    metrics: tuple[Metric, ...], stdout: Path, work: Path
) -> tuple[list[Found], list[str]]:
    """Return the numbers that the command printed, and the metrics not found.

    Every match counts, in order: a metric printed once an epoch is a list. ``^`` and
    ``$`` stand at every line. A match whose first group took no part in it is none. A
    pattern that takes more than a minute finds nothing.
    """
    text = stdout.read_text(errors="replace")
    found, missing = [], []
    for metric in metrics:
        matches = find_all(metric.pattern, text)
        if not matches:
            missing.append(metric.name)
            continue
        path = work / f"metric.{metric.name}.json"
        path.write_bytes(encode([_parse(match) for match in matches]))
        found.append(
            Found(
                name=f"metric:{metric.name}",
                member=f"values/{path.name}",
                path=path,
            )
        )
    return found, missing


def _parse(text: str) -> int | float | str:
    """Return the number that `text` is; NaN, infinities and other texts as text.

    The same rule as for cells of a table decides what a number is: Python's own also
    takes ``1_000`` and the digits of any script.
    """
    cell = read_cell(text)
    if not cell.is_numeric:
        return text
    return cell.value if math.isfinite(cell.value) else str(cell.value)


def _read_checkpoints(
    found: list[Found], *, python: Path | None, work: Path, produced: Produced
) -> dict[str, Path]:
    """Have the user's own interpreter write the tensors of each checkpoint.

    Only that interpreter has the torch that wrote them, and it loads with
    ``weights_only``: nothing in a checkpoint is executed.
    """
    checkpoints = [
        item for item in found if item.path.suffix in {".pt", ".pth", ".ckpt"}
    ]
    if not checkpoints or python is None:
        return {}
    target = work / "tensors"
    target.mkdir(parents=True, exist_ok=True)
    reader = recorder_folder() / "checkpoint.py"
    try:
        done = subprocess.run(
            [
                str(python),
                str(reader),
                str(target),
                *(str(item.path) for item in checkpoints),
            ],
            capture_output=True,
            check=False,
            timeout=CHECKPOINT_SECONDS,
        )
        answers = [json.loads(line) for line in done.stdout.splitlines()]
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        produced.problems.update(
            {
                item.name: f"its tensors could not be read: {error}"
                for item in checkpoints
            }
        )
        return {}
    return _match_answers(checkpoints, answers, target, produced)


def _match_answers(
    checkpoints: list[Found],
    answers: list[dict[str, object]],
    folder: Path,
    produced: Produced,
) -> dict[str, Path]:
    by_file = {str(answer.get("file")): answer for answer in answers}
    tensors = {}
    for number, item in enumerate(checkpoints):
        answer = by_file.get(str(item.path), {"reason": "the reader gave no answer"})
        if answer.get("ok"):
            tensors[item.name] = folder / f"{number}.safetensors"
        else:
            produced.problems[item.name] = (
                f"its tensors were not read: {answer.get('reason')}"
            )
    return tensors
