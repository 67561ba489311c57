"""Read the cells of a notebook: one program, whose cells share their names."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from reprobundle.format.scan_report import NotRead, ScanFinding
from reprobundle.port.scan.python_code import PythonRead, scan_python
from reprobundle.port.scan.sources import Source

# Magics of a whole cell: what follows is Python all the same, a shell script, or
# neither and run by nothing here.
_OF_PYTHON = frozenset({"capture", "prun", "time", "timeit", "python", "python3"})
_OF_SHELL = frozenset({"bash", "sh", "zsh", "!", "script", "system", "sx"})
_OF_TEXT = frozenset({"html", "javascript", "js", "latex", "markdown", "svg"})
_CELL_MAGIC = re.compile(r"\s*%%(!|\w+)(?:[ \t]+(?:-\S+\s+)*(\S+))?")
_LINE_MAGIC = re.compile(r"^(\s*)(?:[!?]|%(?=[A-Za-z])).*|^(\s*)[\w.]+\?{1,2}\s*$")
_ASSIGNED_MAGIC = re.compile(r"^(\s*[\w, ]+=\s*)(?:!|%(?=[A-Za-z])).*")
_LINE_NAMED = re.compile(r"^(after|try,) line (\d+)$")


class _Cell(NamedTuple):
    """What a cell holds.

    Attributes:
        python: Its Python, line by line as in the cell.
        shell: Its shell, likewise.
        file: A file that it writes, whose text it then is.
    """

    python: str = ""
    shell: str = ""
    file: str = ""


class NotebookRead(NamedTuple):
    """What was read in a notebook.

    Attributes:
        python: Of all cells together.
        scripts: Shell lines of each cell.
        files: Texts that cells write to files.
        not_read: Cells that are no Python.
    """

    python: PythonRead
    scripts: Sequence[Source]
    files: Sequence[Source]
    not_read: Sequence[NotRead]


def scan_notebook(cells: Sequence[Source]) -> NotebookRead:
    """Return what the code cells of one notebook ask of CUDA.

    Args:
        cells: In their order.
    """
    path = cells[0].path
    places: list[tuple[int, int]] = []
    lines: list[str] = []
    scripts, files, not_read = [], [], []
    for source in cells:
        cell = _split(source.text)
        if cell.file:
            named = f"{path}, cell {source.cell}/{cell.file}"
            files.append(Source(named, cell.python))
            continue
        scripts.append(source._replace(text=cell.shell))
        if reason := _no_python(cell.python):
            not_read.append(
                NotRead(path=f"{path}, cell {source.cell}", reason=reason, matters=True)
            )
            continue
        mine = cell.python.splitlines()
        lines += mine
        places += [(source.cell, number) for number in range(1, len(mine) + 1)]
    read = scan_python(Source(path, "\n".join(lines)))
    return NotebookRead(_placed(read, places), scripts, files, not_read)


def _no_python(text: str) -> str:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"no Python 3 that can be parsed: {type(error).__name__}"
    return ""


def _split(text: str) -> _Cell:
    """Tell Python from shell; lines stay where they are."""
    lines = text.splitlines()
    first = next((n for n, line in enumerate(lines) if line.strip()), 0)
    magic = _CELL_MAGIC.match(lines[first]) if lines else None
    if magic is None:
        return _by_line(lines)
    rest = ["" if n <= first else line for n, line in enumerate(lines)]
    if magic[1] in _OF_PYTHON:
        return _by_line(rest)
    if magic[1] in _OF_SHELL:
        return _Cell(shell="\n".join(rest))
    if magic[1] in {"writefile", "file"} and magic[2]:
        return _Cell(python="\n".join(rest), file=magic[2])
    return _Cell() if magic[1] in _OF_TEXT else _Cell(python=text)


def _by_line(lines: Sequence[str]) -> _Cell:
    python, shell = [], []
    for line in lines:
        given = _ASSIGNED_MAGIC.match(line)
        alone = _LINE_MAGIC.match(line)
        command = line[len(given[1]) :] if given else line if alone else ""
        shell.append(command.lstrip("!% ") if command else "")
        if given:
            line = f"{given[1]}None"
        elif alone:
            # A block of a condition may hold nothing else.
            line = f"{alone[1] or alone[2] or ''}pass"
        python.append(line)
    return _Cell("\n".join(python), "\n".join(shell))


def _placed(read: PythonRead, places: Sequence[tuple[int, int]]) -> PythonRead:
    """Return the same with cells and their lines in the place of lines."""

    def words(line: int) -> str:
        cell, own = places[line - 1]
        return f"cell {cell}:{own}"

    def found(one: ScanFinding) -> ScanFinding:
        cell, own = places[one.line - 1]
        named = _LINE_NAMED.match(one.because)
        because = f"{named[1]} {words(int(named[2]))}" if named else one.because
        return msgspec.structs.replace(one, cell=cell, line=own, because=because)

    def place(text: str) -> str:
        path, _, line = text.rpartition(":")
        return f"{path}, {words(int(line))}"

    return read._replace(
        findings=[found(one) for one in read.findings],
        imports=[one._replace(place=place(one.place)) for one in read.imports],
        waiting=[one._replace(found=found(one.found)) for one in read.waiting],
        calls=[one._replace(place=place(one.place)) for one in read.calls],
    )
