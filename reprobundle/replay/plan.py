"""What a replay would do, told before anything foreign runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import msgspec

from reprobundle.errors import BadCallError, MissingMemberError
from reprobundle.format.canonical import decode
from reprobundle.format.lock import LOCK_MEMBER, PYLOCK_MEMBER, Lock
from reprobundle.format.manifest import STAND_INS
from reprobundle.format.policy import Policy
from reprobundle.format.reader import Bundle
from reprobundle.format.record import STAND_IN, Fact, Record, WithheldFile
from reprobundle.run.conda import CONDA_MEMBER
from reprobundle.run.finished import PassName
from reprobundle.run.outside import as_withheld, external, other_names
from reprobundle.run.own_words import also_for
from reprobundle.run.system_packages import PACKAGES
from reprobundle.run.withheld import supplied

Document = TypeVar("Document")

_RULES: dict[type, str] = {Policy: "R-7.1", Record: "R-7.2", Lock: "R-7.3"}

RECORD_LIMIT_BYTES = 64 << 20


@dataclass(frozen=True)
class PlannedRun:
    """One sealed run that is to be repeated here.

    Attributes:
        number: Its number in the bundle.
        record: Its record.
        pass_name: The pass to make of it.
        resume: For the restart pass, the command that resumes; empty for the same.
        turn: The how manieth measured pass of its command it is.
    """

    number: int
    record: Record
    pass_name: PassName = "measured"
    resume: tuple[str, ...] = ()
    turn: int = 1


@dataclass(frozen=True)
class ReplayPlan:
    """What a replay of a bundle would run and need.

    Attributes:
        bundle: Bundle id.
        runs: The sealed runs to repeat, in order.
        policy, lock: As sealed.
        pylock: The lock for all targets, if the bundle holds one.
        conda: The explicit list of the reference's environment, if conda made it.
        names: Member → path below the scratch folder, of every project and input file.
        samples: Name of a withheld file → member with the sample in its place.
        withheld: Files that the planned runs need and the bundle does not hold.
        data: Name of a withheld file → the caller's copy of it.
        externals: Origin of a file outside the project → the caller's copy of it.
        files_bytes: Size of these files.
        expected_ns: What the sealed runs took, added up.
        peak_bytes: Largest resident size among them, 0 if unknown.
        skipped: Claims that will not be run.
    """

    bundle: str
    runs: tuple[PlannedRun, ...]
    policy: Policy
    lock: Lock
    pylock: bytes | None
    conda: bytes | None
    names: dict[str, str]
    samples: dict[str, str]
    withheld: tuple[WithheldFile, ...]
    data: dict[str, Path]
    externals: dict[str, Path]
    files_bytes: int
    expected_ns: int
    peak_bytes: int
    skipped: tuple[str, ...]

    @property
    def system_packages(self) -> Fact | None:
        """The system's packages whose libraries the reference had loaded."""
        return self.runs[0].record.environment.get(PACKAGES) if self.runs else None


def make_plan(
    bundle: Bundle,
    *,
    passes: tuple[str, ...],
    repeats: int = 1,
    claims: tuple[str, ...],
    data: tuple[str, ...] = (),
) -> ReplayPlan:
    """Return the plan for replaying `bundle`.

    Args:
        bundle: An open bundle whose digests have been checked.
        passes: Which passes to make: ``measured``, ``repeat``, ``evidence``. The
            repeat passes are those that the author made; the evidence pass is made of
            every command that loaded torch.
        repeats: How often to make the measured pass of every command; on samples in
            the place of data it is made once.
        claims: Names of the claims to run; empty for all.
        data: ``PATH=FILE`` or ``FOLDER``: the caller's own copies of withheld files and
            of files outside the project.

    Raises:
        BadCallError: A claim does not exist, or `data` names nothing withheld.
        DocumentError: A document in the bundle breaks its schema.
    """
    sealed = sealed_runs(bundle)
    known = {run.record.claim for run in sealed}
    for name in claims:
        if name not in known:
            raise BadCallError(
                f"this bundle has no claim {name!r}, it has {', '.join(sorted(known))}",
                advice="name one of these, or leave out --claims",
            )
    withheld = {one.name: one for run in sealed for one in run.record.withheld}
    outside = tuple(read for run in sealed for read in external(run.record))
    given = supplied(
        data,
        (*withheld.values(), *as_withheld(one for one in outside if not one.member)),
        also_called=other_names(outside),
    )
    copies = {name: path for name, path in given.items() if name in withheld}
    # A sample in the place of a result is there to be read, nothing runs on it.
    samples = {
        name: f"{STAND_INS}{name}"
        for name in sorted(withheld)
        if f"{STAND_INS}{name}" in bundle.members
    }
    at_hand = [name for name, path in copies.items() if path.is_file()]
    feasible = claims or _feasible(known, samples, at_hand)
    of_claims = [run for run in sealed if run.record.claim in feasible]
    wanted = tuple(_wanted(of_claims, passes, repeats))
    needed = {one.name for run in wanted for one in run.record.withheld}
    members = [m for m in bundle.members.values() if m.role in {"project", "input"}]
    peaks = [run.record.memory.peak_rss_bytes.value for run in wanted]
    return ReplayPlan(
        bundle=bundle.id,
        runs=wanted,
        policy=read_document(bundle, "policy.json", Policy),
        lock=read_document(bundle, LOCK_MEMBER, Lock),
        pylock=_optional(bundle, PYLOCK_MEMBER),
        conda=_optional(bundle, CONDA_MEMBER),
        names={member.path: member.path.partition("/")[2] for member in members},
        samples=samples,
        withheld=tuple(withheld[name] for name in sorted(needed)),
        data=copies,
        externals={name: path for name, path in given.items() if name not in withheld},
        files_bytes=sum(member.size_bytes for member in members)
        + sum(withheld[name].size_bytes for name in needed),
        expected_ns=sum(run.record.elapsed_ns for run in wanted),
        peak_bytes=max((peak for peak in peaks if isinstance(peak, int)), default=0),
        skipped=tuple(sorted(known - {run.record.claim for run in wanted})),
    )


def _wanted(
    sealed: Sequence[PlannedRun], passes: tuple[str, ...], repeats: int
) -> Iterator[PlannedRun]:
    """Yield the runs to make: measured passes first, traced ones last."""
    # The run on a further device is the same command; verify chooses between them.
    measured = [
        run
        for run in sealed
        if run.record.pass_name == "measured" and run.record.role != "counterpart"
    ]
    yield from measured
    for turn in range(2, repeats + 1):
        yield from (
            replace(run, turn=turn) for run in measured if run.record.claim != STAND_IN
        )
    if "repeat" in passes:
        yield from (run for run in sealed if run.record.role == "repeat")
    if "evidence" in passes:
        for run in measured:
            if run.record.loaded_torch:
                yield PlannedRun(run.number, run.record, "evidence")
    if "restart" in passes:
        yield from _restarts(sealed)


def _restarts(sealed: Sequence[PlannedRun]) -> Iterator[PlannedRun]:
    """Yield the main command, to be resumed as its author did.

    Raises:
        BadCallError: The main command is not among the runs to make.
    """
    if not any(run.record.role == "reference" for run in sealed):
        raise BadCallError(
            "the restart check needs the main command, which is not among the chosen "
            "claims",
            advice="leave out --claim and --smoke, or --restart-check",
        )
    made = [run.record for run in sealed if run.record.restart is not None]
    resume = made[0].restart.command if made and made[0].restart else ()
    words = made[0].command.placeholders if made else ()
    for run in sealed:
        if run.record.role == "reference":
            command = also_for(run.record.command, words)
            record = msgspec.structs.replace(run.record, command=command)
            yield PlannedRun(run.number, record, "restart", resume)


def _optional(bundle: Bundle, path: str) -> bytes | None:
    is_here = path in bundle.members and path not in bundle.absent
    return bundle.read(path) if is_here else None


def _feasible(
    claims: Collection[str], samples: Collection[str], copies: Collection[str]
) -> Collection[str]:
    """Return the claims that make sense with the data that are here.

    Samples serve those who do not hold the data; who does has no use for them.
    """
    if not samples:
        return claims
    if set(samples) <= set(copies):
        return [name for name in claims if name != STAND_IN]
    return [STAND_IN]


def sealed_runs(bundle: Bundle) -> tuple[PlannedRun, ...]:
    """Return the sealed runs of `bundle` in the order of their numbers."""
    numbers = sorted(
        int(path.split("/")[1])
        for path in bundle.members
        if path.startswith("runs/") and path.endswith("/record.json")
    )
    records = (
        read_document(bundle, f"runs/{number}/record.json", Record)
        for number in numbers
    )
    return tuple(
        PlannedRun(number, record, record.pass_name)
        for number, record in zip(numbers, records, strict=True)
    )


def read_document(bundle: Bundle, path: str, kind: type[Document]) -> Document:
    """Return a sealed JSON document as its type.

    Raises:
        MissingMemberError: It is not in the bundle.
        DocumentError: It breaks its schema.
    """
    if path not in bundle.members:
        raise MissingMemberError(
            "the bundle does not hold it", rule="R-7.4", where=path
        )
    data = bundle.read(path, limit_bytes=RECORD_LIMIT_BYTES)
    return decode(data, kind, where=path, rule=_RULES[kind])
