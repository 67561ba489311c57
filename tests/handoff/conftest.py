"""An sshd of our own on the loopback, and one bundle that is handed over to it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.handoff.cutting import kill_sessions

CONFIG = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
PidFile {folder}/pid
AuthorizedKeysFile {folder}/key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
ForceCommand HOME={folder}/home; export HOME; cd; echo hello from a profile; \
eval "$SSH_ORIGINAL_COMMAND"
"""

SCRIPT = """\
import json, os, time
from pathlib import Path

print("begun", flush=True)
while os.path.exists(os.path.expanduser("~/hold")):
    time.sleep(0.05)
Path("out.json").write_text(json.dumps({"size": len(Path("data.bin").read_bytes())}))
"""

WHO = "ada@lab.example"

POLICY = {
    "data": {
        "data_class": "clinical",
        "transfer": "forbidden",
        "delete_after_days": 30,
        "reason": "approval 12/26",
    }
}


@dataclass(frozen=True)
class Far:
    """The other machine, and this one's folders.

    Attributes:
        folder: Everything of both.
        port: Where its sshd listens.
    """

    folder: Path
    port: int

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def call(self, *arguments) -> list[str]:
        return [sys.executable, "-m", "reprobundle", "handoff", *map(str, arguments)]

    def environment(self) -> dict[str, str]:
        own = {
            "XDG_STATE_HOME": str(self.folder / "state"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
        }
        return {**os.environ, **own}

    def run(self, *arguments) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.call(*arguments),
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def to_it(self, bundle, *more) -> tuple[str, ...]:
        """Return the arguments of a hand-off to it."""
        options = (
            f"IdentityFile={self.folder}/key",
            "IdentitiesOnly=yes",
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
        )
        named = [part for one in options for part in ("--ssh-option", one)]
        return ("127.0.0.1", bundle, "-p", self.port, *named, "--yes", *more)

    def cut_after(self, count, done) -> tuple[str, str]:
        """Return options that kill its sshd process once after so many bytes."""
        script = Path(__file__).with_name("cutting.py")
        words = (sys.executable, script, "%h", "%p", count, self.folder / "pid", done)
        return ("--ssh-option", f"ProxyCommand={' '.join(map(str, words))}")

    def kill_sessions(self) -> None:
        kill_sessions(self.folder / "pid")


@pytest.fixture(scope="session")
def far(tmp_path_factory):
    folder = tmp_path_factory.mktemp("far")
    (folder / "home").mkdir()
    for name in ("host", "key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name],
            check=True,
        )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "config").write_text(CONFIG.format(folder=folder, port=port))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    server = shutil.which("sshd") or "/usr/sbin/sshd"
    with (folder / "log").open("w+b") as log:
        process = subprocess.Popen(
            [server, "-D", "-e", "-f", folder / "config"],
            stderr=subprocess.PIPE,
            stdout=log,
        )
        assert process.stderr is not None
        for line in process.stderr:
            if b"listening" in line:
                break
        else:
            pytest.fail("sshd does not start")
        yield Far(folder, port)
        process.terminate()
        process.stderr.close()
        process.wait()


@pytest.fixture(scope="session")
def sealed(far):
    """Return a bundle whose policy forbids transfer; not to be changed."""
    project = far.folder / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT)
    (project / "data.bin").write_bytes(os.urandom(200_000))
    (far.folder / "policy.json").write_text(json.dumps(POLICY))
    target = far.folder / "work.rpb.zip"
    options = ("--passes", "measured", "--policy", far.folder / "policy.json")
    command = (sys.executable, "-m", "reprobundle", "pack", "-q", "-o", target)
    done = subprocess.run(
        [*command, "--seed", "7", *options, "--", "python", "train.py"],
        cwd=project,
        env=far.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture
def bundle(sealed, tmp_path):
    return Path(shutil.copy(sealed, tmp_path / "work.rpb.zip"))


@pytest.fixture(scope="session")
def gpg_key(tmp_path_factory):
    """A key ring of our own with one key that needs no passphrase."""
    # A socket's path may have 107 bytes at most, so not below pytest's own folder.
    with tempfile.TemporaryDirectory(prefix="rpb-gpg-", dir="/tmp") as folder:
        make = ("--pinentry-mode", "loopback", "--passphrase", "")
        subprocess.run(
            ["gpg", "--homedir", folder, "--batch", *make, "--quick-gen-key", WHO],
            check=True,
            capture_output=True,
        )
        yield folder
        subprocess.run(
            ["gpgconf", "--homedir", folder, "--kill", "gpg-agent"],
            check=False,
            capture_output=True,
        )
