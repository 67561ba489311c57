"""Ask the agent on the other machine through the system's own OpenSSH.

The user's configuration, keys, agent and known hosts count as they stand; what is laid
over them only closes doors (no forwarding of keys or ports) and makes a dead connection
show within a minute. Each request is a connection of its own, so none has to last.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec

from reprobundle.errors import BadCallError, EnvironmentUnusableError
from reprobundle.handoff.answers import understood
from reprobundle.handoff.errors import (
    ConnectionLostError,
    RefusedThereError,
    UnreachableError,
)
from reprobundle.handoff.far.files import MARK
from reprobundle.handoff.sent import STARTER, agent_source

LOST = 255  # What ssh itself ends with when it, and not the command, failed (ssh(1)).
GREETING_LIMIT_BYTES = 1 << 20
BLOCK_BYTES = 1 << 18
OPTIONS = (
    "ForwardAgent=no",
    "ForwardX11=no",
    "ClearAllForwardings=yes",
    "PermitLocalCommand=no",
    "ConnectTimeout=20",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=3",
)
# Words of ssh that no further try will change, and what to do about them.
FINAL = (
    ("host key verification failed", "compare its key, then: ssh {destination} true"),
    ("remote host identification has changed", "find out why before you go on"),
    ("permission denied", "see that `ssh {destination} true` works"),
    ("could not resolve hostname", "check the name of the host"),
    ("too many authentication failures", "name one key: --ssh-option IdentityFile=…"),
    ("bad configuration option", "correct the option"),
    ("no such file or directory", "check the files that the options name"),
    ("connection refused", "see that a server listens there, and the port"),
)
_DESTINATION = re.compile(r"[A-Za-z0-9_.%+\[\]:/@~-]{1,255}")


@dataclass(frozen=True)
class Destination:
    """Where to, and how ssh is called for it.

    Attributes:
        name: ``user@host``, or a name from the ssh configuration.
        options: Further ``-o`` options of ssh, which win over ours.
        port: A port, or 0 for the configured one.
    """

    name: str
    options: tuple[str, ...] = ()
    port: int = 0

    def __post_init__(self) -> None:
        """Refuse what ssh would take for an option."""
        if self.name.startswith("-") or not _DESTINATION.fullmatch(self.name):
            raise BadCallError(
                f"{self.name!r} is no destination of ssh", advice="write USER@HOST"
            )

    def command(self, remote: str) -> list[str]:
        """Return the call of ssh that runs `remote` there."""
        ssh = shutil.which("ssh")
        if ssh is None:
            raise EnvironmentUnusableError(
                "there is no ssh on the path", advice="install OpenSSH's client"
            )
        # Nobody can answer a question where there is no terminal.
        batch = () if sys.stdin.isatty() else ("BatchMode=yes",)
        options = (
            part for one in (*self.options, *OPTIONS, *batch) for part in ("-o", one)
        )
        port = ("-p", str(self.port)) if self.port else ()
        return [ssh, "-T", *options, *port, "--", self.name, remote]


class Session:
    """One connection with one request: a process of ssh and what it has said."""

    def __init__(self, destination: Destination, remote: str, verb: str = "") -> None:
        self.destination = destination
        self.verb = verb
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 -- closed in `close`
        self._process = subprocess.Popen(
            destination.command(remote),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )
        self.said = False

    @property
    def _input(self) -> IO[bytes]:
        assert self._process.stdin is not None  # noqa: S101 -- it was asked for
        return self._process.stdin

    @property
    def _output(self) -> IO[bytes]:
        assert self._process.stdout is not None  # noqa: S101 -- it was asked for
        return self._process.stdout

    def send(self, data: bytes) -> None:
        """Send bytes; a connection that is gone shows when the answer is read."""
        with contextlib.suppress(BrokenPipeError):
            self._input.write(data)

    def send_file(self, path: Path, offset: int, told: Callable[[int], None]) -> None:
        """Send a file from `offset` to its end, telling the bytes of each block."""
        with path.open("rb") as stream:
            stream.seek(offset)
            while block := stream.read(BLOCK_BYTES):
                try:
                    self._input.write(block)
                except BrokenPipeError:
                    return
                told(len(block))

    def flush(self) -> None:
        """Hand on what was sent so far."""
        with contextlib.suppress(BrokenPipeError):
            self._input.flush()

    def end_input(self) -> None:
        """Say that nothing more will be sent."""
        with contextlib.suppress(BrokenPipeError):
            self._input.close()

    def answer(self) -> dict[str, Any]:
        """Return the next answer; what a login shell prints before it is left out.

        Raises:
            UnreachableError, ConnectionLostError: It did not come.
            RefusedThereError: It says that the request cannot be met.
            EnvironmentUnusableError: It has not the form of an answer to the request.
        """
        seen = 0
        mark = MARK.encode()
        while seen < GREETING_LIMIT_BYTES:
            line = self._output.readline(GREETING_LIMIT_BYTES)
            if not line.endswith(b"\n"):
                break
            if line.startswith(mark):
                self.said = True
                return self._judged(line[len(mark) :])
            seen += len(line)
        raise self.failure()

    def _judged(self, line: bytes) -> dict[str, Any]:
        where = self.destination.name
        try:
            found = understood(self.verb, line)
        except msgspec.DecodeError as error:
            raise EnvironmentUnusableError(
                f"{where} answers {self.verb!r} in another form than this program: "
                f"{error}",
                advice="see what stands between, and whether that machine is yours",
            ) from error
        if "refused" in found:
            text = found["refused"].lower()
            raise RefusedThereError(f"{where}: {text}", number=found["errno"])
        return found

    def read(self, count: int) -> Iterator[bytes]:
        """Yield exactly `count` bytes that follow an answer.

        Raises:
            ConnectionLostError: They did not all come.
        """
        while count:
            block = self._output.read(min(count, BLOCK_BYTES))
            if not block:
                raise self.failure()
            count -= len(block)
            yield block

    def text(self) -> str:
        """Return all that a command printed, once it has ended."""
        data = self._output.read(GREETING_LIMIT_BYTES)
        if self._process.wait() == LOST:
            raise self.failure()
        return data.decode(errors="replace")

    def failure(self) -> EnvironmentUnusableError:
        """Return the error that the end of this connection amounts to."""
        self.end_input()
        status = self._process.wait()
        self._stderr.seek(0)
        words = self._stderr.read(1 << 16).decode(errors="replace")
        lines = [line.strip() for line in words.splitlines() if line.strip()]
        name = self.destination.name
        last = lines[-1] if lines else f"ssh ended with status {status}"
        if not self.said:
            for sign, advice in FINAL:
                if status == LOST and sign in words.lower():
                    return UnreachableError(
                        f"{name} cannot be reached: {last}",
                        advice=advice.format(destination=name),
                    )
            if status != LOST:
                return UnreachableError(
                    f"{name} answers, and not as a machine with Python would: {last}",
                    advice=f"see what `ssh {name} true` prints",
                )
        return ConnectionLostError(
            f"the connection to {name} was lost: {last}",
            said=self.said,
            advice="call again: it goes on from there",
        )

    def close(self) -> None:
        """End the connection."""
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


@contextlib.contextmanager
def shell(destination: Destination, script: str) -> Iterator[Session]:
    """Run a script of the Bourne shell there, whatever the login shell is."""
    session = Session(destination, "exec /bin/sh -s")
    try:
        session.send(script.encode())
        session.end_input()
        yield session
    finally:
        session.close()


@dataclass(frozen=True)
class Agent:
    """The other machine, as it is asked.

    Attributes:
        destination: Where it is.
        python: Its interpreter that runs the agent.
        root: Folder of all hand-offs there; ``~`` is the home folder.
        name: Folder of this hand-off below it.
    """

    destination: Destination
    python: str
    root: str
    name: str

    @contextlib.contextmanager
    def asked(self, verb: str, **request: object) -> Iterator[Session]:
        """Send a request and give the connection, to read its answers from."""
        command = [self.python, "-I", "-S", "-c", STARTER]
        session = Session(self.destination, f"exec {shlex.join(command)}", verb)
        try:
            source = agent_source()
            document = {**request, "verb": verb, "root": self.root, "name": self.name}
            session.send(f"{len(source)}\n".encode() + source)
            session.send(json.dumps(document).encode() + b"\n")
            session.flush()
            yield session
        finally:
            session.close()

    def ask(self, verb: str, **request: object) -> dict[str, Any]:
        """Send a request and return its one answer.

        Raises:
            UnreachableError, ConnectionLostError, RefusedThereError: See there.
        """
        with self.asked(verb, **request) as session:
            session.end_input()
            return session.answer()
