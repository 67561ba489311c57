"""Whether a replay also agrees with the Linux reference that somebody attached (V17).

A bundle packed on a Mac is judged by its origin, which lies inside the seal. Its Linux
reference lies outside, and its name is stated and not proven: so it never becomes the
base of a verdict. But who attached one wants to know how every other replay stands to
it, so each is compared with it too, and a difference is a warning with this name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reprobundle.format.findings import Finding
from reprobundle.format.reader import Bundle
from reprobundle.format.record import Record
from reprobundle.verify.checks import finding
from reprobundle.verify.claims import Replay
from reprobundle.verify.content import Content, attached
from reprobundle.verify.devices import platform_label
from reprobundle.verify.linux_reference import obstacle
from reprobundle.verify.reference import GOOD, figures
from reprobundle.verify.sealed import Sealed

_NAME = "linux-reference-differs"
MOST_NAMED = 3


class LinuxReference(NamedTuple):
    """An attached record that counts as the Linux reference.

    Attributes:
        id: Its record id.
        record: The record.
        content: Where its content lies.
    """

    id: str
    record: Record
    content: Content


def find_linux_reference(
    bundle: Bundle, sealed: Sealed, runs: Sequence[Replay]
) -> LinuxReference | None:
    """Return the first attached record that counts, where the origin is none itself."""
    if sealed.reference.platform == "linux":
        return None
    records = [one.record for one in runs]
    for one in runs:
        if one.record.reference_by and not obstacle(one.record, sealed, records):
            content = attached(bundle, one.source, one.id, one.record)
            return LinuxReference(one.id, one.record, content)
    return None


def check_beside_linux(
    sealed: Sealed,
    linux: LinuxReference | None,
    replay_id: str,
    replay: Record,
    content: Content,
) -> Iterator[Finding]:
    """Yield how a finished replay stands to the Linux reference, if it may have one."""
    if sealed.reference.platform == "linux":
        return
    if linux is None:
        reason = "no Linux reference is attached that it could be compared with"
        yield finding(_NAME, "not-checked", reason)
    elif linux.id == replay_id:
        yield finding(_NAME, "not-applicable", "it is the Linux reference itself")
    elif replay.claim != linux.record.claim:
        reason = f"the Linux reference is one of claim {linux.record.claim!r}"
        yield finding(_NAME, "not-applicable", reason)
    else:
        yield _compared(sealed, linux, replay, content)


def _compared(
    sealed: Sealed, linux: LinuxReference, replay: Record, content: Content
) -> Finding:
    from reprobundle.verify.compare import compare_outputs

    record, where = linux.record, f"replays/{linux.id}"
    named = (
        f"the Linux reference attached by {record.reference_by} "
        f"({platform_label(record)})"
    )
    base = f"the origin on {sealed.reference.platform} stays the verdict's base"
    items = [
        item
        for item in compare_outputs(
            record, replay, linux.content, content, policy=sealed.policy
        )
        if not item.excluded
    ]
    bad = [item for item in items if item.result not in GOOD]
    if not items:
        return finding(_NAME, "not-checked", f"no output is compared; {base}")
    if not bad:
        moved = [item for item in items if item.result != "bit-identical"]
        near = f"within tolerance ({figures(moved)})" if moved else "bit-identical"
        reason = f"{near} to {named} too; {base}"
        return finding(_NAME, "pass", reason, where=where)
    told = [f"{one.name}: {one.reason or one.result}" for one in bad[:MOST_NAMED]]
    unknown = all(item.result == "not-compared" for item in bad)
    return finding(
        _NAME,
        "not-checked" if unknown else "warn",
        f"it differs from {named} in {len(bad)} of {len(items)} outputs: "
        f"{'; '.join(told)}; {base}",
        where=where,
        advice="reprobundle diff sets both side by side",
    )
