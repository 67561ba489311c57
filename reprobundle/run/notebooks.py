"""Give the code of notebook cells names that a reader finds again.

A kernel compiles each cell under a made-up file name with its process id in it. Here
the cells it ran are matched, by their text and order, with the cells of a notebook
that the run read or wrote, and their places become ``analysis.ipynb, cell 3:2``: the
second line of the notebook's third cell, counted from one, text cells included.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from reprobundle.run.events import Cell, EventFile

LARGEST_NOTEBOOK_BYTES = 64 << 20


def cell_places(
    files: tuple[EventFile, ...], scratch: Path, names: Iterable[str]
) -> list[tuple[str, str]]:
    """Return pairs of a cell's file name and the place that stands for it.

    Args:
        files: Events of all processes.
        scratch: Where the run happened.
        names: Notebooks that the run may have executed, relative to `scratch`;
            earlier ones count more.
    """
    kernels = [[e for e in file.events if isinstance(e, Cell)] for file in files]
    if not any(kernels):
        return []
    notebooks = [
        (name, cells) for name in names if (cells := _code_cells(scratch / name))
    ]
    pairs = []
    for ran in filter(None, kernels):
        pairs += _places(ran, notebooks)
    return pairs


def _places(
    cells: list[Cell], notebooks: list[tuple[str, list[tuple[int, str]]]]
) -> list[tuple[str, str]]:
    """Return the places of one kernel's cells in the notebook that fits best."""
    name, found = "", dict[int, int]()
    for candidate, sources in notebooks:
        matched = _matched(cells, sources)
        if len(matched) > len(found):
            name, found = candidate, matched
    return [
        (
            cell.file,
            f"{{project}}/{name}, cell {found[index]}"
            if index in found
            else f"{{notebook}}, In[{cell.number}]",
        )
        for index, cell in enumerate(cells)
    ]


def _matched(cells: list[Cell], sources: list[tuple[int, str]]) -> dict[int, int]:
    """Return index of a run cell → number of its notebook cell, in one order."""
    found: dict[int, int] = {}
    start = 0
    for index, cell in enumerate(cells):
        for place in range(start, len(sources)):
            number, source = sources[place]
            if source.strip() == cell.source.strip():
                found[index] = number
                start = place + 1
                break
    return found


def _code_cells(path: Path) -> list[tuple[int, str]]:
    """Return number and text of each code cell; nothing if it is no notebook."""
    try:
        if path.stat().st_size > LARGEST_NOTEBOOK_BYTES:
            return []
        cells = json.loads(path.read_bytes())["cells"]
        return [
            (number, _text(cell["source"]))
            for number, cell in enumerate(cells, start=1)
            if cell["cell_type"] == "code"
        ]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def _text(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)
