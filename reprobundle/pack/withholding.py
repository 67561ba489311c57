"""Which files of the project and results of the run stay out of the bundle, and how.

*Excluded* files are simply not there: the repeat pass shows whether the command needs
them. *Hashed* files stay in the record by size and digest; who holds them can replay.
A *stand-in* is a sample in the place of a hashed file, with which everybody can run
the command, though not get the result. Only the run shows which of the names are its
results; in the place of one, a sample shows a reader the form and nothing runs on it.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reprobundle.errors import BadCallError, PackRefusedError
from reprobundle.format.manifest import STAND_INS
from reprobundle.format.record import Output, Remark, WithheldFile
from reprobundle.format.writer import Source
from reprobundle.pack.contents import Contents
from reprobundle.pack.options import PackOptions
from reprobundle.run.project import Stage
from reprobundle.run.withheld_outputs import NONE, WithheldOutputs

# The one member beside the copies of files that can be left out by its name.
GIT_DIFF = "lock/git.diff"
# What an output is called that is no file of the project.
_NOT_FILES = "record:"
_PRINTED = "metric:"
MOST_NAMED = 5


@dataclass(frozen=True)
class Withholding:
    """The project's files that the bundle does not hold.

    Attributes:
        excluded: Names of files that are left out; among them may be the member with
            git's difference.
        hashed: Names of files kept by digest only.
        stand_ins: Hashed file → the sample that takes its place.
        results: Outputs kept by digest only.
        of_results: Output → the sample that shows its form.
        old_results: Files that the run wrote anew without reading them: what lay there
            before is no part of it.
    """

    excluded: frozenset[str] = frozenset()
    hashed: frozenset[str] = frozenset()
    stand_ins: Mapping[str, Path] = field(default_factory=dict)
    results: WithheldOutputs = NONE
    of_results: Mapping[str, Path] = field(default_factory=dict)
    old_results: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """Every file whose content stays out."""
        return self.excluded | self.hashed | self.old_results

    def seen(self, *, read: Collection[str], wrote: Collection[str]) -> Withholding:
        """Return the same, once a run has shown which files are its results.

        Args:
            read: Names of files that it read.
            wrote: Names of files that it wrote.
        """
        old = self.hashed.intersection(wrote).difference(read)
        staged = self.hashed - old
        return dataclasses.replace(
            self,
            hashed=staged,
            old_results=self.old_results | old,
            stand_ins={n: s for n, s in self.stand_ins.items() if n in staged},
            of_results={n: s for n, s in self.stand_ins.items() if n in wrote},
        )

    def applied(self, contents: Contents) -> Contents:
        """Return `contents` without what is withheld."""
        return dataclasses.replace(
            contents,
            members={
                name: member
                for name, member in contents.members.items()
                if name not in self.names
            },
            left_out=[name for name in contents.left_out if name not in self.names],
        )

    def files(
        self, stage: Stage, digests: Mapping[str, str]
    ) -> tuple[WithheldFile, ...]:
        """Return what the record states about the hashed files.

        Args:
            stage: Where they lie.
            digests: Their digests by name.
        """
        return tuple(
            WithheldFile(
                name=name,
                size_bytes=stage.path(name).stat().st_size,
                blake3=digests[name],
            )
            for name in sorted(self.hashed)
        )

    def sources(self) -> Iterator[Source]:
        """Yield the samples as members of the bundle."""
        for name, sample in {**self.of_results, **self.stand_ins}.items():
            yield Source(f"{STAND_INS}{name}", "stand-in", sample)


def withholding(
    options: PackOptions, stage: Stage, *, root: Path, samples: Mapping[str, Path]
) -> Withholding:
    """Return what the options withhold of the staged files.

    Args:
        options: The call.
        stage: Has the files.
        root: Top of the project.
        samples: From `stand_in_samples`.

    Raises:
        BadCallError: A path names nothing in the project, or is withheld in two ways.
    """
    folder = options.working_directory
    excluded = set(
        _named(options.exclude, stage, root=root, folder=folder, option="--exclude")
    )
    hashed = {
        name
        for path in options.hash_only
        for name in _below(project_name(folder / path, root), stage)
    }
    staged_samples = {name for name in samples if name in stage.names}
    twice = excluded & {*hashed, *samples}
    if twice:
        raise BadCallError(
            f"{min(twice)!r} is both excluded and kept by digest",
            advice="choose one of --exclude, --hash-only and --stand-in",
        )
    return Withholding(
        excluded=frozenset(excluded),
        hashed=frozenset({*hashed, *staged_samples}),
        stand_ins=samples,
        results=WithheldOutputs(
            names=frozenset({*_result_names(options, root), *samples}),
            keep_summaries=options.keep_summaries,
        ),
    )


def _result_names(options: PackOptions, root: Path) -> Iterator[str]:
    """Yield what the values of ``--hash-only`` may mean among the outputs.

    Raises:
        BadCallError: One names a number that the command prints.
    """
    for path in options.hash_only:
        text = path.as_posix()
        if text.startswith(_PRINTED):
            raise BadCallError(
                f"--hash-only {text!r}: the number stands in what the command prints, "
                "and that is kept whole",
                advice="have the command write it to a file instead of printing it",
            )
        is_value = text.startswith(_NOT_FILES)
        inside = project_name(options.working_directory / path, root)
        yield text if is_value or not inside else inside


def stand_in_samples(
    texts: Iterable[str], *, root: Path, folder: Path, keep: Path
) -> dict[str, Path]:
    """Return hashed file → a copy of its sample, from ``PATH=SAMPLE``.

    Args:
        texts: The values of ``--stand-in``.
        root: Top of the project.
        folder: Where the command runs; relative paths start there.
        keep: A folder for the copies, so that all passes see the same bytes.

    Raises:
        BadCallError: A value has not that form, or one of both files does not exist.
    """
    samples = {}
    for text in texts:
        path, sample = _stand_in(text, root=root, folder=folder)
        if not sample.is_file():
            raise BadCallError(f"--stand-in {text!r}: {str(sample)!r} is no file")
        if path.exists() and sample.samefile(path):
            raise BadCallError(
                f"--stand-in {text!r}: a file cannot stand in for itself",
                advice="give another file that holds a sample of the same form",
            )
        name = project_name(path, root)
        samples[name] = keep / name
        samples[name].parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(sample, samples[name])
    return samples


def _stand_in(text: str, *, root: Path, folder: Path) -> tuple[Path, Path]:
    """Return both sides: a file of the project first, else what the run may write."""
    parts = text.split("=")
    ways = [
        (folder / "=".join(parts[:count]), folder / "=".join(parts[count:]))
        for count in range(1, len(parts))
    ]
    inside = [way for way in ways if project_name(way[0], root)]
    for path, sample in inside:
        if path.is_file() or (sample.is_file() and not path.exists()):
            return path, sample
    raise BadCallError(
        f"--stand-in {text!r} is not of the form PATH=SAMPLE with a file of the "
        "project or an output as PATH, and a file as SAMPLE",
        advice="for example --stand-in data/patients.csv=data/sample.csv",
    )


def _named(
    paths: Iterable[Path], stage: Stage, *, root: Path, folder: Path, option: str
) -> Iterator[str]:
    """Yield the staged files that the paths of an option name, folders included.

    Args:
        paths: As given, relative to `folder`.
        stage: Has the files.
        root: Top of the project.
        folder: Where the command runs.
        option: For the message.

    Raises:
        BadCallError: A path names nothing in the project.
    """
    for path in paths:
        if option == "--exclude" and path.as_posix() == GIT_DIFF:
            yield GIT_DIFF
            continue
        found = _below(project_name(folder / path, root), stage)
        if not found:
            raise BadCallError(
                f"{option} {str(path)!r} names no file of the project",
                advice="give a path inside the project that git does not ignore",
            )
        yield from found


def _below(name: str, stage: Stage) -> list[str]:
    """Return the staged files that the name of a file or folder stands for."""
    return [
        staged
        for staged in stage.names
        if name == "." or staged == name or staged.startswith(f"{name}/")
    ]


def project_name(path: Path, root: Path) -> str:
    """Return the name of `path` below `root`; empty if it lies elsewhere.

    A link is named by itself, not by what it points to.
    """
    real = path.resolve() if path.is_dir() else path.parent.resolve() / path.name
    return real.relative_to(root).as_posix() if real.is_relative_to(root) else ""


def excluded_remarks(names: Iterable[str], *, repeats: bool) -> Iterator[Remark]:
    """Yield a remark for each excluded file that the measured pass read.

    Args:
        names: The excluded files it read.
        repeats: Whether the repeat pass shows what the command does without them.
    """
    for name in sorted(names):
        yield Remark(
            id="excluded-file-read",
            severity="gap" if repeats else "warning",
            where=name,
            text="the run read this file, which its author excluded from the bundle; "
            + (
                "the repeat pass ran without it"
                if repeats
                else "no repeat pass shows whether it needs it"
            ),
        )


def refuse_unknown(
    withheld: Withholding, outputs: Iterable[Output], call: PackOptions
) -> None:
    """Refuse a name that stands neither for a file of the project nor for an output.

    Args:
        withheld: What a run has shown of it.
        outputs: What the run produced.
        call: For the message.

    Raises:
        BadCallError: There is such a name.
    """
    known = tuple(outputs)
    for name in withheld.results.unmatched(known):
        staged = withheld.hashed | withheld.old_results
        if any(one == name or one.startswith(f"{name}/") for one in staged):
            continue
        option = "--hash-only" if call.hash_only else "--stand-in"
        produced = ", ".join(output.name for output in known[:MOST_NAMED]) or "none"
        raise BadCallError(
            f"{option} {name!r} names no file of the project and no output of the run",
            advice=f"its outputs are {produced}; what it prints is kept whole",
        )


def refuse_kept_batches(withheld: Withholding, call: PackOptions) -> None:
    """Refuse to keep first batches that are made of withheld data.

    Args:
        withheld: What a run has shown of it.
        call: Says whether draws are kept.

    Raises:
        BadCallError: They would be kept.
    """
    if call.rng == "recorded" and withheld.hashed:
        kept = min(withheld.hashed)
        raise BadCallError(
            f"--rng recorded keeps first weights and batches, and {kept}, of which "
            "they may be made, is to be kept by digest only",
            advice="use --rng portable",
        )


def refuse_copies(
    withheld: Iterable[WithheldFile], digests: Iterable[tuple[str, str]]
) -> None:
    """Refuse to write the content of a hashed file under another name.

    Args:
        withheld: The hashed files.
        digests: What the bundle would hold: place and digest.

    Raises:
        PackRefusedError: One of them has the same content.
    """
    known = {one.blake3: one.name for one in withheld if one.size_bytes}
    for place, digest in digests:
        if digest in known:
            raise PackRefusedError(
                f"{place} has the same content as {known[digest]}, which is to be "
                "kept by digest only",
                advice=f"exclude it too, or do not withhold {known[digest]}",
            )
