"""A bundle as a destination sees it: how large it is, what it holds, what it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from reprobundle.format.inline import bundle_text
from reprobundle.format.policy import Policy
from reprobundle.format.reader import Bundle
from reprobundle.format.record import Record
from reprobundle.verify.sealed import read_sealed

TEXT_BYTES = 8 << 20
"""Larger bundles are not tried as text: an issue takes a hundredth of that."""


class Subject:
    """An open bundle and what of it was worked out already.

    Attributes:
        bundle: The bundle.
        policy: Its policy, or None if it cannot be read.
        runs: Its sealed runs by number.
    """

    def __init__(self, bundle: Bundle) -> None:
        """Read the documents of `bundle`."""
        self.bundle = bundle
        sealed, _ = read_sealed(bundle)
        self.policy: Policy | None = sealed.policy if sealed else None
        self.runs: Mapping[int, Record] = sealed.runs if sealed else {}

    @property
    def reference(self) -> Record | None:
        """The first run."""
        return self.runs.get(1)

    @cached_property
    def characters(self) -> int | None:
        """Length of the bundle as text; None where it is too large to be tried."""
        if self.bundle.size_bytes > TEXT_BYTES:
            return None
        return len(bundle_text(self.bundle))

    def stored_bytes(self, path: str) -> int:
        """Return how many bytes of the file a sealed member takes."""
        entry = self.bundle.content(path).entry
        return entry.end - entry.offset

    def project_files(self) -> Iterator[str]:
        """Yield the names of the project's files at its top."""
        for path in self.bundle.members:
            group, _, name = path.partition("/")
            if group == "project" and "/" not in name:
                yield name
