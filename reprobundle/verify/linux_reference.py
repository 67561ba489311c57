"""Whether a Linux reference is here: the origin, or a record marked as one (V9).

A bundle packed on a Mac has no Linux reference until somebody runs it on Linux and
marks the record as such. The origin stays what every replay is compared with; the mark
meets this one demand and nothing else. It lies outside the seal, where anybody can
write, so everything in the record that can speak against it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from reprobundle.errors import BadCallError
from reprobundle.format.findings import Finding
from reprobundle.format.reader import (
    Bundle,
    ReplayFile,
    open_bundle,
    open_replay_file,
)
from reprobundle.format.record import Record
from reprobundle.verify.checks import finding
from reprobundle.verify.devices import contradiction, platform_label
from reprobundle.verify.ending import check_ending, is_finished
from reprobundle.verify.experiments import is_experiment
from reprobundle.verify.own_run import copied_from
from reprobundle.verify.protocol import sealed_counterpart
from reprobundle.verify.replays import read_replay
from reprobundle.verify.sealed import Sealed, read_sealed

_NOT_LINUX = ("macos", "darwin", "windows")


def check_linux_reference(sealed: Sealed, replays: Sequence[Record]) -> Finding:
    """Return whether the bundle has a Linux reference, and by whom.

    Args:
        sealed: The decoded documents.
        replays: Records of the attached replays whose integrity holds.
    """
    reference = sealed.reference
    if reference.platform == "linux":
        return finding("has-linux-reference", "pass", where="runs/1")
    marked = [record for record in replays if record.reference_by]
    refused = [(one, obstacle(one, sealed, replays)) for one in marked]
    for record, reason in refused:
        if not reason:
            note = (
                f"attached by {record.reference_by} (stated, not proven), made on "
                f"{platform_label(record)} at {record.started}; the origin on "
                f"{reference.platform} stays what replays are compared with"
            )
            return finding("has-linux-reference", "pass", note, got=record.reference_by)
    missing = f"the reference was made on {reference.platform}, and no record is marked"
    reason = f"{missing} as the Linux reference"
    if refused:
        record, why = refused[-1]
        reason = f"the record that {record.reference_by} marked is none: {why}"
    return finding(
        "has-linux-reference",
        "fail",
        reason,
        advice="replay it on Linux with --as-reference NAME",
    )


def obstacle(record: Record, sealed: Sealed, others: Sequence[Record]) -> str:
    """Return what keeps a marked record from being the Linux reference, or nothing.

    Args:
        record: An attached record whose integrity holds.
        sealed: The decoded documents.
        others: All attached records, this one among them.
    """
    return next(_obstacles(record, sealed, others), "")


def _obstacles(
    record: Record, sealed: Sealed, others: Sequence[Record]
) -> Iterator[str]:
    if is_experiment(record):
        yield "it is an experiment, asked to differ from the reference"
    yield from _another_run(record, sealed)
    yield from _elsewhere(record)
    yield from _not_its_end(record, sealed.reference)
    yield from _replaced(record)
    original = copied_from(record, sealed.runs, others)
    if original:
        yield f"it is a copy of {original}"


def _another_run(record: Record, sealed: Sealed) -> Iterator[str]:
    """Yield what it ran that the reference did not."""
    reference = sealed.reference
    counterpart, stands = sealed_counterpart(record, sealed.runs)
    if record.claim != reference.claim:
        yield f"it serves the claim {record.claim!r}, not {reference.claim!r}"
    if counterpart is not reference or record.pass_name != "measured":
        yield stands.reason or "it is no measured pass of the reference's command"
    if record.files_digest != reference.files_digest:
        yield "it started from other files"


def _not_its_end(record: Record, reference: Record) -> Iterator[str]:
    """Yield why it has no result."""
    if not is_finished(record):
        yield "it did not come to its end"
    for found in check_ending(reference, record):
        if found.outcome != "pass":
            yield found.reason
    if not any(process.entered for process in record.processes):
        yield "no process of it was observed"
    if reference.outputs and not record.outputs:
        yield "it has no outputs"


def _replaced(record: Record) -> Iterator[str]:
    """Yield what took the place of its device or its data."""
    if record.devices.standin or contradiction(record):
        yield "a stand-in took the place of its device"
    if record.devices.mapping:
        yield f"it is a mapped run ({record.devices.mapping})"
    if any(remark.id == "standin-data" for remark in record.remarks):
        yield "other data stood in for an input"


def _elsewhere(record: Record) -> Iterator[str]:
    """Yield what says that it was not made on Linux; the label alone proves nothing."""
    if record.platform != "linux":
        yield f"it was made on {record.platform}"
    facts = {
        name: str(fact.value).lower()
        for name, fact in record.environment.items()
        if fact.value is not None
    }
    system = facts.get("os.system")
    if system is None:
        yield "no fact of its environment says that it was made on Linux"
    elif system != "linux":
        yield f"it says linux, and its environment {system}"
    if any(name in facts.get("python.platform", "") for name in _NOT_LINUX):
        yield f"it says linux, and its Python {facts['python.platform']}"
    if "os.build" in facts or facts.get("torch.mps.built") == "true":
        yield "it says linux, and its environment has facts of macOS"
    if facts.get("cpu.model", "").startswith("apple"):
        yield f"it says linux, and its processor {facts['cpu.model']}"


def require_linux_reference(bundle_path: Path, replay_path: Path) -> None:
    """Refuse a replay file that brings no Linux reference to a bundle.

    Raises:
        BadCallError: No record in it is one; the reason is named.
        BundleError: A file is not as it must be.
    """
    with open_bundle(bundle_path) as bundle, open_replay_file(replay_path) as file:
        sealed, about = read_sealed(bundle)
        if sealed is None:
            raise BadCallError(f"{bundle_path.name}: {about[0].reason}")
        reasons: list[str] = []
        held = _records(bundle, bundle, [])
        brought = _records(bundle, file, reasons)
        for record in brought:
            why = obstacle(record, sealed, [*held, *brought])
            if not record.reference_by:
                why = "it is not marked: only its maker can, with --as-reference NAME"
            if not why:
                return
            reasons.append(why)
    raise BadCallError(
        f"{replay_path.name} brings no Linux reference: {reasons[0]}",
        advice="attach it without --as-reference, or replay on Linux with "
        "--as-reference NAME",
    )


def _records(bundle: Bundle, source: ReplayFile, bad: list[str]) -> list[Record]:
    """Return the records whose integrity holds; of the others, why not."""
    found = []
    for replay_id in source.replay_ids:
        record, findings = read_replay(bundle, source, replay_id)
        if record is not None:
            found.append(record)
        else:
            bad.append(findings[0].reason)
    return found
