"""The bundle under test: its parts on disk, sealed anew or replayed as is wanted."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import msgspec

from reprobundle.errors import BadCallError
from reprobundle.format.attach import write_replay_file
from reprobundle.format.canonical import encode
from reprobundle.format.digests import digest_bytes
from reprobundle.format.manifest import CHECKSUMS_PATH, README_PATH, Role
from reprobundle.format.reader import extract, open_bundle
from reprobundle.format.record import ContentMember, Output, Record
from reprobundle.format.writer import Source, write_bundle
from reprobundle.outputs.summary import summarise
from reprobundle.verify.sealed import REFERENCE_RUN, Sealed, read_sealed

OCCASION = "5e1f7e575e1f7e57"
_ADDED_BY_WRITER = frozenset({README_PATH, CHECKSUMS_PATH})


class Subject:
    """A bundle whose members lie extracted in a folder of ours.

    Attributes:
        path: The bundle; it is only read.
        id: Its id.
        folder: Where copies may be made.
        sealed: Its documents.
        roles: Sealed path → role, without what the writer adds by itself.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        """Extract the bundle at `path` below `folder`.

        Raises:
            BadCallError: It is not whole; a verifier is tested on a sound bundle.
            BundleError: It is not sound.
        """
        self.path = path
        self.folder = folder
        self._files = folder / "members"
        folder.mkdir()
        with open_bundle(path) as bundle:
            self.id = bundle.id
            sealed, findings = read_sealed(bundle)
            self.roles: dict[str, Role] = {
                name: member.role
                for name, member in bundle.members.items()
                if name not in _ADDED_BY_WRITER
            }
            self.digests = {
                name: member.blake3 for name, member in bundle.members.items()
            }
            extract(bundle, self._files)
        if sealed is None:
            raise BadCallError(
                f"{path.name} lacks what a replay is judged by: {findings[-1].reason}",
                advice="test the verifier on a bundle that is whole",
            )
        self.sealed: Sealed = sealed

    @property
    def reference(self) -> Record:
        """The reference run."""
        return self.sealed.reference

    def read(self, member: str) -> bytes:
        """Return the plain content of a sealed member."""
        return (self._files / member).read_bytes()

    def seal(
        self,
        name: str,
        changed: Mapping[str, bytes] | None = None,
        *,
        without: frozenset[str] = frozenset(),
    ) -> Path:
        """Write a bundle as a forger would: other content under a valid seal.

        Args:
            name: Of the new file.
            changed: Sealed path → other content.
            without: Sealed paths to leave out.
        """
        other = changed or {}
        sources = [
            Source(path, role, other.get(path, self._files / path))
            for path, role in self.roles.items()
            if path not in without
        ]
        target = self.folder / f"{name}.rpb.zip"
        write_bundle(target, sources, workers=1, level=1, durable=False)
        return target

    def echo(self) -> Echo:
        """Return replays that say exactly what the sealed runs say."""
        return Echo(
            drafts=[
                self._draft(number, record)
                for number, record in sorted(self.sealed.runs.items())
                if record.role in ("reference", "claim")
            ],
            bundle=self.id,
        )

    def _draft(self, number: int, record: Record) -> Draft:
        outputs = tuple(_sealed(output, number) for output in record.outputs)
        beside = {
            member.name: self.read(f"runs/{number}/{member.name}")
            for member in record.members
            if not _is_content(member.name, record.outputs)
        }
        said = msgspec.structs.replace(
            record,
            role="replay",
            bundle=self.id,
            runs=number,
            occasion=OCCASION,
            # A run of its own takes its own time.
            elapsed_ns=number
            + max(run.elapsed_ns for run in self.sealed.runs.values()),
            outputs=outputs,
        )
        return Draft(said, beside)


@dataclasses.dataclass(frozen=True)
class Draft:
    """A replay that is not written yet.

    Attributes:
        record: What it says, its list of members aside.
        files: Name relative to the record → content that lies beside it.
        shared: Members that are said to be sealed ones.
    """

    record: Record
    files: dict[str, bytes]
    shared: tuple[ContentMember, ...] = ()

    def saying(self, **changes: object) -> Draft:
        """Return a draft whose record has other fields."""
        record = msgspec.structs.replace(self.record, **changes)
        return dataclasses.replace(self, record=record)

    def sharing(self, name: str, sealed: str) -> Draft:
        """Return a draft in which a file beside the record is said to be a sealed one.

        Raises:
            KeyError: No such file lies beside it.
        """
        files = dict(self.files)
        data = files.pop(name)
        member = ContentMember(
            name=name, size_bytes=len(data), blake3=digest_bytes(data), sealed=sealed
        )
        return Draft(self.record, files, (*self.shared, member))

    def with_output(
        self, folder: Path, old: Output, data: bytes, tensors: bytes | None = None
    ) -> Draft:
        """Return a draft that says truthfully that an output came out as `data`.

        Args:
            folder: A folder for temporary files.
            old: The output that came out otherwise.
            data: Its other content.
            tensors: For a checkpoint, what was exported of it.
        """
        member = f"outputs/{old.name.replace(':', '/')}"
        files = {member: data}
        exported = ""
        if tensors is not None:
            exported = f"tensors/{old.name}.safetensors"
            files[exported] = tensors
        new = described(folder, old, data, member, tensors=tensors)
        new = msgspec.structs.replace(new, arrays_member=exported)
        outputs = tuple(
            new if output.name == old.name else output for output in self.record.outputs
        )
        return Draft(
            msgspec.structs.replace(self.record, outputs=outputs),
            {**self.files, **files},
            self.shared,
        )

    def without_outputs(self, *names: str) -> Draft:
        """Return a draft in which these outputs did not come out."""
        left = tuple(one for one in self.record.outputs if one.name not in names)
        return self.saying(outputs=left)

    def tree(self) -> tuple[bytes, list[Source]]:
        """Return the record's bytes and its files."""
        beside = (
            ContentMember(name=name, size_bytes=len(data), blake3=digest_bytes(data))
            for name, data in self.files.items()
        )
        members = sorted((*beside, *self.shared), key=lambda member: member.name)
        record = encode(msgspec.structs.replace(self.record, members=tuple(members)))
        return record, [Source(name, "log", data) for name, data in self.files.items()]


@dataclasses.dataclass(frozen=True)
class Echo:
    """The replays of all claims, the main one first."""

    drafts: list[Draft]
    bundle: str

    @property
    def main(self) -> Draft:
        """The replay of the reference run."""
        return self.drafts[0]

    def but(self, main: Draft) -> Echo:
        """Return the same replays with another one of the reference run."""
        return Echo([main, *self.drafts[1:]], self.bundle)

    def of(self, bundle: str) -> Echo:
        """Return the same replays of another bundle."""
        return Echo([draft.saying(bundle=bundle) for draft in self.drafts], bundle)

    def write(self, target: Path) -> Path:
        """Write the replays alone to `target` and return it."""
        trees = [draft.tree() for draft in self.drafts]
        write_replay_file(target, trees, durable=False)
        return target


def described(
    folder: Path, old: Output, data: bytes, member: str, *, tensors: bytes | None = None
) -> Output:
    """Return the truth about `data` as the output `old`."""
    path, exported = folder / "output", folder / "tensors"
    path.write_bytes(data)
    if tensors is not None:
        exported.write_bytes(tensors)
    seen = summarise(old.name, path, tensors=None if tensors is None else exported)
    return msgspec.structs.replace(
        old,
        kind=seen.kind,
        format=seen.format,
        size_bytes=len(data),
        blake3=digest_bytes(data),
        stored="here",
        member=member,
        arrays_member="",
        arrays=seen.arrays,
        rows=seen.rows,
    )


def reference_member(name: str) -> str:
    """Return the sealed path of a member of the reference run."""
    return f"runs/{REFERENCE_RUN}/{name}"


def _sealed(output: Output, number: int) -> Output:
    """Return the output as a replay describes it: its content is in the seal."""
    if output.stored not in ("here", "sample") or output.member.startswith("runs/"):
        return output
    arrays = output.arrays_member
    return msgspec.structs.replace(
        output,
        stored="sealed" if output.stored == "here" else "sample",
        member=f"runs/{number}/{output.member}",
        arrays_member=f"runs/{number}/{arrays}" if arrays else "",
    )


def _is_content(name: str, outputs: tuple[Output, ...]) -> bool:
    return any(name in (output.member, output.arrays_member) for output in outputs)
