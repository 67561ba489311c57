"""Call the system's ``ssh-keygen``, which makes and checks every signature.

Source: OpenSSH, ssh-keygen(1), ``-Y`` and "ALLOWED SIGNERS".
"""

from __future__ import annotations

import shutil
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from reprobundle.errors import EnvironmentUnusableError
from reprobundle.format.signature import NAMESPACE
from reprobundle.temporary.guarded import owned_folder

_TIMEOUT_SECONDS = 60
_SIGNING_TIMEOUT_SECONDS = 600  # a person types a passphrase or touches a key


class Answer(NamedTuple):
    """What ssh-keygen said.

    Attributes:
        is_good: Whether it ended with status 0.
        printed: What it wrote to its standard output.
        complaint: What it wrote to its standard error, in one line.
    """

    is_good: bool
    printed: bytes
    complaint: str


def has_ssh_keygen() -> bool:
    """Return whether there is an ssh-keygen on the path."""
    return shutil.which("ssh-keygen") is not None


def make_key(path: Path) -> Answer:
    """Write a new key without a passphrase to `path`, its public half to `path`.pub."""
    return _call(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)], b"")


def make_signature(key: Path, document: bytes, *, namespace: str = NAMESPACE) -> Answer:
    """Sign `document` with `key`; the signature is what was printed.

    `key` may be a private key, or a public one whose private half the agent or a
    security key holds; ssh-keygen asks on the terminal for what it needs.
    """
    arguments = ["-Y", "sign", "-q", "-f", str(key), "-n", namespace]
    return _call(arguments, document, timeout_seconds=_SIGNING_TIMEOUT_SECONDS)


def matches(signature: Path, document: bytes) -> Answer:
    """Tell whether `signature` is one over `document` in our namespace, by any key."""
    return _call(
        ["-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(signature)], document
    )


def find_principals(signature: Path, signers: Path, at: str = "") -> Answer:
    """Look up who may sign with the key of `signature`, one name a line."""
    return _call(
        ["-Y", "find-principals", "-s", str(signature), "-f", str(signers), *_when(at)],
        b"",
    )


def verify_signature(
    signature: Path,
    document: bytes,
    *,
    signers: Path,
    principal: str,
    revoked: Path | None = None,
    at: str = "",
) -> Answer:
    """Tell whether `principal` signed `document` with a key that is theirs.

    Args:
        signature: File with the armoured signature.
        document: The signed bytes.
        signers: File in the form of allowed_signers.
        principal: Who should have signed.
        revoked: List of revoked keys.
        at: Time at which the key must be valid, ``YYYYMMDD[HHMM[SS]]``; empty for now.
    """
    arguments = ["-Y", "verify", "-f", str(signers), "-I", principal]
    arguments += ["-n", NAMESPACE, "-s", str(signature), *_when(at)]
    if revoked is not None:
        arguments += ["-r", str(revoked)]
    return _call(arguments, document)


def written(data: bytes, folder: Path, name: str) -> Path:
    """Write `data` where ssh-keygen can read it."""
    path = folder / name
    path.write_bytes(data)
    return path


def scratch() -> AbstractContextManager[Path]:
    """Give a folder that only this user can read."""
    return owned_folder("reprobundle-sign-")


def _when(at: str) -> list[str]:
    return [f"-Overify-time={at}"] if at else []


def _call(
    arguments: list[str], document: bytes, timeout_seconds: int = _TIMEOUT_SECONDS
) -> Answer:
    try:
        ended = subprocess.run(
            ["ssh-keygen", *arguments],  # noqa: S607 - the user's own OpenSSH
            input=document,
            capture_output=True,
            check=False,
            timeout=timeout_seconds,
        )
    except FileNotFoundError as error:
        raise EnvironmentUnusableError(
            "there is no ssh-keygen on the path",
            advice="install OpenSSH 8.9 or newer",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise EnvironmentUnusableError(
            f"ssh-keygen gave no answer within {timeout_seconds} s"
        ) from error
    complaint = " ".join(ended.stderr.decode("utf-8", "replace").split())
    return Answer(ended.returncode == 0, ended.stdout, complaint)
