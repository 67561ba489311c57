"""Run uv once, from a thread that somebody else may end."""

from __future__ import annotations

import re
import subprocess
import threading
from pathlib import Path

from reprobundle.errors import NoResolutionError
from reprobundle.temporary.guarded import told_to_guard

TIMEOUT_SECONDS = 120
_ENDED = "it was ended before it was made"


class Running:
    """The call of uv under way, which another thread may end."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._ended = False
        self._change = threading.Lock()

    def run(self, command: list[str], folder: Path, environment: dict[str, str]) -> str:
        """Run a program to its end and return what it wrote to its standard error.

        Raises:
            NoResolutionError: It failed, took too long, or was ended.
        """
        with self._change:
            if self._ended:
                raise NoResolutionError(_ENDED)
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
        with self._process as process, told_to_guard(process.pid, folder):
            try:
                _, printed = process.communicate(timeout=TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired as error:
                process.kill()
                message = f"no answer from uv within {TIMEOUT_SECONDS} s"
                raise NoResolutionError(message) from error
        if self._ended:
            raise NoResolutionError(_ENDED)
        if process.returncode != 0:
            raise NoResolutionError(_reason(printed))
        return printed

    def end(self) -> None:
        """End what runs, and let nothing more begin."""
        with self._change:
            self._ended = True
            if self._process is not None and self._process.poll() is None:
                self._process.kill()


def _reason(printed: str) -> str:
    """Return uv's own reason in one line, without addresses."""
    text = re.sub(r"\S+://\S+", "an index", printed.partition("hint:")[0])
    text = re.sub(r"^\s*(?:[×╰─▶]|error:|cause:)+\s*", "", text, flags=re.MULTILINE)
    words = " ".join(text.split())
    return f"uv says: {words[:600]}" if words else "uv failed without a word"
