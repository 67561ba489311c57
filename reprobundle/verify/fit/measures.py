"""How each limit of the table of destinations is measured on a bundle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from reprobundle.format.citation import Citation, citation_of
from reprobundle.format.destinations import Limit, LimitId
from reprobundle.format.findings import CheckOutcome
from reprobundle.format.fit_report import FitFinding
from reprobundle.verify.fit.subject import TEXT_BYTES, Subject

_PICKLED = (".pt", ".pth", ".pkl", ".pickle", ".joblib", ".ckpt", ".bin")
_DOCUMENTS = frozenset({"readme", "record", "policy", "lock", "checksums"})
_LICENCES = ("license", "licence", "copying")
_UNKNOWN = "the bundle's documents cannot be read"


class Measured(NamedTuple):
    """What was found.

    Attributes:
        good: Whether the bundle has it; None where nothing tells.
        got: In words.
        figure: The figure, where the limit has one.
    """

    good: bool | None
    got: str
    figure: int | None = None


def measure(subject: Subject, limit: Limit) -> FitFinding:
    """Return whether the bundle keeps to one limit."""
    measured = _MEASURES[limit.id](subject, limit)
    return FitFinding(
        id=limit.id,
        outcome=_outcome(measured.good, refuses=limit.refuses),
        text=limit.text,
        most=limit.most,
        got=measured.got,
        measured=measured.figure,
        source=limit.source,
        date=limit.date,
    )


def _outcome(good: bool | None, *, refuses: bool) -> CheckOutcome:
    if good is None:
        return "not-checked"
    if good:
        return "pass"
    return "fail" if refuses else "warn"


def _within(figure: int, limit: Limit, unit: str) -> Measured:
    most = limit.most if limit.most is not None else 0
    return Measured(figure <= most, f"{figure:,} {unit}", figure)


def _file_type(subject: Subject, limit: Limit) -> Measured:
    name = subject.bundle.path.name
    return Measured(name.lower().endswith(".zip"), name)


def _file_bytes(subject: Subject, limit: Limit) -> Measured:
    return _within(subject.bundle.size_bytes, limit, "bytes")


def _entries(subject: Subject, limit: Limit) -> Measured:
    return _within(len(subject.bundle.entries), limit, "entries")


def _document_bytes(subject: Subject, limit: Limit) -> Measured:
    members = subject.bundle.members.values()
    largest = max(
        (member for member in members if member.role in _DOCUMENTS),
        key=lambda member: member.size_bytes,
        default=None,
    )
    if largest is None:
        return Measured(None, "no document is here")
    found = _within(largest.size_bytes, limit, "bytes")
    return found._replace(got=f"{largest.path}: {found.got}")


def _folder_entries(subject: Subject, limit: Limit) -> Measured:
    names = (entry.name for entry in subject.bundle.entries)
    folders = Counter(name.rpartition("/")[0] for name in names)
    folder, count = max(folders.items(), key=lambda pair: pair[1])
    return Measured(
        count <= (limit.most or 0), f"{count:,} in {folder or 'the top'}", count
    )


def _characters(subject: Subject, limit: Limit) -> Measured:
    figure = subject.characters
    if figure is None:
        got = f"a bundle of more than {TEXT_BYTES:,} bytes is no text for an issue"
        return Measured(False, got)
    return _within(figure, limit, "characters")


def _self_contained(subject: Subject, limit: Limit) -> Measured:
    reference = subject.reference
    if reference is None:
        return Measured(None, _UNKNOWN)
    wanted = [one.name for one in reference.withheld]
    wanted += [
        read.origin or read.path
        for read in reference.reads
        if not read.member and read.blake3
    ]
    if wanted:
        named = ", ".join(dict.fromkeys(wanted[:3]))
        return Measured(False, f"not in the bundle: {named}")
    elsewhere = sorted(subject.bundle.absent)
    if elsewhere:
        return Measured(False, f"in the other part: {', '.join(elsewhere[:3])}")
    if any(remark.id == "network-used" for remark in reference.remarks):
        return Measured(False, "the run used the network: what it fetched is not here")
    return Measured(True, "every input that was seen is in the bundle")


def _pickles(subject: Subject, limit: Limit) -> Measured:
    found = [path for path in subject.bundle.members if path.endswith(_PICKLED)]
    if found:
        return Measured(False, f"{len(found)} members, such as {found[0]}")
    return Measured(True, "no member has the name of one")


def _tolerance(subject: Subject, limit: Limit) -> Measured:
    policy = subject.policy
    if policy is None:
        return Measured(None, _UNKNOWN)
    stated = policy.reason or next((rule.reason for rule in policy.outputs), "")
    if stated:
        return Measured(True, stated[:200])
    return Measured(False, "the policy has the defaults and no reason of its author")


def _top_file(subject: Subject, starts: tuple[str, ...]) -> Measured:
    names = [
        name for name in subject.project_files() if name.lower().startswith(starts)
    ]
    if names:
        return Measured(True, f"project/{names[0]}")
    return Measured(False, f"no {starts[0].upper()} at the top of the project")


def _readme(subject: Subject, limit: Limit) -> Measured:
    found = _top_file(subject, ("readme",))
    if not found.good:
        return found
    member = subject.bundle.members[found.got]
    if not member.size_bytes:
        return Measured(False, f"{found.got} is empty")
    return Measured(None, f"{found.got}; whether it says how to run it is not checked")


def _environments(subject: Subject, limit: Limit) -> Measured:
    if subject.policy is None:
        return Measured(None, _UNKNOWN)
    platforms = subject.policy.intent.accepting_platforms
    if platforms:
        return Measured(True, ", ".join(platforms))
    return Measured(False, "none stated: pack with --accepting-platforms")


def _purpose(subject: Subject, limit: Limit) -> Measured:
    if subject.policy is None:
        return Measured(None, _UNKNOWN)
    purpose = subject.policy.intent.purpose
    if purpose:
        return Measured(True, purpose[:200])
    return Measured(False, "none stated: pack with --purpose")


def _doi(subject: Subject, limit: Limit) -> Measured:
    url = _citation(subject).doi_url
    if url:
        return Measured(None, f"{url} is stated; that it lies there is not checked")
    return Measured(None, "where it will be deposited does not stand in a bundle")


def _licence(subject: Subject, limit: Limit) -> Measured:
    stated = _citation(subject).licenses
    if stated:
        return Measured(True, f"{', '.join(stated)}, as its author states")
    return _top_file(subject, _LICENCES)


def _citation(subject: Subject) -> Citation:
    record = subject.reference
    return Citation() if record is None else citation_of(record.environment)


_MEASURES: dict[LimitId, Callable[[Subject, Limit], Measured]] = {
    "file-type": _file_type,
    "file-bytes": _file_bytes,
    "file-bytes-advised": _file_bytes,
    "entries-shown": _entries,
    "document-bytes": _document_bytes,
    "folder-entries": _folder_entries,
    "text-characters": _characters,
    "self-contained": _self_contained,
    "pickles": _pickles,
    "tolerance-stated": _tolerance,
    "readme": _readme,
    "licence": _licence,
    "environments": _environments,
    "purpose": _purpose,
    "doi": _doi,
}
