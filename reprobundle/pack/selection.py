"""What the bundle will hold, as the first pass shows it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from reprobundle.format.record import FileRead, WithheldFile
from reprobundle.pack.contents import Contents, choose, externals
from reprobundle.pack.options import PackOptions
from reprobundle.pack.preparation import Prepared
from reprobundle.pack.withholding import Withholding
from reprobundle.run.accessed import accesses
from reprobundle.run.events import read_events
from reprobundle.run.finished import FinishedRun
from reprobundle.run.project import digest_stage, placed_in


@dataclasses.dataclass(frozen=True, kw_only=True)
class Selected:
    """What the bundle will hold of the project and of files from elsewhere.

    Attributes:
        contents: Files of the project, with their members.
        externals: Files from outside the project, by absolute path.
        digests: Staged name → BLAKE3, of what is held and of what is kept by digest.
        withheld: Files kept by digest only.
        withholding: What stays here, told apart into files and results.
    """

    contents: Contents = dataclasses.field(default_factory=Contents)
    externals: Mapping[Path, FileRead] = dataclasses.field(default_factory=dict)
    digests: Mapping[str, str] = dataclasses.field(default_factory=dict)
    withheld: tuple[WithheldFile, ...] = ()
    withholding: Withholding = dataclasses.field(default_factory=Withholding)

    @property
    def names(self) -> list[str]:
        """Every file that a later pass starts from."""
        return sorted(self.digests)


def select(options: PackOptions, prepared: Prepared, run: FinishedRun) -> Selected:
    """Decide from the first pass what the bundle holds.

    Raises:
        PackRefusedError: A file vanished after it was read, or none may be read
            outside the project.
        BadCallError: ``--pin`` names nothing that was read.
    """
    access = accesses(read_events(run.launched.session.events), run.places)
    stage = prepared.stage
    withholding = prepared.withholding.seen(read=access.read, wrote=run.changed)
    declared = prepared.declared(options)
    named = {
        name
        for path, is_inside in declared
        if is_inside
        for name in _names_below(path, prepared)
    }
    contents = withholding.applied(choose(stage, access.read, named))
    outside = {path.resolve() for path, is_inside in declared if not is_inside}
    digests = digest_stage(stage, sorted({*contents.members, *withholding.hashed}))
    return Selected(
        contents=contents,
        externals=externals(
            access.read_outside | outside,
            pinned=[options.working_directory / path for path in options.pinned],
            choice=options.external,
            opened_as=access.opened_as,
        ),
        digests=digests,
        withheld=withholding.files(stage, digests),
        withholding=withholding,
    )


def _names_below(path: Path, prepared: Prepared) -> list[str]:
    root = prepared.project.root
    top = (placed_in(root, path) or path.resolve()).relative_to(root).as_posix()
    return [
        name
        for name in prepared.stage.names
        if top == "." or name == top or name.startswith(f"{top}/")
    ]
