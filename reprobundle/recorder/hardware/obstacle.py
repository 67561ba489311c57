"""Why a device cannot be used on this machine, and what to do about it."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Run = Callable[[Sequence[str]], str]

ELSEWHERE = "replay on a machine that has the device, or ask for another --device"
_COMMAND_SECONDS = 10.0


class Obstacle:
    """One cause with its remedy.

    Attributes:
        key: A word for both that does not change with what was found; docs/mac.md
            lists those of MPS.
        cause: What was found, one line.
        remedy: What helps, one line.
    """

    __slots__ = ("cause", "key", "remedy")

    def __init__(self, key: str, cause: str, remedy: str) -> None:
        self.key = key
        self.cause = cause
        self.remedy = remedy


class Machine:
    """What an obstacle is looked for in.

    Args:
        platform: As ``sys.platform``.
        run: Returns what a system command prints; empty where it cannot tell.
        environ: The environment variables.
        tried: Whether one tensor may be made on the device, to see that it works: in
            a process of ours only, never in the user's.
    """

    def __init__(
        self,
        *,
        platform: str = sys.platform,
        run: Run | None = None,
        environ: Mapping[str, str] = os.environ,
        tried: bool = False,
    ) -> None:
        self.platform = platform
        self.run = run or system_output
        self.environ = environ
        self.tried = tried


def system_output(argv: Sequence[str]) -> str:
    """Return what a system command prints; nothing where it cannot tell."""
    import subprocess

    try:
        done = subprocess.run(
            list(argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            text=True,
            timeout=_COMMAND_SECONDS,
            # A Python started by one of these must not be taken for the user's.
            env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
