"""What somebody changed between reference and replay, as seen in the findings."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from reprobundle.verify.causes.case import Case, Seen


def saw(*names: str, command: str = "") -> Callable[[Case], Seen]:
    """Return a test for a finding; ``{bundle}`` in the command is the file's name."""

    def test(case: Case) -> Seen:
        one = case.found(*names)
        if one is None:
            return None
        sides = f": {one.got}, expected {one.expected}" if one.expected else ""
        place = f" ({one.where})" if one.where else ""
        return f"{one.reason}{place}{sides}", command.format(bundle=case.bundle)

    return test


def pipeline(case: Case) -> Seen:
    """Return the masked failure, and the same command by a shell that notices."""
    one = case.found("masked-failure")
    if one is None:
        return None
    argv = case.reference.command.argv
    # A script that a shell was given is run by one that notices the failure.
    script = argv[2] if argv[1:2] == ("-c",) and len(argv) > 2 else shlex.join(argv)
    command = f"bash -o pipefail -c {shlex.quote(script)}"
    return f"{one.reason} ({one.where})", command
