"""What one vector is: the files that are judged, and the answer that spec.md demands.

The answers in the tables of cases are read out of spec.md by a person. Nothing here or
in the tables comes from the code under test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Result = Literal["valid", "warning", "invalid"]

BUNDLE = "bundle.rpb.zip"
REPLAY = "replay.rpr.zip"
INTEGRITY = ("--integrity",)

# spec.md, section 8.2.
EXIT_STATUS: Mapping[str, int] = {
    "REPRODUCED, bit-identical": 0,
    "REPRODUCED, within tolerance": 0,
    "REPRODUCED WITH WARNINGS": 12,
    "NOT REPRODUCED": 10,
    "DIFFERENT FAILURE": 10,
    "PARTIAL": 11,
    "INCOMPLETE": 11,
    "NOT DECIDABLE HERE": 11,
    "NOT RUN HERE": 11,
    "INTACT, NOT YET REPLAYED": 11,
    "INTACT": 0,
    "TAMPERED": 21,
    "UNREADABLE": 21,
}


@dataclass(frozen=True)
class Case:
    """One vector.

    Attributes:
        area: Folder below ``tests/vectors/``.
        name: What is special about it, in snake case.
        requirement: Rule (``R-4.2``) or check (``V17``) of spec.md that it is about.
        result: ``valid`` if the requirement is kept, ``warning`` if the check warns,
            ``invalid`` if it is broken.
        verdict: A word of spec.md, section 8.2.
        comment: One or two sentences for a reader.
        make: Returns the bytes of its bundle, or of its replay file; None if it has
            no file of its own.
        arguments: Further arguments of ``verify``.
        bundle: Id of the vector whose bundle is verified, if it is not the vector's
            own.
    """

    area: str
    name: str
    requirement: str
    result: Result
    verdict: str
    comment: str
    make: Callable[[], bytes] | None
    arguments: tuple[str, ...] = INTEGRITY
    bundle: str = ""

    @property
    def id(self) -> str:
        """Folder of the vector below ``tests/vectors/``."""
        ending = "_fail" if self.result == "invalid" else ""
        return f"{self.area}/{self.name}{ending}"

    @property
    def exit_status(self) -> int:
        """The status that spec.md gives with the verdict."""
        return EXIT_STATUS[self.verdict]

    @property
    def own_file(self) -> str:
        """What `make` gives, relative to ``tests/vectors/``."""
        return f"{self.id}/{REPLAY if self.bundle else BUNDLE}"

    @property
    def file(self) -> str:
        """The bundle that is verified, relative to ``tests/vectors/``."""
        return f"{self.bundle or self.id}/{BUNDLE}"

    @property
    def all_arguments(self) -> tuple[str, ...]:
        """All arguments of ``verify`` but ``--json`` and the bundle."""
        alone = self.bundle and self.make is not None
        return (*self.arguments, *(("--replay-file", self.own_file) if alone else ()))
