"""What of a bundle can be left out, how much that saves, and how it is said to pack."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from reprobundle.format.fit_report import Offer
from reprobundle.format.inline import text_characters
from reprobundle.format.lock import PYLOCK_MEMBER
from reprobundle.format.record import FileRead, Output
from reprobundle.verify.fit.subject import Subject

MOST_OFFERS = 12


class _Droppable(NamedTuple):
    """Entries that go together.

    Attributes:
        what: In words.
        entries: Names of the sealed members or unsealed entries.
        option: What leaves them out.
        costs: What is lost.
    """

    what: str
    entries: tuple[str, ...]
    option: str
    costs: str


def offers(subject: Subject, *, as_text: bool) -> list[Offer]:
    """Return what can be left out, largest first.

    Args:
        subject: The bundle.
        as_text: Whether the length of its text matters, not the size of its file.
    """
    found = [_offer(subject, one, as_text=as_text) for one in _droppable(subject)]
    found.sort(key=lambda one: (-(one.saves_characters or one.saves_bytes), one.what))
    return found[:MOST_OFFERS]


def _droppable(subject: Subject) -> Iterator[_Droppable]:
    yield from _replays(subject)
    if PYLOCK_MEMBER in subject.bundle.members:
        yield _Droppable(
            "the lock for other systems",
            (PYLOCK_MEMBER,),
            "--offline",
            "a replay on another system finds its packages by their versions only",
        )
    yield from _outputs(subject)
    yield from _inputs(subject)
    yield from _external(subject)


def _replays(subject: Subject) -> Iterator[_Droppable]:
    name = shlex.quote(subject.bundle.path.name)
    for replay_id in subject.bundle.replay_ids:
        yield _Droppable(
            f"the attached replay {replay_id[:12]}",
            subject.bundle.replay_entries(replay_id),
            f"reprobundle detach {name} {replay_id}",
            "the evidence of that replay; keep it as a replay file first",
        )


def _outputs(subject: Subject) -> Iterator[_Droppable]:
    """Yield each output with everything that the runs keep of it."""
    members: dict[str, list[str]] = {}
    for number, record in sorted(subject.runs.items()):
        for output in record.outputs:
            kept = [f"runs/{number}/{name}" for name in _own_members(output)]
            there = [path for path in kept if path in subject.bundle.members]
            members.setdefault(output.name, []).extend(there)
    for name, paths in members.items():
        if paths:
            yield _Droppable(
                f"the output {name}",
                tuple(dict.fromkeys(paths)),
                f"--hash-only {shlex.quote(name)}",
                "its digest stays: equal is known, how far apart is not. "
                "--output-budget SIZE keeps values at some places instead",
            )


def _own_members(output: Output) -> Iterator[str]:
    if output.stored in ("here", "sample") and output.member:
        yield output.member
    if output.arrays_member:
        yield output.arrays_member


def _inputs(subject: Subject) -> Iterator[_Droppable]:
    reads = _read_members(subject)
    for path, member in subject.bundle.members.items():
        group, _, name = path.partition("/")
        if group == "inputs" or (group == "project" and member.role == "input"):
            yield _input(path, name, is_read=path in reads)
        elif group == "project" and path not in reads and not _is_code(subject, name):
            yield _input(path, name, is_read=False)


def _input(path: str, name: str, *, is_read: bool) -> _Droppable:
    if is_read:
        return _Droppable(
            f"the input {name}",
            (path,),
            f"--hash-only {shlex.quote(name)}",
            f"a replay needs --data {name}=FILE from whoever has it",
        )
    return _Droppable(
        f"{name}, which no run read",
        (path,),
        f"--exclude {shlex.quote(name)}",
        "nothing that was seen to be used",
    )


def _external(subject: Subject) -> Iterator[_Droppable]:
    for path, read in _read_members(subject).items():
        if path.startswith("external/") and path in subject.bundle.members:
            yield _Droppable(
                f"the file {read.origin or path} from outside the project",
                (path,),
                "--external pin",
                "a replay needs the same file in its place",
            )


def _read_members(subject: Subject) -> dict[str, FileRead]:
    return {
        read.member: read
        for record in subject.runs.values()
        for read in record.reads
        if read.member
    }


def _is_code(subject: Subject, name: str) -> bool:
    known = any(name in record.sources for record in subject.runs.values())
    return known or name.endswith((".py", ".ipynb", ".sh"))


def _offer(subject: Subject, one: _Droppable, *, as_text: bool) -> Offer:
    return Offer(
        what=one.what,
        saves_bytes=sum(_stored(subject, one.entries)),
        saves_characters=_characters(subject, one.entries) if as_text else None,
        option=one.option,
        costs=one.costs,
    )


def _stored(subject: Subject, names: Iterable[str]) -> Iterator[int]:
    unsealed = subject.bundle.unsealed_contents()
    for name in names:
        if name in unsealed:
            entry = unsealed[name].entry
            yield entry.end - entry.offset
        else:
            yield subject.stored_bytes(name)


def _characters(subject: Subject, names: Iterable[str]) -> int:
    """Return about how many characters the entries take as text.

    Each is compressed alone: what it shares with the rest of the bundle is counted in.
    """
    unsealed = subject.bundle.unsealed_contents()
    contents = (
        unsealed[name] if name in unsealed else subject.bundle.content(name)
        for name in names
    )
    data = b"".join(
        content.stored(span) for content in contents for span in content.spans()
    )
    return text_characters(data)
