"""A process, what it is, and what it reached for."""

from typing import Literal

from reprobundle.run.events.base import Event


class Start(Event, frozen=True, tag="start"):
    """The recorder entered a process; always the first line of a file.

    `kind` is ``main`` for the first entered process of the session, ``fork`` after
    a fork, ``helper`` for a known service process, ``python`` for any other.
    """

    pid: int
    parent_pid: int
    kind: Literal["main", "python", "fork", "helper"]
    argv: tuple[str, ...]
    executable: str
    working_directory: str


class FactEvent(Event, frozen=True, tag="fact"):
    """One environment fact, or the reason why it is unknown (then value is null)."""

    name: str
    value: bool | int | float | str | tuple[str, ...] | None
    unknown: str = ""
    source: str = ""


class Open(Event, frozen=True, tag="open"):
    """A file was opened; sent once for each path and mode in a process."""

    path: str
    mode: Literal["read", "write"]


class Child(Event, frozen=True, tag="child"):
    """This process started another one."""

    argv: tuple[str, ...]
    executable: str


class Network(Event, frozen=True, tag="network"):
    """This process looked up or connected to a host; sent once for each target."""

    target: str


class VariableEvent(Event, frozen=True, tag="variable"):
    """The command read a variable that this process had from its parent.

    Sent once for each name; never with the value. Those whose values are recorded
    (``env.*``) are left out. Without a name: all variables were gone through there.
    """

    name: str
    where: str


class RankEvent(Event, frozen=True, tag="rank"):
    """This process is one rank of a distributed run.

    Sent once from the variables a launcher set (`how` is ``environment``) and once
    from ``torch.distributed`` (`how` is ``process group``), which counts more.
    """

    rank: int
    world_size: int
    local_rank: int | None
    how: Literal["environment", "process group"]
