"""What was run, and the processes of the run."""

from typing import Literal, TypeAlias

import msgspec

from reprobundle.format.record.values import Count

Placeholder: TypeAlias = Literal["home", "user", "host"]


class Command(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was run.

    Attributes:
        argv: Arguments as given; a leading interpreter is stored by its plain name
            (``python``), and paths inside the project as ``{project}/…``.
        placeholders: Which of ``{home}``, ``{user}`` and ``{host}`` stand in `argv` for
            the home folder, account and name of the machine that runs it; where one is
            not listed, that text belongs to the command.
        working_directory: Where it ran, relative to the project (``.`` for its top).
        seed: Seed set before the user's code started, or None.
        environment: Environment variables set for the run, by name.
    """

    argv: tuple[str, ...]
    placeholders: tuple[Placeholder, ...] = ()
    working_directory: str = "."
    seed: int | None = None
    environment: dict[str, str] = {}


class Process(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One process of the run.

    Attributes:
        pid: Process id on that machine.
        parent_pid: Id of the process that started it; 0 when unknown.
        kind: ``main`` (the first Python entered), ``python`` (another Python),
            ``fork`` (a fork of an entered Python), ``helper`` (a known service
            process such as multiprocessing's resource tracker).
        part: What it was for: ``agent`` (started the ranks of a distributed run),
            ``rank`` (one of them), ``kernel`` (ran the cells of a notebook); empty for
            any other.
        argv: Its arguments, as far as they are known.
        entered: Whether the recorder ran inside it.
        ended: Whether it reported its own end; a killed process does not.
        exit_status: With which it ended, 0 to 255, if that is known.
    """

    pid: int
    parent_pid: int = 0
    kind: Literal["main", "python", "fork", "helper"] = "python"
    part: Literal["", "agent", "rank", "kernel"] = ""
    argv: tuple[str, ...] = ()
    entered: bool = True
    ended: bool = False
    exit_status: int | None = None


class Rank(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rank of a distributed run.

    Attributes:
        rank: Its number, from 0.
        world_size: How many ranks it was told there are.
        local_rank: Its number on its machine; None if it was not told.
        pid: Its process.
        joined: Whether it joined a process group of ``torch.distributed``.
        ended: Whether it reported its own end.
        steps: Optimizer steps it made.
        torch_version: Of the torch it imported; empty if it imported none.
        parameters: Digest (BLAKE2b, 16 bytes) of the parameters that
            ``DistributedDataParallel`` keeps equal, by moment: ``step 1``, ``end``.
        parameters_reason: Why there is none at the end; empty if there is one.
        seeds: Seed calls as ``function(value)``, in order.
        outputs: Names of the outputs it wrote or recorded.
    """

    rank: Count
    world_size: Count
    local_rank: int | None = None
    pid: int
    joined: bool = False
    ended: bool = False
    steps: Count = 0
    torch_version: str = ""
    parameters: dict[str, str] = {}
    parameters_reason: str = ""
    seeds: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
