"""Where a run's random numbers came from, and what it began with."""

from typing import Final, Literal

import msgspec

from reprobundle.format.record.values import Count, Number

# What a torch.Generator holds before anybody seeds it (c10::default_rng_seed_val).
_TORCH_DEFAULT_SEED: Final = "67280421310721"
# Where torch seeds the processes of a data loader.
_TORCH_WORKER: Final = "torch/utils/data/_utils/worker.py"


class SeedCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One call that set a seed: which function, which value, where in the code.

    Attributes:
        function: Such as ``torch.manual_seed``.
        value: The seed as text; ``None`` where the caller gave none.
        where: ``file:line`` of the caller.
        pid: Process that made the call.
        drawn: Where no seed was given, the one that the system drew, as far as the
            generator tells it; empty otherwise. It differs from run to run.
    """

    function: str
    value: str
    where: str
    pid: int
    drawn: str = ""

    @property
    def is_chosen(self) -> bool:
        """Tell whether somebody chose this seed (`is_chosen_seed`)."""
        return is_chosen_seed(self.function, self.value, self.where, self.drawn)


def is_chosen_seed(function: str, value: str, where: str, drawn: str) -> bool:
    """Tell whether somebody chose a seed.

    A call without a seed takes one from the system; a ``torch.Generator`` that nobody
    seeds has a fixed one; and the workers of a data loader derive theirs from a
    generator that may never have been seeded.
    """
    given = value != "None" and not drawn
    default = (function, value) == ("torch.Generator", _TORCH_DEFAULT_SEED)
    return given and not default and _TORCH_WORKER not in where


class Loader(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One pass over a data loader of torch.

    Attributes:
        where: ``file:line`` that started the pass.
        base_seed: What the workers' seeds are counted from. Drawn from the loader's
            generator, or else from torch's CPU generator: equal base seeds mean that
            both runs had drawn the same numbers until then.
        workers: Worker processes; 0 when the process loads by itself.
        start_method: ``fork``, ``spawn`` or ``forkserver``; empty without workers.
        batch_size: Samples in a batch; None when the loader forms no batches.
        sampler: Class that orders the samples.
        generator_seed: Seed of the generator given to the loader; empty if none was.
    """

    where: str
    base_seed: str
    workers: Count = 0
    start_method: str = ""
    batch_size: int | None = None
    sampler: str = ""
    generator_seed: str = ""


class StartTensor(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One tensor as the run began with it: a fingerprint, no copy.

    Attributes:
        name: ``<module>/<parameter>``, ``<module>/input/<place>`` or
            ``batch/<place>``; below ``rank<k>/`` in a distributed run.
        kind: ``weight`` (a parameter or buffer just before the first call of its
            module, or the first optimizer step), ``input`` (of that call), ``batch``
            (the first one of a data loader).
        dtype: As torch or numpy names it.
        shape: Extent of each axis.
        fingerprint: BLAKE2b, 16 hexadecimal digits, of its bytes in row-major order;
            empty when it was not read.
        sampled: Whether only a part was read, because it is large.
        l2: Euclidean norm of what was read, in float64: it tells other values from
            other last digits. None for dtypes without one.
        reason: Why it was not read; empty when it was.
    """

    name: str
    kind: Literal["weight", "input", "batch"]
    dtype: str
    shape: tuple[int, ...]
    fingerprint: str = ""
    sampled: bool = False
    l2: Number | None = None
    reason: str = ""


DrawMode = Literal["native", "portable", "recorded"]


class Drawn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How random draws were made (docs/draws.md).

    Attributes:
        mode: ``native``: by the generator of each device; ``portable``: by the CPU's
            generator for every device; ``recorded``: portable, with the values of the
            reference as far as they are kept.
        moved: Draws for a device that the CPU's generator made.
        followed: Draws of the main process that were counted; mode ``recorded`` only.
        taken: Draws, weights and batches whose values came from the reference.
        differing: Those of them for which this machine had other values.
        missing: Kept draws of the reference that the run did not make.
        stopped: Why no more values were taken; empty if nothing spoke against it.
        kept: Draws, weights and batches that are kept here.
        complete: Whether everything that was drawn is kept.
        member: Member that holds them, relative to the record; empty if none does.
        on_device: Devices whose own generator was drawn from nevertheless.
    """

    mode: DrawMode = "native"
    moved: Count = 0
    followed: Count = 0
    taken: Count = 0
    differing: Count = 0
    missing: Count = 0
    stopped: str = ""
    kept: Count = 0
    complete: bool = False
    member: str = ""
    on_device: tuple[str, ...] = ()


class Randomness(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seeds, generator states and short draws that tell two machines apart.

    Attributes:
        seed: Seed that ``--seed`` set before the user's code, or None.
        calls: Every seed call seen, in order.
        python_hash_seed: ``PYTHONHASHSEED`` of the run.
        initial: Fingerprint (BLAKE2b, 16 hexadecimal digits) of each generator's
            state before the user's code, by generator name; of a generator that the
            code made (``numpy.Generator#1``, ``python.Random#1``) when it was made; of
            an accelerator when a tensor was first seen there.
        final: The same at the end of the main process; empty if it did not end.
        draws: Fingerprint of short draws from fresh generators with a fixed seed, by
            generator: equal draws mean equal generators and equal CPU code paths.
        absent: Modules with random generators that no process of the run loaded:
            every one of them said so at its end. Empty when that is not known.
        loaders: The passes over data loaders in the main process, at most 20.
        start: Weights, first inputs and first batches the run began with.
        drawn: How random draws were made.
    """

    seed: int | None = None
    calls: tuple[SeedCall, ...] = ()
    python_hash_seed: str = ""
    initial: dict[str, str] = {}
    final: dict[str, str] = {}
    draws: dict[str, str] = {}
    absent: tuple[str, ...] = ()
    loaders: tuple[Loader, ...] = ()
    start: tuple[StartTensor, ...] = ()
    drawn: Drawn = Drawn()
