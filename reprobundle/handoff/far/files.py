"""Files of the hand-off: named inside its folder, copied with resume, given back."""

import fcntl
import hashlib
import json
import os
import shutil
import signal
import sys
import time
from contextlib import nullcontext
from typing import Any

from reprobundle.handoff.far.machine import start_token

MARK = "reprobundle-agent "
BLOCK_BYTES = 1 << 20
POLL_SECONDS = 0.1
TAKE_OVER_SECONDS = 10


class Refused(Exception):  # noqa: N818 -- an answer, and not an accident
    """What cannot be done; the answer says why."""


def say(answer: "dict[str, Any]") -> None:
    """Send one answer."""
    sys.stdout.buffer.write((MARK + json.dumps(answer) + "\n").encode())
    sys.stdout.buffer.flush()


def now() -> str:
    """Return the time, UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def root(request: "dict[str, Any]") -> str:
    """Return the folder of this hand-off."""
    return str(os.path.join(os.path.expanduser(request["root"]), request["name"]))


def inside(folder: str, name: str) -> str:
    """Return the path of a file of the hand-off; it cannot lie outside of it."""
    path = os.path.normpath(os.path.join(folder, name))
    if not path.startswith(folder + os.sep):
        raise Refused(f"{name!r} lies outside the folder of the hand-off")
    return path


def write_json(path: str, document: "Any") -> None:
    """Write JSON so that a reader sees the old or the new document, never half."""
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w") as stream:
        json.dump(document, stream, indent=1, sort_keys=True)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, path)


def read_json(path: str) -> "dict[str, Any] | None":
    """Return a document; None when it is missing or cut short."""
    try:
        with open(path) as stream:
            found = json.load(stream)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def digest_of(path: str) -> str:
    """Return the SHA-256 of a file; empty when it cannot be read."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as stream:
            while True:
                block = stream.read(BLOCK_BYTES)
                if not block:
                    return digest.hexdigest()
                digest.update(block)
    except OSError:
        return ""


def have(request: "dict[str, Any]") -> "dict[str, Any]":
    """Tell of each file how much is here: all, a part with its digest, or nothing."""
    folder = root(request)
    # A copier of a connection that was cut may still write what it had received: its
    # part would be told with a size and a digest that do not belong together.
    with copying(folder) if os.path.isdir(folder) else nullcontext():
        return {"files": {one["path"]: _state(folder, one) for one in request["files"]}}


def _state(folder: str, one: "dict[str, Any]") -> "dict[str, Any]":
    path = inside(folder, one["path"])
    part = part_of(path, one["sha256"])
    if os.path.exists(path) and digest_of(path) == one["sha256"]:
        return {"state": "whole"}
    if not os.path.exists(part):
        return {"state": "none"}
    size = os.path.getsize(part)
    return {"state": "part", "size": size, "sha256": digest_of(part)}


def part_of(path: str, sha256: str) -> str:
    """Return the name of an unfinished copy: another content never goes on with it."""
    return f"{path}.{sha256[:12]}.part"


def put(request: "dict[str, Any]") -> "dict[str, Any]":
    """Take files from the standard input, each from its offset to its end."""
    folder = root(request)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    stored = {}
    with copying(folder):
        for one in request["files"]:
            path = inside(folder, one["path"])
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            receive(part_of(path, one["sha256"]), one["offset"], one["size"])
            stored[one["path"]] = finish(path, one["sha256"])
    return {"stored": stored}


def copying(folder: str) -> "Any":
    """Become the only one that copies; one that hangs in a dead connection is ended."""
    claim = open(os.path.join(folder, "copy.lock"), "a+")  # noqa: SIM115 -- it is returned
    deadline = time.monotonic() + TAKE_OVER_SECONDS
    while True:
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            if time.monotonic() > deadline:
                raise Refused("another hand-off is copying here") from None
        claim.seek(0)
        pid, _, token = claim.read().partition(" ")
        if pid.isdigit() and token and start_token(int(pid)) == token.strip():
            os.kill(int(pid), signal.SIGTERM)
        time.sleep(POLL_SECONDS)
    claim.seek(0)
    claim.truncate()
    claim.write(f"{os.getpid()} {start_token(os.getpid())}")
    claim.flush()
    return claim


def receive(part: str, offset: int, size: int) -> None:
    """Write what arrives behind `offset`; what was written stays when it ends early."""
    with open(part, "ab") as stream:
        stream.truncate(offset)
        left = size - offset
        while left:
            block = sys.stdin.buffer.read(min(left, BLOCK_BYTES))
            if not block:
                raise Refused(f"the connection ended while {part} was copied")
            stream.write(block)
            left -= len(block)
        stream.flush()
        os.fsync(stream.fileno())


def finish(path: str, sha256: str) -> str:
    """Give a copy its name if it is the right one, else remove it."""
    part = part_of(path, sha256)
    got = digest_of(part)
    if got != sha256:
        os.remove(part)
        return f"its digest is {got[:12]}, {sha256[:12]} was sent"
    os.replace(part, path)
    return "stored"


def get(request: "dict[str, Any]") -> None:
    """Send a file from an offset to its end."""
    path = inside(root(request), request["path"])
    if not os.path.isfile(path):
        name = request["path"]
        raise Refused(f"there is no {name}")
    size = os.path.getsize(path)
    say({"size": size, "sha256": digest_of(path)})
    with open(path, "rb") as stream:
        stream.seek(request["offset"])
        shutil.copyfileobj(stream, sys.stdout.buffer, BLOCK_BYTES)
    sys.stdout.buffer.flush()
