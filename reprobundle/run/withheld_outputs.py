"""Outputs whose content stays with its author: what a record keeps of them.

Size and digest stay, so that a replay with the same bytes is known to be the same. A
replay keeps of such an output what the reference keeps of it, and no more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

import msgspec

from reprobundle.format.record import Output, Record
from reprobundle.run.finished import Assembled


@dataclasses.dataclass(frozen=True)
class WithheldOutputs:
    """Which outputs are withheld, and whether their summaries are let out.

    Attributes:
        names: Outputs, folders of outputs, or members of a record, such as
            ``out/risk.csv``, ``out``, ``record:weights``, ``outputs/out/risk.csv``.
        keep_summaries: Keep shapes, counts and moments of arrays, and numbers of rows.
    """

    names: frozenset[str] = frozenset()
    keep_summaries: bool = False

    def holds(self, output: Output) -> bool:
        """Whether the content of `output` stays out."""
        return any(_is_named(name, output) for name in self.names)

    def unmatched(self, outputs: Iterable[Output]) -> list[str]:
        """Return the names that stand for none of `outputs`."""
        known = tuple(outputs)
        return [
            name
            for name in sorted(self.names)
            if not any(_is_named(name, output) for output in known)
        ]

    def applied(self, run: Assembled) -> Assembled:
        """Return `run` without the content of what is withheld."""
        return _without(
            run, withheld=self.holds, keeps_summary=lambda _: self.keep_summaries
        )


NONE = WithheldOutputs()


def _is_named(name: str, output: Output) -> bool:
    return name in (output.name, output.member) or output.name.startswith(f"{name}/")


def as_in_reference(run: Assembled, reference: Record) -> Assembled:
    """Return `run` without the content of the outputs that `reference` withholds.

    Args:
        run: A replay with its whole content.
        reference: The sealed record that it stands against.
    """
    known = {output.name for output in reference.outputs}
    withheld = {
        output.name: bool(output.arrays) or output.rows is not None
        for output in reference.outputs
        if output.stored == "withheld"
    }
    folders = {_folder(name) for name in withheld} - {"."}

    def stays_here(output: Output) -> bool:
        # What the reference does not know, beside what it withholds, is no more public.
        is_new = output.name not in known
        return output.name in withheld or (is_new and _folder(output.name) in folders)

    return _without(
        run,
        withheld=stays_here,
        keeps_summary=lambda output: withheld.get(output.name, False),
    )


def _folder(name: str) -> str:
    return PurePosixPath(name).parent.as_posix()


def _without(
    run: Assembled,
    *,
    withheld: Callable[[Output], bool],
    keeps_summary: Callable[[Output], bool],
) -> Assembled:
    content: dict[str, Path] = dict(run.content)
    dropped: set[str] = set()
    outputs = []
    for output in run.record.outputs:
        if not withheld(output):
            outputs.append(output)
            continue
        dropped |= {output.member, output.arrays_member}
        content.pop(output.member, None)
        content.pop(output.arrays_member, None)
        kept = keeps_summary(output)
        outputs.append(
            msgspec.structs.replace(
                output,
                stored="withheld",
                member="",
                sample_key="",
                arrays_member="",
                arrays=output.arrays if kept else (),
                rows=output.rows if kept else None,
            )
        )
    record = msgspec.structs.replace(
        run.record,
        outputs=tuple(outputs),
        members=tuple(
            one
            for one in run.record.members
            if one.name in content or (one.sealed and one.name not in dropped)
        ),
    )
    return dataclasses.replace(run, record=record, content=content)
