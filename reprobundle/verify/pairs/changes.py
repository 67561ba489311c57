"""What was done differently in two runs, and along which axis."""

from __future__ import annotations

from collections.abc import Iterator

from reprobundle.format.difference_report import Axis, Change
from reprobundle.format.findings import EnvironmentDifference
from reprobundle.format.record import FileRead, Record
from reprobundle.verify.devices import device_of
from reprobundle.verify.environment import NOT_RECORDED, compare_environments
from reprobundle.verify.pairs.arguments import changed_arguments
from reprobundle.verify.pairs.axes import ASKED, axis_of

_INPUTS = ("inputs/", "external/")


def _axis_of_difference(found: EnvironmentDifference) -> Axis:
    """Return the axis of a difference; what one side did not record shows none.

    What a replay asked for is told only where it was asked.
    """
    unknown = NOT_RECORDED in (found.reference, found.replay)
    if unknown and not found.name.startswith(ASKED[0]):
        return "other"
    return axis_of(found.name)


def find_changes(left: Record, right: Record) -> Iterator[Change]:
    """Yield everything that two runs did not do alike, in the order of the record."""
    yield from _code(left, right)
    yield from _command(left, right)
    yield from _data(left, right)
    yield from _seeds(left, right)
    yield from _devices(left, right)
    other_device = device_of(left) != device_of(right)
    for found in compare_environments(left, right):
        if not _follows(found.name, left, right, other_device=other_device):
            yield Change(
                axis=_axis_of_difference(found),
                name=found.name,
                left=found.reference,
                right=found.replay,
            )


def _follows(name: str, left: Record, right: Record, *, other_device: bool) -> bool:
    """Whether a fact differs only because of another change.

    Draws differ because of what differs. Facts of a GPU are known only to the run that
    used it: two runs on one machine, one on its GPU, differ in the device alone.
    """
    if name.startswith("randomness."):
        return True
    facts = [record.environment.get(name) for record in (left, right)]
    known = [fact is not None and not fact.unknown for fact in facts]
    of_device = name.startswith(("torch.cuda", "torch.cudnn", "torch.mps", "gpu."))
    return other_device and of_device and known != [True, True]


def _code(left: Record, right: Record) -> Iterator[Change]:
    ours, theirs = _by_path(left, code=True), _by_path(right, code=True)
    differing = [path for path in ours if ours[path] != theirs.get(path, ours[path])]
    for path in differing:
        yield Change(
            axis="code", name=path, left=ours[path][:12], right=theirs[path][:12]
        )
    if (
        left.files_digest != right.files_digest
        and not differing
        and not list(_data(left, right))
    ):
        yield Change(
            axis="code",
            name="project files",
            left=left.files_digest[:12],
            right=right.files_digest[:12],
        )


def _data(left: Record, right: Record) -> Iterator[Change]:
    ours, theirs = _by_path(left, code=False), _by_path(right, code=False)
    for path in dict.fromkeys([*ours, *theirs]):
        if ours.get(path) != theirs.get(path):
            yield Change(
                axis="data",
                name=path,
                left=ours.get(path, "not read")[:12],
                right=theirs.get(path, "not read")[:12],
            )


def _by_path(record: Record, *, code: bool) -> dict[str, str]:
    sources = {f"project:{source}" for source in record.sources}
    return {
        read.path: read.blake3
        for read in record.reads
        if read.blake3 and _is_code(read, sources) == code
    }


def _is_code(read: FileRead, sources: set[str]) -> bool:
    if read.path in sources:
        return True
    return not read.member.startswith(_INPUTS) and read.path.startswith("project:")


def _command(left: Record, right: Record) -> Iterator[Change]:
    ours, theirs = left.command, right.command
    yield from changed_arguments(ours.argv, theirs.argv)
    if ours.working_directory != theirs.working_directory:
        yield Change(
            axis="command",
            name="working directory",
            left=ours.working_directory,
            right=theirs.working_directory,
        )


def _seeds(left: Record, right: Record) -> Iterator[Change]:
    if left.randomness.seed != right.randomness.seed:
        yield Change(
            axis="seed",
            name="--seed",
            left=str(left.randomness.seed),
            right=str(right.randomness.seed),
        )
    ours, theirs = _calls(left), _calls(right)
    if ours != theirs:
        # Another command or script that sets other seeds is one change, not two.
        alike = left.command.argv == right.command.argv and not any(_code(left, right))
        yield Change(
            axis="seed" if alike else "other",
            name="seed calls",
            left=", ".join(ours[:3]) or "none",
            right=", ".join(theirs[:3]) or "none",
        )


def _calls(record: Record) -> list[str]:
    main = {process.pid for process in record.processes if process.kind == "main"}
    return [
        f"{call.function}({call.value})"
        for call in record.randomness.calls
        if call.pid in main
    ]


def _devices(left: Record, right: Record) -> Iterator[Change]:
    ours, theirs = device_of(left), device_of(right)
    if ours != theirs:
        yield Change(axis="device", name="device", left=ours, right=theirs)
    if left.devices.fallback != right.devices.fallback and ours == theirs:
        yield Change(
            axis="fallback",
            name="CPU fallback",
            left=left.devices.fallback,
            right=right.devices.fallback,
        )
