"""The shape of every answer of the other machine: what does not fit it is no answer.

The other machine may be anyone's, and its program is run by an interpreter we have not
seen. So nothing it says is taken apart before it has the form that is asked for.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

import msgspec
from msgspec import Meta

Size = Annotated[int, Meta(ge=0, le=1 << 60)]
_Document = dict[str, Any]


class Refusal(TypedDict):
    """What cannot be done; `errno` is the system's number, 0 for none."""

    refused: str
    errno: int


class _Facts(TypedDict):
    host: str
    system: str
    machine: str
    kernel: str
    os: str
    build: str


class _Memory(TypedDict):
    total_bytes: Size
    free_bytes: Size


class _Machine(TypedDict):
    python: str
    implementation: str
    executable: str
    facts: _Facts
    libc: list[str]
    mac: str
    disk_free_bytes: Size
    memory: _Memory
    torch: str
    named_python: bool
    tools: list[str]
    folder: str
    writable: bool
    boot: str


class _There(TypedDict):
    state: Literal["whole", "part", "none"]


class _Here(_There, total=False):
    size: Size
    sha256: str


class _Have(TypedDict):
    files: dict[str, _Here]


class _Stored(TypedDict):
    stored: dict[str, str]


class _Stated(TypedDict):
    size: Size
    sha256: str


class _Done(TypedDict):
    installed: bool


class _Installed(_Done, total=False):
    changed: bool


class _Ran(TypedDict):
    status: int
    out: str
    err: str


class _Note(TypedDict):
    id: str
    where: str
    text: str


class _Begun(TypedDict):
    started: bool


class _Started(_Begun, total=False):
    notes: list[_Note]


class _Asked(TypedDict, total=False):
    options: list[str]
    python: str
    environment: dict[str, str]


class _Ended(TypedDict, total=False):
    status: int | None
    signal: int
    ended: str
    problem: str
    least_free_bytes: int
    environment: dict[str, str]


class _Progress(TypedDict):
    step: str
    done: int
    total: int


class _Result(TypedDict):
    exit_status: int
    verdict: str


class _Beat(TypedDict):
    at: float
    free_bytes: int


class _Standing(TypedDict, total=False):
    ended: _Ended | None
    process: _Document | None
    asked: _Asked | None


class _Status(_Standing):
    state: Literal[
        "none",
        "starting",
        "running",
        "finished",
        "failed",
        "killed",
        "crashed",
        "rebooted",
        "cancelled",
    ]
    exists: bool
    boot: str
    clock: float
    disk_free_bytes: Size
    progress: _Progress | None
    result: _Result | None
    heartbeat: _Beat | None
    cancelled: _Document | None
    notes: list[_Note]
    changes: list[str]
    record_bytes: Size
    log_bytes: Size
    log_tail: str
    attempts: Size


class _Block(TypedDict):
    bytes: Size


class _Piece(_Block, total=False):
    end: bool


class _Cancelled(TypedDict):
    cancelled: bool


class _Entry(TypedDict):
    path: str
    files: Size
    size_bytes: Size


class _Listing(TypedDict):
    folder: str
    exists: bool
    entries: list[_Entry]


class _Cleaned(TypedDict):
    problems: list[str]
    exists: bool


_SHAPES: dict[str, Any] = {
    "look": _Machine,
    "have": _Have,
    "put": _Stored,
    "get": _Stated,
    "install": _Installed,
    "run": _Ran,
    "start": _Started,
    "status": _Status,
    "logs": _Piece,
    "cancel": _Cancelled,
    "listing": _Listing,
    "clean": _Cleaned,
}


def understood(verb: str, line: bytes) -> dict[str, Any]:
    """Return the answer to a request; a refusal has the key ``refused``.

    Args:
        verb: What was asked.
        line: One JSON document.

    Raises:
        msgspec.DecodeError: It is no JSON, or not of the form of that answer.
    """
    try:
        found = msgspec.json.decode(line)
    except RecursionError:
        raise msgspec.DecodeError("it is nested too deeply") from None
    refusal = isinstance(found, dict) and "refused" in found
    shape = Refusal if refusal else _SHAPES[verb]
    answer: dict[str, Any] = msgspec.convert(found, shape)
    return answer
