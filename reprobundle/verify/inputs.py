"""Whether a replay read what the reference read, and not the result itself."""

from __future__ import annotations

from collections.abc import Iterator

from reprobundle.format.findings import Finding
from reprobundle.format.record import FileRead, Record
from reprobundle.verify.checks import finding

MOST_NAMED = 3


def check_inputs(reference: Record, replay: Record) -> Iterator[Finding]:
    """Yield the findings of V12 about the files that both runs read."""
    yield from _same(reference, replay)
    yield from _further(reference, replay)
    yield from _stated_data(replay)


def _same(reference: Record, replay: Record) -> Iterator[Finding]:
    """Yield which inputs of the reference had other content, or were not read."""
    expected, got = _digests(reference), _digests(replay)
    checked = 0
    unread = []
    for read in reference.reads:
        known = expected.get(read.path, set())
        if not read.blake3:
            continue
        if not got.get(read.path):
            if not read.member.startswith("project/"):
                unread.append(read.path)
            continue
        checked += 1
        # A record may name a file twice; each content has to be the reference's.
        for other in sorted(got[read.path] - known):
            yield finding(
                "same-inputs",
                "fail",
                "the replay read other content",
                where=read.path,
                expected=read.blake3,
                got=other,
            )
    yield finding("same-inputs", "pass", f"{checked} files read on both sides")
    if unread:
        yield finding(
            "reduced-input",
            "warn",
            f"the replay did not read inputs that the reference read: {_named(unread)}",
            where=unread[0],
        )


def _digests(record: Record) -> dict[str, set[str]]:
    """Return path → every digest with which the run read it."""
    found: dict[str, set[str]] = {}
    for read in record.reads:
        if read.blake3:
            found.setdefault(read.path, set()).add(read.blake3)
    return found


def _further(reference: Record, replay: Record) -> Iterator[Finding]:
    """Yield the files that only the replay read, the results themselves above all.

    Files of the project are those of the bundle: another machine may take another way
    through them. What lies outside it is a gap, unless it is the very result.
    """
    known = {(read.path, read.blake3) for read in reference.reads}
    results = {one.blake3 for one in reference.outputs if one.size_bytes}
    more = [one for one in replay.reads if (one.path, one.blake3) not in known]
    answers = [one.path for one in more if one.blake3 in results]
    if answers:
        yield finding(
            "further-input",
            "warn",
            "the replay read what the reference produced, so it may have copied the "
            f"result: {_named(answers)}",
            where=answers[0],
            advice="replay it where no earlier result lies",
        )
        return
    paths = {read.path for read in reference.reads}
    others = [one.path for one in more if _is_foreign(one) and one.path not in paths]
    if others:
        yield finding(
            "further-input",
            "not-checked",
            f"the replay read files that the reference did not read: {_named(others)}",
            where=others[0],
        )
        return
    yield finding("further-input", "pass", f"{len(more)} further files of the project")


def _is_foreign(read: FileRead) -> bool:
    return not read.path.startswith("project:")


def _named(paths: list[str]) -> str:
    more = len(paths) - MOST_NAMED
    return ", ".join(paths[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _stated_data(replay: Record) -> Iterator[Finding]:
    """Yield what the replay itself says about data that is not the whole."""
    for remark in replay.remarks:
        if remark.id == "reduced-input":
            yield finding("reduced-input", "warn", remark.text, where=remark.where)
        elif remark.id == "standin-data":
            yield finding(
                "standin-data", "not-checked", remark.text, where=remark.where
            )
