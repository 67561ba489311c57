"""Records that the scan refused: kept aside for the one who made them, taken later.

A replay may have run for hours before its record is found to hold what nobody allowed
to be handed on. The record is then written into a folder that only its maker can read,
and `attach` takes it, once the places are allowed by name.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from reprobundle.errors import DigestError, ReprobundleError, SensitiveContentError
from reprobundle.format.attach import (
    Tree,
    attach_replay,
    attach_replay_file,
    write_replay_file,
)
from reprobundle.format.canonical import decode, encode
from reprobundle.format.digests import digest_bytes
from reprobundle.format.integrity import check_replay_digests
from reprobundle.format.pairing import RECORD_NAME
from reprobundle.format.reader import ReplayFile, open_bundle, open_replay_file
from reprobundle.format.record import Record, Remark
from reprobundle.format.writer import Source
from reprobundle.replay.admission import allowed_by
from reprobundle.replay.plan import sealed_runs
from reprobundle.run.secrets.gate import ALLOWED, Gate
from reprobundle.temporary.guarded import guarded_folder
from reprobundle.verify.lacking import require_in_seal

_MOST_OPTIONS = 4


def refused_root() -> Path:
    """Return the folder of all refused records: in the user's state folder."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "reprobundle" / "refused"


@contextlib.contextmanager
def kept_aside(
    bundle: Path, trees: Iterable[Tree], name: str, *, root: Path | None = None
) -> Iterator[None]:
    """Keep the replays aside if the block refuses them, and say where they are.

    Args:
        bundle: The bundle that was replayed.
        trees: The replays as they would be attached.
        name: Names the file, unlike any other.
        root: Folder for the file; the user's own by default.

    Raises:
        SensitiveContentError: The block raised it; its advice then names the file. If
            even that cannot be written, the error is as it was.
    """
    try:
        yield
    except SensitiveContentError as error:
        try:
            kept = _keep(trees, (root or refused_root()) / f"{name}.rpr.zip")
        except (ReprobundleError, OSError):
            raise error from None
        raise SensitiveContentError(
            error.message, places=error.places, advice=_advice(bundle, kept, error)
        ) from error


def _keep(trees: Iterable[Tree], target: Path) -> Path:
    """Write the replays where their maker alone can read them."""
    target.parent.mkdir(parents=True, exist_ok=True)
    # The folder first: what is written into it has other rights for a moment.
    target.parent.chmod(0o700)
    write_replay_file(target, trees)
    target.chmod(0o600)
    return target


def _advice(bundle: Path, kept: Path, error: SensitiveContentError) -> str:
    places = list(dict.fromkeys(error.places))
    options = " ".join(
        f"--allow-sensitive {shlex.quote(place)}" for place in places[:_MOST_OPTIONS]
    )
    more = len(places) - _MOST_OPTIONS
    rest = f" (and the same for {more} more places)" if more > 0 else ""
    call = f"reprobundle attach {shlex.quote(str(bundle))} {shlex.quote(str(kept))}"
    return (
        "look at what the command prints and writes here. The record is kept aside, "
        f"readable for you alone; if it may be handed on: {call} {options}{rest}; "
        "else delete that file"
    )


def attach_admitted(
    bundle: Path, replay_file: Path, allowed: Sequence[str]
) -> list[str]:
    """Attach the replays of a file after a scan of all that it holds.

    What the bundle's author allowed and what a record in the file says was allowed
    when it was made is allowed here too. Only what `allowed` adds changes a record: it
    then says so.

    Args:
        bundle: The bundle.
        replay_file: The file.
        allowed: ``KIND@PATH`` or ``PATH``, as in `Gate`.

    Returns:
        The ids of what was attached now.

    Raises:
        SensitiveContentError: It holds what nobody allowed.
        BadCallError: `allowed` names a kind that does not exist, or a replay ran
            another bundle.
        BundleError: The bundle or the file is not as it must be.
    """
    with guarded_folder("reprobundle-attach-") as folder:
        with (
            open_bundle(bundle) as opened,
            open_replay_file(replay_file) as replays,
        ):
            references = [run.record for run in sealed_runs(opened)]
            attached = opened.replay_ids
            found = list(_taken_out(replays, folder))
            require_in_seal(opened, [one.record for one in found])
        records = [one.record for one in found]
        gate = Gate([*allowed, *allowed_by(references), *allowed_by(records)])
        try:
            gate.check_sources(source for one in found for source in one.scanned())
        except SensitiveContentError as error:
            raise SensitiveContentError(
                f"nothing is attached: {error.message}",
                places=error.places,
                advice="if it may be handed on, allow each place by name, such as "
                f"--allow-sensitive {error.places[0]}",
            ) from error
        said = {remark.where for one in records for remark in one.remarks}
        new = [
            remark
            for remark in gate.remarks()
            if remark.id == ALLOWED and remark.where not in said
        ]
        if not new:
            return attach_replay_file(bundle, replay_file)
        first, *rest = found
        return [
            attach_replay(bundle, one.data, one.sources())
            for one in (first.saying(new), *rest)
            if digest_bytes(one.data) not in attached
        ]


def forget(replay_file: Path, *, root: Path | None = None) -> bool:
    """Delete a record that was kept aside, now that it is attached.

    Returns:
        Whether it was one; a file from elsewhere stays.
    """
    where = (root or refused_root()).resolve()
    if replay_file.resolve().parent != where:
        return False
    replay_file.unlink()
    return True


@dataclasses.dataclass(frozen=True)
class _TakenOut:
    """One replay of a file, with its files on disk by their names beside the record."""

    data: bytes
    record: Record
    files: dict[str, Path]

    def saying(self, remarks: Iterable[Remark]) -> _TakenOut:
        """Return the same replay with more remarks in its record."""
        record = msgspec.structs.replace(
            self.record, remarks=(*self.record.remarks, *remarks)
        )
        return dataclasses.replace(self, data=encode(record), record=record)

    def sources(self) -> list[Source]:
        return [Source(name, "output", path) for name, path in self.files.items()]

    def scanned(self) -> Iterator[Source]:
        yield Source("runs/1/record.json", "record", encode(self.record))
        for name, path in self.files.items():
            yield Source(f"runs/1/{name}", "output", path)


def _taken_out(replays: ReplayFile, folder: Path) -> Iterator[_TakenOut]:
    """Yield the replays of a file; their content is copied into `folder`.

    Raises:
        DigestError: A record or its content is not what it is named by.
    """
    for damage in check_replay_digests(replays):
        raise DigestError(
            damage.path, expected=damage.expected, got=damage.got, rule="R-4.28"
        )
    for number, replay_id in enumerate(replays.replay_ids):
        top = f"replays/{replay_id}/"
        data = replays.read_unsealed(f"{top}{RECORD_NAME}")
        record = decode(data, Record, where=f"{top}{RECORD_NAME}", rule="R-7.2")
        files: dict[str, Path] = {}
        for entry in replays.replay_entries(replay_id):
            name = entry.removeprefix(top)
            if name == RECORD_NAME:
                continue
            files[name] = folder / f"{number}.{len(files)}"
            with (
                replays.open_unsealed(entry) as reader,
                files[name].open("xb") as writer,
            ):
                shutil.copyfileobj(reader, writer, 1 << 20)
        yield _TakenOut(data, record, files)
