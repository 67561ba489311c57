"""Seeds, generators, draws, and what a run began with."""

from typing import Literal

import msgspec

from reprobundle.run.events.base import Event


class Seed(Event, frozen=True, tag="seed"):
    """A seed was set: function, value as text, ``file:line`` of the caller.

    Where no seed was given, `drawn` is the one that the system drew, if it is known.
    """

    function: str
    value: str
    where: str
    drawn: str = ""


class Generators(Event, frozen=True, tag="generators"):
    """Fingerprints by generator name: states at start or end, or fresh draws."""

    when: Literal["initial", "final", "draws"]
    fingerprints: dict[str, str]


class DrawnEvent(Event, frozen=True, tag="drawn"):
    """How random draws are made; the last such event of a process counts.

    The fields are those of `reprobundle.format.record.Drawn`; ``file`` lies in
    ``<session>/values/``.
    """

    mode: Literal["native", "portable", "recorded"]
    moved: int = 0
    followed: int = 0
    taken: int = 0
    differing: int = 0
    missing: int = 0
    stopped: str = ""
    kept: int = 0
    complete: bool = False
    file: str = ""
    on_device: tuple[str, ...] = ()


class Absent(Event, frozen=True, tag="absent"):
    """At the end of the process these modules with generators had not been loaded."""

    modules: tuple[str, ...]


class LoaderPass(Event, frozen=True, tag="loader"):
    """A pass over a data loader began; fields as in `record.Loader`."""

    where: str
    base_seed: str
    workers: int = 0
    start_method: str = ""
    batch_size: int | None = None
    sampler: str = ""
    generator_seed: str = ""


class Began(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor that the run began with; fields as in `record.StartTensor`."""

    name: str
    kind: Literal["weight", "input", "batch"]
    dtype: str
    shape: tuple[int, ...]
    fingerprint: str = ""
    sampled: bool = False
    l2: float | Literal["nan", "inf", "-inf"] | None = None
    reason: str = ""


class Beginning(Event, frozen=True, tag="beginning"):
    """Tensors as the run began with them, of one module or one batch."""

    tensors: tuple[Began, ...]


class Parameters(Event, frozen=True, tag="parameters"):
    """Digest of all parameters that data parallelism keeps equal on every rank.

    `when` is ``step 1`` or ``end``; `digest` is empty where `reason` says why.
    """

    when: str
    digest: str
    reason: str = ""
