"""What each output is for: as the author states it, else as its form shows it.

A role is told, never guessed: a name such as ``predictions.npy`` proves nothing, so an
output whose form says nothing and of which nobody states anything has no role.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import NamedTuple

from reprobundle.format.policy import RoleRule
from reprobundle.format.record import OutputRole, RoleSource
from reprobundle.outputs.summary import Summary

_BY_FORMAT: dict[str, OutputRole] = {"checkpoint": "checkpoint", "notebook": "report"}
# Files that a program other than the script reads: a model to run, a figure to look at.
_BY_SUFFIX: dict[str, OutputRole] = {
    ".onnx": "export",
    ".pt2": "export",
    ".mlmodel": "export",
    ".tflite": "export",
    ".gguf": "export",
    ".png": "figure",
    ".jpg": "figure",
    ".jpeg": "figure",
    ".gif": "figure",
    ".svg": "figure",
    ".webp": "figure",
    ".tif": "figure",
    ".tiff": "figure",
}


class Role(NamedTuple):
    """A role, and how it is known."""

    role: OutputRole
    source: RoleSource


def role_of(name: str, summary: Summary, rules: Iterable[RoleRule]) -> Role:
    """Return the role of one output.

    Args:
        name: As in the record: a path, ``record:<name>`` or ``metric:<name>``.
        summary: What its content is.
        rules: What the author states; the first match wins.
    """
    for rule in rules:
        if fnmatchcase(name, rule.match):
            return Role(rule.role, "stated")
    if name.startswith("metric:") or _is_one_number(name, summary):
        return Role("metrics", "form")
    if summary.kind == "log":
        return Role("log", "form")
    suffix = PurePosixPath(name).suffix.lower()
    found = _BY_FORMAT.get(summary.format) or _BY_SUFFIX.get(suffix, "")
    return Role(found, "form" if found else "")


def _is_one_number(name: str, summary: Summary) -> bool:
    """Whether it is a recorded value without any axis."""
    return (
        name.startswith("record:")
        and len(summary.arrays) == 1
        and summary.arrays[0].shape == ()
    )
