"""A bundle that travels, and lies there, encrypted: by the system's own age or gpg.

The plain bundle is there only while the replay runs: what watches the run decrypts it
before, and removes it afterwards however the run ended.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reprobundle.errors import BadCallError, EnvironmentUnusableError
from reprobundle.handoff.wish import BUNDLE_NAME, Wish
from reprobundle.run.data_rules import AGE_SIGNS

DEFAULT_IDENTITY = "~/.ssh/id_ed25519"


@dataclass(frozen=True)
class Encryption:
    """For whom, and with what.

    Attributes:
        tool: The program, here and there.
        recipients: As the tool takes them.
        identity: File there with a key of one of them; ``age`` alone needs it.
    """

    tool: Literal["age", "gpg"]
    recipients: tuple[str, ...]
    identity: str

    @classmethod
    def of(cls, wish: Wish) -> Encryption | None:
        """Return what a call asks for; None for no encryption.

        Raises:
            BadCallError: Its recipients belong to both tools.
            EnvironmentUnusableError: The tool is not here.
        """
        if not wish.encrypt_to:
            return None
        if not all(map(str.strip, wish.encrypt_to)):
            raise BadCallError(
                "a recipient is empty", advice="name one: --encrypt-to RECIPIENT"
            )
        age = [one.startswith(AGE_SIGNS) for one in wish.encrypt_to]
        if any(age) != all(age):
            raise BadCallError(
                "some recipients are of age, some of gpg", advice="name one kind"
            )
        tool: Literal["age", "gpg"] = "age" if age[0] else "gpg"
        if shutil.which(tool) is None:
            raise EnvironmentUnusableError(
                f"{tool} is not installed here",
                advice=f"install {tool}, here and on the other machine",
            )
        return cls(tool, wish.encrypt_to, wish.identity or DEFAULT_IDENTITY)

    def command(self, source: Path, target: Path) -> list[str]:
        """Return the call that encrypts `source` into `target`."""
        to = "-r" if self.tool == "age" else "--recipient"
        for_whom = [part for one in self.recipients for part in (to, one)]
        if self.tool == "age":
            return ["age", *for_whom, "-o", str(target), str(source)]
        output = ["--output", str(target), "--encrypt", str(source)]
        # A key that a server names would be trusted without anybody having looked.
        return [
            "gpg",
            "--quiet",
            "--no-auto-key-locate",
            "--batch",
            "--yes",
            "--trust-model",
            "always",
            *for_whom,
            *output,
        ]

    def steps(self) -> tuple[list[list[str]], list[str]]:
        """Return the commands there before the replay, and what to remove after."""
        plain = f"{{folder}}/{BUNDLE_NAME}"
        sealed = f"{plain}.{self.tool}"
        if self.tool == "age":
            decrypt = ["age", "-d", "-i", self.identity, "-o", plain, sealed]
        else:
            decrypt = ["gpg", "--batch", "--yes", "-o", plain, "-d", sealed]
        return [decrypt], [BUNDLE_NAME]


@contextlib.contextmanager
def encrypted_copy(
    encryption: Encryption | None,
    bundle: Path,
    folder: Path,
    say: Callable[[str], None],
) -> Iterator[Path]:
    """Give the file that travels: the bundle, or an encrypted copy of it.

    The copy is kept until this ends well: encrypted anew it would be another file, and
    a copying that was cut off could not go on.

    Args:
        encryption: For whom; None gives the bundle itself.
        bundle: The bundle.
        folder: Where the copy is kept.
        say: Told each step as one line.

    Raises:
        EnvironmentUnusableError: The tool does not encrypt it.
    """
    if encryption is None:
        yield bundle
        return
    whom = hashlib.sha256("\0".join(encryption.recipients).encode()).hexdigest()
    kept = folder / f"encrypted-{whom[:12]}"
    target = kept / f"{bundle.name}.{encryption.tool}"
    if not target.exists():
        kept.mkdir(parents=True, exist_ok=True, mode=0o700)
        say(f"encrypting the bundle with {encryption.tool}")
        part = kept / "part"
        part.unlink(missing_ok=True)
        _encrypt(encryption, bundle, part)
        part.replace(target)
    yield target
    target.unlink()
    kept.rmdir()


def _encrypt(encryption: Encryption, bundle: Path, target: Path) -> None:
    done = subprocess.run(
        encryption.command(bundle, target),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode != 0:
        words = done.stdout.decode(errors="replace").strip().splitlines()
        said = words[0] if words else f"status {done.returncode}"
        raise EnvironmentUnusableError(
            f"{encryption.tool} does not encrypt the bundle: {said}",
            advice="check the recipients",
        )
