"""Run any verifier over the vectors and say where it disagrees.

usage: python -m tests.conformance.runner [--vectors FOLDER] -- COMMAND...

The command is called as ``COMMAND... verify --json ARGUMENTS FILE``. The exit status of
the runner is 0 only if the set is whole and every answer is the one it demands. It
needs the standard library alone.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "tests" / "vectors"
SPEC = ROOT / "spec.md"
AREAS = (
    "container",
    "names",
    "manifest",
    "documents",
    "integrity",
    "completeness",
    "verdict",
)
RESULTS = ("valid", "warning", "invalid")
TIMEOUT_S = 60

# A rule or a check in the tables of spec.md: `| R-4.2 | …`, `| V4 digests | …`.
_REQUIREMENT = re.compile(r"^\| (R-\d+\.\d+|V\d+)\b", re.MULTILINE)


class SuiteError(Exception):
    """The set of vectors, or the command, cannot be used at all."""


@dataclass(frozen=True)
class Vector:
    """One entry of ``index.json``; the fields are those of its objects.

    Attributes:
        id: Its folder.
        area: First part of the id.
        file: The bundle to verify.
        arguments: Further arguments of ``verify``.
        requirement: What it is about, a rule or check of spec.md.
        result: ``valid``, ``warning`` or ``invalid``.
        exit_status: What the tool must exit with.
        verdict: What it must say.
        comment: One sentence about it.
    """

    id: str
    area: str
    file: str
    arguments: tuple[str, ...]
    requirement: str
    result: str
    exit_status: int
    verdict: str
    comment: str


class Suite(NamedTuple):
    """All vectors, and the requirements that have none, with the reason."""

    folder: Path
    vectors: tuple[Vector, ...]
    not_by_vector: dict[str, str]


class Answer(NamedTuple):
    """What a tool said about one vector; a verdict that is missing is empty."""

    exit_status: int | None
    verdict: str

    def __str__(self) -> str:
        """Return both in the form of the table."""
        status = "no end" if self.exit_status is None else self.exit_status
        return f"{self.verdict or 'no verdict'} ({status})"


def read_suite(folder: Path = VECTORS) -> Suite:
    """Return the vectors of `folder`.

    Raises:
        SuiteError: There is no index, or an entry of it states no whole expectation.
    """
    try:
        document = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        vectors = tuple(_vector(entry) for entry in document["vectors"])
        listed = {
            entry["requirement"]: entry["reason"] for entry in document["not_by_vector"]
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{folder / 'index.json'} cannot be used: {error!r}"
        raise SuiteError(message) from error
    return Suite(folder, vectors, listed)


def _vector(entry: dict[str, Any]) -> Vector:
    names = {field.name for field in fields(Vector)}
    lacking = sorted(names - entry.keys())
    if lacking:
        message = f"{entry.get('id', 'a vector')} states no {', '.join(lacking)}"
        raise SuiteError(message)
    known = {name: entry[name] for name in names}
    vector = Vector(**{**known, "arguments": tuple(entry["arguments"])})
    if type(vector.exit_status) is not int or not vector.verdict:
        message = f"{vector.id} has no expectation"
        raise SuiteError(message)
    return vector


def requirements(spec: Path = SPEC) -> list[str]:
    """Return the numbers of all rules and checks of spec.md.

    Raises:
        SuiteError: It states none.
    """
    found = _REQUIREMENT.findall(spec.read_text(encoding="utf-8"))
    if not found:
        message = f"{spec} states no requirement"
        raise SuiteError(message)
    return found


def problems(suite: Suite, required: Sequence[str]) -> Iterator[str]:
    """Yield why the set proves less than it should."""
    yield from _gaps(suite, required)
    identities = [vector.id for vector in suite.vectors]
    for name in sorted({name for name in identities if identities.count(name) > 1}):
        yield f"{name} is listed twice"
    for vector in suite.vectors:
        yield from _about(vector, suite.folder)
    for area in AREAS:
        for path in sorted((suite.folder / area).glob("*")):
            name = f"{area}/{path.name}"
            if path.is_dir() and name not in identities:
                yield f"{name} has no expectation in the index"


def _gaps(suite: Suite, required: Sequence[str]) -> Iterator[str]:
    for area in AREAS:
        if not any(vector.area == area for vector in suite.vectors):
            yield f"the area {area} has no vector"
    covered = {vector.requirement for vector in suite.vectors}
    for number in required:
        if number not in covered and number not in suite.not_by_vector:
            yield f"{number} has no vector, and no reason why not"
    for number in sorted((covered | suite.not_by_vector.keys()) - set(required)):
        yield f"{number} is no requirement of spec.md"


def _about(vector: Vector, folder: Path) -> Iterator[str]:
    if vector.id.partition("/")[0] != vector.area or vector.area not in AREAS:
        yield f"{vector.id} lies in no area"
    if vector.result not in RESULTS:
        yield f"{vector.id} has the result {vector.result!r}"
    if not (folder / vector.id).is_dir():
        yield f"{vector.id} has no folder"
    for name in (vector.file, *filter(_is_file, vector.arguments)):
        if not (folder / name).is_file():
            yield f"{vector.id} needs {name}, which is missing"


def _is_file(argument: str) -> bool:
    return argument.endswith(".zip")


def call(vector: Vector, folder: Path) -> list[str]:
    """Return the arguments with which a tool is called for `vector`."""
    arguments = [
        str(folder / argument) if _is_file(argument) else argument
        for argument in vector.arguments
    ]
    return ["verify", "--json", *arguments, str(folder / vector.file)]


def verdict_of(output: str | bytes) -> str:
    """Return the field ``verdict`` of what a tool printed; empty if there is none."""
    try:
        document = json.loads(output)
    except ValueError:
        return ""
    verdict = document.get("verdict", "") if isinstance(document, dict) else ""
    return verdict if isinstance(verdict, str) else ""


def ask(command: Sequence[str], vector: Vector, folder: Path) -> Answer:
    """Return what `command` says about `vector`.

    Raises:
        SuiteError: The command cannot be started.
    """
    try:
        done = subprocess.run(
            [*command, *call(vector, folder)],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Answer(None, "")
    except OSError as error:
        message = f"cannot run {command[0]}: {error}"
        raise SuiteError(message) from error
    return Answer(done.returncode, verdict_of(done.stdout))


def expected(vector: Vector) -> Answer:
    """Return what a tool must say about `vector`."""
    return Answer(vector.exit_status, vector.verdict)


def run(command: Sequence[str], suite: Suite) -> int:
    """Print one line for each vector, and return how many answers are wrong."""
    wrong = 0
    width = max(len(vector.id) for vector in suite.vectors)
    for vector in suite.vectors:
        want, got = expected(vector), ask(command, vector, suite.folder)
        wrong += got != want
        end = f"{want}" if got == want else f"{want}, but it says {got}"
        mark = "ok   " if got == want else "WRONG"
        _say(f"{mark} {vector.requirement:6} {vector.id:{width}} {end}")
    return wrong


def main(arguments: list[str]) -> int:
    """Run the command behind ``--`` over the vectors and return 0 if all agree."""
    options, command = _split(arguments)
    if not command or options[:1] not in ([], ["--vectors"]) or len(options) > 2:
        _say(str(__doc__).strip())
        return 2
    try:
        suite = read_suite(Path(options[1]) if options else VECTORS)
        found = list(problems(suite, requirements()))
        wrong = 0 if found else run(command, suite)
    except SuiteError as error:
        _say(f"PROBLEM {error}")
        return 1
    for problem in found:
        _say(f"PROBLEM {problem}")
    if found:
        _say("the set of vectors is not whole, so nothing was run")
        return 1
    total = len(suite.vectors)
    _say(f"{total - wrong} of {total} vectors agree")
    return 1 if wrong else 0


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    place = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:place], arguments[place + 1 :]


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
