"""Write what the passes made into a bundle, within its budget and scanned."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

from reprobundle.errors import PackRefusedError, UnsafeNameError
from reprobundle.format.canonical import encode
from reprobundle.format.digests import digest_bytes, digest_file
from reprobundle.format.policy import Policy
from reprobundle.format.record import WithheldFile
from reprobundle.format.writer import SealedBundle, Source, write_bundle
from reprobundle.pack.options import PackOptions
from reprobundle.pack.preparation import Prepared
from reprobundle.pack.selection import Selected
from reprobundle.pack.sources import (
    external_sources,
    lock_sources,
    project_sources,
    run_sources,
)
from reprobundle.pack.withholding import refuse_copies
from reprobundle.run.budget import (
    Budget,
    kept_whole,
    not_whole,
    places_of_rows,
    within_budget,
)
from reprobundle.run.conda import explicit_list
from reprobundle.run.finished import Assembled
from reprobundle.run.secrets.gate import Gate
from reprobundle.run.space import require_space
from reprobundle.run.stand_ins import with_remarks

Say = Callable[[str], None]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sealing:
    """What is sealed, but for the runs.

    Attributes:
        options: The call.
        prepared: What the passes started from.
        selected: What the bundle holds of the project.
        policy: The tolerances, settled.
        folder: Where samples go.
        say: Takes one line about what happens now.
    """

    options: PackOptions
    prepared: Prepared
    selected: Selected
    policy: Policy
    folder: Path
    say: Say

    def write(
        self, runs: list[Assembled], progress: Callable[[int], None] | None
    ) -> SealedBundle:
        """Write the bundle file.

        Args:
            runs: In the order of their numbers; the first is the reference.
            progress: As in `write_bundle`.

        Raises:
            PackRefusedError: A file has a name that another system could not hold.
            SensitiveContentError: Something is not allowed.
        """
        sources = [*self._fixed_sources()]
        runs = self.cut_to_budget(runs)
        refuse_copies(
            [*self.selected.withheld, *_withheld_results(runs)],
            self._kept_digests(runs),
        )
        sources.extend(_admitted_runs(self.prepared.gate, sources, runs))
        size_bytes = sum(
            source.content.stat().st_size
            for source in sources
            if isinstance(source.content, Path)
        )
        require_space(self.options.output.parent, size_bytes, "the bundle")
        self.say("writing the bundle")
        try:
            return write_bundle(self.options.output, sources, progress=progress)
        except UnsafeNameError as error:
            raise PackRefusedError(
                str(error),
                advice="such a name cannot exist on every system: rename the file, or "
                "have git ignore it",
            ) from error

    def _fixed_sources(self) -> Iterator[Source]:
        """Yield every member but those of the runs."""
        prepared, selected = self.prepared, self.selected
        lock, pylock = prepared.resolved()
        yield from project_sources(prepared.stage, selected.contents)
        yield from selected.withholding.sources()
        yield from external_sources(selected.externals)
        yield from lock_sources(
            lock,
            prepared.project,
            pylock,
            explicit_list(Path(prepared.live.prefix)),
            withheld=selected.withholding.names,
        )
        yield Source("policy.json", "policy", encode(self.policy))

    def cut_to_budget(self, runs: list[Assembled]) -> list[Assembled]:
        """Return the runs with their outputs kept within the budget.

        This comes last: the places of samples follow from the frozen policy, and both
        passes have been compared in full before.
        """
        key = digest_bytes(encode(self.policy))
        done: list[Assembled] = []
        for number, run in enumerate(runs, start=1):
            folder = self.folder / f"samples{number}"
            folder.mkdir()
            first = done[0] if done else None
            budget = Budget(
                budget_bytes=self.options.output_budget_bytes,
                key=key,
                always=not_whole(first.record) if first else frozenset(),
                never=kept_whole(first.record) if first else frozenset(),
                places=places_of_rows(first.record) if first else {},
                sealed={
                    member.blake3: f"runs/1/{member.name}"
                    for member in (first.record.members if first else ())
                },
            )
            # What holds for the first run is told once.
            say = self.say if first is None else _silent
            done.append(within_budget(run, budget, folder, say=say))
        return done

    def _kept_digests(self, runs: list[Assembled]) -> Iterator[tuple[str, str]]:
        """Yield place and digest of what will be in the bundle."""
        for name in self.selected.contents.members:
            yield name, self.selected.digests[name]
        withholding = self.selected.withholding
        for name, sample in {**withholding.of_results, **withholding.stand_ins}.items():
            yield f"the stand-in for {name}", digest_file(sample)
        for run in runs:
            for output in run.record.outputs:
                if output.stored != "withheld":
                    yield f"output {output.name}", output.blake3


def _withheld_results(runs: list[Assembled]) -> Iterator[WithheldFile]:
    """Yield the results that stay here, of every run."""
    for run in runs:
        for output in run.record.outputs:
            if output.stored == "withheld":
                yield WithheldFile(
                    name=f"output {output.name}",
                    size_bytes=output.size_bytes,
                    blake3=output.blake3,
                )


def _admitted_runs(
    gate: Gate, others: list[Source], runs: list[Assembled]
) -> list[Source]:
    """Return the members of the runs, after a scan of all that will be sealed.

    Raises:
        SensitiveContentError: Something is not allowed.
    """
    first, *rest = runs
    gate.check_sources([*others, *run_sources(1, first)])
    runs = [with_remarks(first, gate.remarks()), *rest]
    sources = [
        source
        for number, run in enumerate(runs, start=1)
        for source in run_sources(number, run)
    ]
    gate.check_sources(
        source
        for source in sources
        if source.role == "record" or not source.path.startswith("runs/1/")
    )
    return sources


def _silent(line: str) -> None:
    del line
