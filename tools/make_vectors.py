"""Write the test vectors of format 1.0 from the tables of cases.

usage: python -m tools.make_vectors          write tests/vectors/
       python -m tools.make_vectors --check  fail if a byte of it would change

The bytes come from the standard library and BLAKE3 alone, and are the same on every
machine. The expected answers stand in ``tests/conformance/*_cases.py``, by hand.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.conformance import (
    container_cases,
    content_cases,
    manifest_cases,
    sealed_cases,
    verdict_cases,
)
from tests.conformance.case import Case

VECTORS = Path(__file__).parents[1] / "tests" / "vectors"

CASES: tuple[Case, ...] = (
    *container_cases.CASES,
    *manifest_cases.CASES,
    *sealed_cases.CASES,
    *verdict_cases.CASES,
    *content_cases.CASES,
)

PROTOCOL = (
    "Run `<tool> verify --json ARGUMENTS FILE` for each vector. The tool answers with "
    "its exit status and with one JSON object on standard output, whose field "
    "`verdict` is a word of section 8.2 of spec.md. Both must be those of the vector. "
    "FILE, and every argument that ends in .zip, is relative to this folder."
)

NOT_BY_VECTOR: dict[str, str] = {
    "R-4.3": "That ZIP64 is read where it is needed takes a file of more than 4 GiB or "
    "of 65,535 entries; that it is refused where it is not needed has a vector.",
    "R-4.4": "A directory that really holds more than 200,000 records has 10 MB; that "
    "the stated number is refused has a vector.",
    "R-4.29": "It is about a change that is cut off, and the journal beside the file.",
    "R-4.30": "It is about how much a reader gives out at once, not about a file.",
    "R-4.31": "It is about what a caller asks for, not about a file.",
    "R-4.32": "It is about the journal beside a file.",
    "R-4.34": "A bundle with 1,001 replays has 2 MB.",
    "R-4.40": "It is about a text, and a vector is a file.",
    "R-4.42": "It is about two files together.",
    "R-6.1": "A document is stored as it is, so one above the limit has 64 MiB.",
    "R-6.8": "A manifest of more than 100,000 members has 20 MB; that too many bytes "
    "are refused has a vector.",
    "V1": "Its parts are R-4.1 to R-4.14, each with its vectors.",
    "V2": "Its parts are R-6.1 to R-6.12, each with its vectors.",
    "V3": "Its parts are R-5.1 to R-5.9 and R-4.15 to R-4.18, each with its vectors.",
    "V10": "The acceptance list takes nothing from any verdict.",
}


def _vector(case: Case) -> dict[str, object]:
    return {
        "id": case.id,
        "area": case.area,
        "file": case.file,
        "arguments": list(case.all_arguments),
        "requirement": case.requirement,
        "result": case.result,
        "exit_status": case.exit_status,
        "verdict": case.verdict,
        "comment": case.comment,
    }


def index(cases: Iterable[Case]) -> bytes:
    """Return ``index.json``: every case with the answer it demands."""
    reasons = [
        {"requirement": requirement, "reason": reason}
        for requirement, reason in NOT_BY_VECTOR.items()
    ]
    parts = {
        "format": _text("1.0"),
        "protocol": _text(PROTOCOL),
        "vectors": _lines(map(_vector, cases)),
        "not_by_vector": _lines(reasons),
    }
    body = ",\n".join(f' "{name}": {part}' for name, part in parts.items())
    return f"{{\n{body}\n}}\n".encode()


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _lines(values: Iterable[Mapping[str, object]]) -> str:
    """Return a list with each object on a line of its own: changes show as lines."""
    return "[\n  " + ",\n  ".join(map(_text, values)) + "\n ]"


def readme(case: Case) -> bytes:
    """Return the ``README.md`` of a case."""
    answer = f"{case.verdict} (exit status {case.exit_status})"
    return f"{case.comment} {case.requirement}: {answer}.\n".encode()


def made(cases: Iterable[Case]) -> dict[str, bytes]:
    """Return every file of ``tests/vectors/`` by its path below it."""
    files = {"index.json": index(cases)}
    for case in cases:
        files[f"{case.id}/README.md"] = readme(case)
        if case.make is not None:
            files[case.own_file] = case.make()
    return files


def differing(files: dict[str, bytes], folder: Path) -> list[str]:
    """Return the paths below `folder` that are missing, additional or other bytes."""
    there = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    return sorted(
        name
        for name in files.keys() | there.keys()
        if files.get(name) != there.get(name)
    )


def write(files: dict[str, bytes], folder: Path) -> None:
    """Replace everything in `folder` by `files`."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def main(arguments: list[str], folder: Path = VECTORS) -> int:
    """Write or check the vectors."""
    files = made(CASES)
    if arguments == ["--check"]:
        names = differing(files, folder)
        sys.stderr.writelines(f"{name} would change\n" for name in names)
        return 1 if names else 0
    write(files, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
