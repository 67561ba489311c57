"""Find the numbers that a command printed, in bounded time.

A pattern comes from whoever wrote the policy, and Python's regular expressions have
patterns that take longer than the universe is old on thirty characters. Nothing in the
process can stop one, so another process looks.
"""

from __future__ import annotations

import json
import subprocess
import sys

SECONDS = 60.0

# Groups and flags as documented for `--metric`.
_LOOK = """
import json, re, sys
pattern, text = json.loads(sys.stdin.buffer.read())
found = (
    match.group(1 if match.re.groups else 0)
    for match in re.finditer(pattern, text, re.MULTILINE)
)
sys.stdout.write(json.dumps([one for one in found if one is not None]))
"""


def find_all(pattern: str, text: str, *, seconds: float = SECONDS) -> list[str]:
    """Return what a pattern finds in a text, in order: its first group, or all of it.

    Args:
        pattern: A regular expression; ``^`` and ``$`` stand at every line.
        text: What was printed.
        seconds: How long the search may take. One that takes longer finds nothing.
    """
    command = [sys.executable, "-I", "-S", "-c", _LOOK]
    try:
        done = subprocess.run(
            command,
            input=json.dumps([pattern, text]).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return []
    found: list[str] = json.loads(done.stdout) if done.returncode == 0 else []
    return found
