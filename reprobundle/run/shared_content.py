"""Refer to a sealed member of equal content instead of keeping it once more."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import msgspec

from reprobundle.run.finished import Assembled


def share_content(run: Assembled, sealed: Mapping[str, str]) -> Assembled:
    """Return the run without the content that the bundle holds already.

    The digests are those of the run's own files, taken here, in the process that ran
    it. No two runs have one memory log, so that is never shared.

    Args:
        run: A run with its content on disk.
        sealed: BLAKE3 → sealed member; empty to share nothing.
    """
    content = dict(run.content)
    members = []
    for member in run.record.members:
        twin = sealed.get(member.blake3, "") if member.size_bytes else ""
        if twin and member.name in content and member.name != run.record.memory.series:
            del content[member.name]
            members.append(msgspec.structs.replace(member, sealed=twin))
        else:
            members.append(member)
    record = msgspec.structs.replace(run.record, members=tuple(members))
    return dataclasses.replace(run, record=record, content=content)
