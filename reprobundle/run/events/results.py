"""Values, warnings, errors, cells and the end."""

from reprobundle.run.events.base import Event


class Value(Event, frozen=True, tag="value"):
    """The script recorded a value.

    ``file`` lies in ``<session>/values/``: ``.safetensors`` for tensors and arrays
    (one tensor named ``value``), ``.json`` for everything else.
    """

    name: str
    file: str


class WarningEvent(Event, frozen=True, tag="warning"):
    """Python issued a warning; sent once for each text and place."""

    category: str
    message: str
    where: str


class Error(Event, frozen=True, tag="error"):
    """An exception ended the process."""

    type: str
    message: str
    where: str
    traceback: str
    steps: int


class Cell(Event, frozen=True, tag="cell"):
    """A notebook kernel is about to run a cell.

    `number` is the kernel's execution count, `file` the name its code is compiled
    under, `source` the text of the cell.
    """

    number: int
    file: str
    source: str


class CellError(Event, frozen=True, tag="cell-error"):
    """An exception ended a cell; the kernel goes on. Fields as in `Error`."""

    number: int
    type: str
    message: str
    where: str
    traceback: str
    steps: int


class Stopped(Event, frozen=True, tag="stopped"):
    """The recorder is about to stop the run: after this checkpoint and this step."""

    checkpoint: str
    steps: int


class Trouble(Event, frozen=True, tag="trouble"):
    """A part of the recorder failed; the run went on without it."""

    part: str
    message: str


class End(Event, frozen=True, tag="end"):
    """The process ended by itself.

    ``sources`` are the absolute paths of all modules imported from below the project.
    """

    exit_status: int | None
    sources: tuple[str, ...]
