"""The run record: what one run of a command was, in one JSON document.

The reference and every replay share this one type (spec.md, "Run record"). A record
names its content members (outputs, logs, the memory series) and their digests; where
it lies decides what the names are relative to: ``runs/<n>/`` inside the seal,
``replays/<record id>/`` outside it.

Numbers that may be NaN or infinite are stored as the strings ``nan``, ``inf`` and
``-inf``: JSON has no form for them. Times are integer nanoseconds of a monotonic
clock, sizes are bytes.
"""

import math
from typing import Annotated, Final, Literal

import msgspec

RECORD_SCHEMA: Final = "reprobundle/record/1"

# What a torch.Generator holds before anybody seeds it (c10::default_rng_seed_val).
_TORCH_DEFAULT_SEED: Final = "67280421310721"
# Where torch seeds the processes of a data loader.
_TORCH_WORKER: Final = "torch/utils/data/_utils/worker.py"
STAND_IN: Final = "stand-in"
"""Name of the claim whose run read samples in the place of withheld files."""

Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$", max_length=64)]
DigestOrEmpty = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{64})?$", max_length=64)]
Count = Annotated[int, msgspec.Meta(ge=0)]
Number = float | Literal["nan", "inf", "-inf"]
Scalar = bool | int | float | str
FactValue = bool | int | float | str | tuple[str, ...] | None


def number(value: float) -> Number:
    """Return `value` in the form a record stores it."""
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return float(value)


def as_float(value: Number) -> float:
    """Return the float that `value` stands for."""
    return float(value)


class Fact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fact about the environment, or the reason why it is unknown.

    Attributes:
        value: What was read; None exactly when it is unknown.
        unknown: Why it could not be read; empty when it is known.
        source: How it was read, such as ``platform.release()``.
    """

    value: FactValue = None
    unknown: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        """Refuse a fact that is both known and unknown, or neither."""
        if (self.value is None) != bool(self.unknown):
            message = "a fact has either a value or the reason why it is unknown"
            raise ValueError(message)


class Command(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was run.

    Attributes:
        argv: Arguments as given; a leading interpreter is stored by its plain name
            (``python``), and paths inside the project as ``{project}/…``.
        working_directory: Where it ran, relative to the project (``.`` for its top).
        seed: Seed set before the user's code started, or None.
        environment: Environment variables set for the run, by name.
    """

    argv: tuple[str, ...]
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
            code made (``numpy.Generator#1``, ``torch.Generator#1``) when it was made.
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


class Phase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Time spent in one phase of the main process.

    Attributes:
        name: ``import``, ``model``, ``transfer``, ``data``, ``forward``,
            ``backward``, ``optimizer``, ``checkpoint``, ``export``, or a name the
            script gave.
        count: How often it was entered.
        total_ns: Sum over all entries.
        median_ns: Median over the kept durations (at most 10,000 of them) after the
            warm-up; over all of them where the warm-up is not known.
        p95_ns: Their 95th percentile (nearest rank); None for fewer than 20.
        longest_ns: The longest single entry, warm-up included.
        warmup_count: Entries before the steady state (rule in docs/recorder.md); None
            when it is not known: fewer than 20 entries, or none was reached.
        warmup_ns: Sum over these entries.
        synchronized: How the device was synchronised before each clock reading:
            ``cpu`` (nothing to wait for), ``cuda``, ``mps``, or ``none``: then the
            figures are no durations of device work and are never shown as such.
        synchronizations: Number of synchronisations made, two for each entry.
    """

    name: str
    count: Count
    total_ns: Count
    median_ns: Count
    p95_ns: Count | None = None
    longest_ns: Count
    warmup_count: Count | None = None
    warmup_ns: Count | None = None
    synchronized: Literal["cpu", "cuda", "mps", "none"]
    synchronizations: Count = 0


class AllocatorCall(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Calls of a function that changes what the counters of an allocator mean.

    Attributes:
        function: Such as ``torch.cuda.empty_cache``, after which a low value proves
            nothing, ``torch.mps.set_per_process_memory_fraction``, which is a limit,
            or ``torch.cuda.reset_peak_memory_stats``.
        value: Its arguments as text.
        where: ``file:line`` of the caller.
        calls: How often it was called from there (at least).
        first_step: Optimizer steps made before the first of these calls.
        in_use: Whether the allocator of a device was in use then.
    """

    function: str
    value: str = ""
    where: str = ""
    calls: Count
    first_step: Count
    in_use: bool


class InputShape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often models were called with inputs of these dtypes and shapes.

    `shape` is text such as ``float32[16, 20]``, several tensors with a comma between.
    """

    shape: str
    count: Count


GrowthKind = Literal[
    "flat", "step", "linear", "with-shapes", "unclear", "not-classified"
]


class Growth(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one memory counter went over the rounds of a loop.

    Attributes:
        counter: Such as ``anonymous`` or ``cuda_allocated``.
        kind: ``flat``, ``step`` (up once, then flat), ``linear`` (by as much again
            and again, with inputs of known shapes too), ``with-shapes`` (only where
            inputs of a new shape came), ``unclear``, or ``not-classified``.
        bytes_per_round: Median slope after the warm-up.
        noise_bytes_per_round: What this very run's counter moves by without a trend:
            a slope inside this band is no growth.
        first_round, last_round: Between which rounds it was judged.
        reason: Why it was not classified, or what else there is to say.
    """

    counter: str
    kind: GrowthKind
    bytes_per_round: Number = 0.0
    noise_bytes_per_round: Number = 0.0
    first_round: Count = 0
    last_round: Count = 0
    reason: str = ""


class Memory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The memory log of the run.

    Attributes:
        series: Name of the member with all samples, relative to the record; empty
            when there is no series.
        samples: Number of samples in it.
        taken: Number of samples that were taken, before the series was thinned.
        with_pressure: How many of these tell how short of memory the system was.
        peak_rss_bytes: Largest resident size of one process, with its source.
        peak_device_bytes: Largest allocation seen by a device allocator.
        limits: Settings of allocators by name, as they were when torch was imported
            or as the script set them: two series under different ones are not
            comparable.
        calls: What the script told the allocators.
        shapes: Inputs of models by dtype and shape, the most frequent 50.
        distinct_shapes: Number of different ones.
        rounds: What a round of `growth` is: ``step`` (of an optimizer), ``call`` (of
            a model), or empty.
        growth: How each counter went.
        course: The same in one word for the whole run: the worst kind of `growth`, or
            ``host-only``, when the host's memory grows and the device's does not.
    """

    series: str = ""
    samples: Count = 0
    taken: Count = 0
    with_pressure: Count = 0
    peak_rss_bytes: Fact
    peak_device_bytes: Fact
    limits: dict[str, str] = {}
    calls: tuple[AllocatorCall, ...] = ()
    shapes: tuple[InputShape, ...] = ()
    distinct_shapes: Count = 0
    rounds: Literal["", "step", "call"] = ""
    growth: tuple[Growth, ...] = ()
    course: GrowthKind | Literal["host-only"] = "not-classified"


class MemorySample(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One sample of the series.

    Attributes:
        t_ns: Nanoseconds since start.
        point: A label: ``start``, ``torch imported``, ``model ready``, ``first
            batch``, ``first backward``, ``step 8``, ``call 8``, ``cache emptied``,
            ``end``, or ``clock``.
        pid: Process whose memory it is.
        bytes: Bytes by counter.
        pressure: How short of memory the system was: ``some_avg10_percent`` (Linux),
            ``level`` and ``free_percent`` (macOS).
        synchronized: How the device was waited for before: as in `Phase`; empty when
            it was not, as with every ``clock`` sample.
        step: Optimizer steps so far.
        shapes: Different shapes of model inputs so far.
    """

    t_ns: int
    point: str
    pid: int
    bytes: dict[str, int]
    pressure: dict[str, float] = {}
    synchronized: str = ""
    step: Count = 0
    shapes: Count = 0


class MemorySeries(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The member that ``Memory.series`` names."""

    samples: tuple[MemorySample, ...]


class Witness(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way of seeing CPU fallback, and where it looked.

    Attributes:
        name: ``warnings`` (each warning of torch, of the whole run), ``profiler`` (an
            event ``aten::_to_cpu`` inside an operator), ``census`` (which operators
            the device was given; judged by the table of the torch version).
        looked: Whether it looked at all.
        steps: Ranges of optimizer steps it looked at, first and last, counted from 1;
            empty for the whole run. The part after the last step counts as one more.
        total_steps: Steps of the run.
        reason: Why it did not look, or not everywhere.
    """

    name: Literal["warnings", "profiler", "census"]
    looked: bool
    steps: tuple[tuple[int, int], ...] = ()
    total_steps: Count = 0
    reason: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether it looked at the whole run."""
        reached = 0
        for first, last in self.steps:
            if first > reached + 1:
                return False
            reached = max(reached, last)
        return self.looked and (not self.steps or reached > self.total_steps)


class Fallback(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An operator that a witness saw running on the CPU.

    Attributes:
        witness: Name of the witness.
        operator: As it names it: ``aten::heaviside.out``.
        count: How often.
        where: ``path:line`` of the user's call, if it is known.
        phase: Phase of the run, if it is known.
    """

    witness: Literal["warnings", "profiler"]
    operator: str
    count: Count
    where: str = ""
    phase: str = ""


class OperatorUse(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Calls of one operator on one device in one phase.

    Attributes:
        operator: As a dispatch mode shows it: ``aten.addmm.default``.
        device: Device type.
        phase: Phase of the run; empty between phases.
        count: Calls.
        bytes: Size of its tensors on that device, arguments and results, over all
            calls: what a fallback would move.
        steps: In how many optimizer steps it was called.
        where: ``path:line`` of the first call.
    """

    operator: str
    device: str
    phase: str = ""
    count: Count
    bytes: Count
    steps: Count
    where: str = ""


class Transfer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Copies between host and device that the script asked for, at one place.

    Attributes:
        kind: ``to-device`` (an input that starts on the CPU), ``from-device`` (an
            explicit copy back), ``scalar-read`` (``item`` and the like).
        where: ``path:line`` of the user's call.
        non_blocking: Whether it was not to be waited for.
        count, bytes: Over all copies.
    """

    kind: Literal["to-device", "from-device", "scalar-read"]
    where: str
    non_blocking: bool = False
    count: Count
    bytes: Count


class BadIndex(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Indices that a table does not have: an error on the CPU, zeros on MPS."""

    operator: str
    where: str
    low: int
    high: int
    size: Count


class Devices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where tensors were seen, and what is known about CPU fallback.

    Attributes:
        requested: The device asked for: ``cpu``, ``cuda``, ``mps`` or ``as-is``.
        observed: Device types on which module inputs, parameters or recorded values
            were seen.
        fallback: ``none-possible`` (no accelerator was used), ``none-seen``, ``seen``
            or ``not-checked``.
        reason: How that was established, or why it was not checked.
        standin: Whether a stand-in device took the accelerator's place.
        witnesses: Who looked for CPU fallback, and where.
        fallbacks: Operators that were seen running on the CPU.
        operators: What the accelerator was given, from an evidence pass.
        transfers: Copies the script asked for, from an evidence pass.
        bad_indices: Indices out of range, from an evidence pass.
    """

    requested: str = "as-is"
    observed: tuple[str, ...] = ()
    fallback: Literal["none-possible", "none-seen", "seen", "not-checked"] = (
        "not-checked"
    )
    reason: str = ""
    standin: bool = False
    witnesses: tuple[Witness, ...] = ()
    fallbacks: tuple[Fallback, ...] = ()
    operators: tuple[OperatorUse, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    bad_indices: tuple[BadIndex, ...] = ()


class FileRead(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file the run read.

    Attributes:
        path: ``project:<path>``, ``external:<n>/<name>`` or ``missing:<path>``.
        member: Where its content lies in the bundle; empty if it is not included.
        origin: For external files, the path it was read from, home folder as ``~``.
        size_bytes: Its size when the run started.
        blake3: Its digest then; empty when it could not be read.
        how: ``observed`` (an open was seen), ``declared`` (given with ``--input``).
    """

    path: str
    member: str = ""
    origin: str = ""
    size_bytes: Count
    blake3: str
    how: Literal["observed", "declared"] = "observed"


class WithheldFile(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A file that the run needs and whose content the bundle does not hold.

    Attributes:
        name: Path below the project, or the ``origin`` of a file from elsewhere.
        size_bytes: Its size when the run started.
        blake3: Its digest then: a replay takes no file of another content.
    """

    name: str
    size_bytes: Count
    blake3: Digest


class ArraySummary(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What is known about one array without its content.

    Attributes:
        name: Key inside the file; empty when the file is the array.
        dtype: As numpy names it, or ``bfloat16``, ``float8_e4m3fn`` and so on.
        shape: Extent of each axis.
        nan, positive_infinity, negative_infinity, negative_zero: Counts.
        minimum, maximum, mean, l2: Over the finite elements, in float64; None when
            there is none, or when the dtype has no order.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    nan: Count = 0
    positive_infinity: Count = 0
    negative_infinity: Count = 0
    negative_zero: Count = 0
    minimum: Number | None = None
    maximum: Number | None = None
    mean: Number | None = None
    l2: Number | None = None


OutputKind = Literal["arrays", "table", "document", "text", "log", "bytes"]


class Output(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing the run produced that a replay is compared by.

    Attributes:
        name: Path below the project, or ``record:<name>`` for a recorded value.
        kind: How it is compared (spec.md, "Comparison").
        format: ``npy``, ``npz``, ``safetensors``, ``checkpoint``, ``csv``, ``tsv``,
            ``json``, ``jsonl``, ``notebook``, ``text``, ``bytes``.
        size_bytes: Size of its content.
        blake3: Digest of its content.
        stored: ``here`` (a member beside the record), ``sealed`` (equal to the sealed
            member of the same digest), ``sample`` (too large to keep: a member holds
            the elements at some places and the digests of all; spec.md, "Samples"),
            ``none`` (only the summary is kept).
        member: Member name relative to the record when stored here, full sealed path
            when sealed, either of them for a sample, empty otherwise.
        sample_key: For a sample, the digest of the policy that decided its places.
        arrays_member: For checkpoints: the member with their tensors as safetensors,
            relative to the record.
        arrays: Summaries of its arrays.
        rows: Rows of a table, lines of a text; None for other kinds.
        replaced_input: Whether the run read a file of this name before writing it.
    """

    name: str
    kind: OutputKind
    format: str
    size_bytes: Count
    blake3: Digest
    stored: Literal["here", "sealed", "sample", "none"]
    member: str = ""
    sample_key: DigestOrEmpty = ""
    arrays_member: str = ""
    arrays: tuple[ArraySummary, ...] = ()
    rows: int | None = None
    replaced_input: bool = False


class ErrorReport(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The error that ended the run.

    Attributes:
        type: Qualified class name, such as ``RuntimeError``.
        message: As raised.
        masked: The message with addresses, process ids, sizes in memory and paths
            replaced by ``#``; two runs of one failure agree in it.
        where: ``path:line`` of the innermost frame inside the project.
        traceback: Whole text.
        steps: Optimizer steps made before it.
    """

    type: str
    message: str
    masked: str
    where: str
    traceback: str
    steps: Count = 0


class Outcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the run ended.

    Attributes:
        exit_status: Of the command; negative for the signal that ended it.
        completed: False when the run was interrupted or never finished.
        expected_failure: Whether failing was the result to record.
        error: What the failing Python process reported.
        stop: Reason why a replay stopped before or during the run: ``operator``,
            ``memory``, ``cuda_required``, ``dtype``, ``platform``, ``data``,
            ``interrupted``; empty otherwise.
        stop_detail: One line about it.
    """

    exit_status: int
    completed: bool = True
    expected_failure: bool = False
    error: ErrorReport | None = None
    stop: Literal[
        "",
        "operator",
        "memory",
        "cuda_required",
        "dtype",
        "platform",
        "data",
        "interrupted",
    ] = ""
    stop_detail: str = ""


class Remark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something the run showed that a reader must know.

    Attributes:
        id: Stable name, such as ``python-not-entered`` or ``read-outside-project``.
        severity: ``gap`` (a fact is missing), ``warning`` (may change the result),
            ``failure`` (the run cannot be trusted as it is).
        where: File, process or member concerned.
        text: One sentence.
    """

    id: str
    severity: Literal["gap", "warning", "failure"]
    where: str = ""
    text: str


class ContentMember(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A member that belongs to a record, by its name relative to the record."""

    name: str
    size_bytes: Count
    blake3: Digest


class Restart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run that was stopped after a checkpoint and started again.

    Attributes:
        checkpoint: Project file that had just been saved.
        steps_before: Optimizer steps of the stopped process.
        steps_after: Optimizer steps of the resumed one.
        command: What resumed it, as a record stores arguments; empty for the same
            command.
        reason: Why it shows nothing about resuming; empty if it does.
    """

    checkpoint: str = ""
    steps_before: Count = 0
    steps_after: Count = 0
    command: tuple[str, ...] = ()
    reason: str = ""


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run.

    Attributes:
        schema: Always ``reprobundle/record/1``.
        bundle: Id of the bundle a replay ran; empty inside the seal.
        role: ``reference``, ``repeat``, ``claim`` (a claim's own command),
            ``evidence`` (a traced run of either), ``restart`` (one that was stopped
            and resumed) or ``replay``.
        pass_name: ``measured``, ``repeat``, ``evidence`` or ``restart``. An evidence
            pass is
            traced, so it states neither phases nor memory; its outputs show that
            tracing changed nothing.
        claim: Name of the claim the command serves; ``main`` for the main command.
        runs: For a replay, the number of the sealed run it is compared with; else 0.
        occasion: Shared by all records that one call of ``replay`` made (its passes
            and claims), 16 hexadecimal digits; empty inside the seal. They are judged
            together.
        tool: Name and version of the writer.
        started: RFC 3339, UTC.
        elapsed_ns: Wall time of the whole command, process start to end.
        platform: ``linux``, ``darwin``; the Linux reference is found by it.
        environment: Facts by dotted name.
        ranks: Ranks of a distributed run, by number; empty for any other run.
        restart: What was stopped and resumed; only in a restart pass, whose other
            fields describe the resumed process.
        files_digest: BLAKE3 over the sorted ``digest  path`` lines of the project
            files the run started from: two runs of one bundle agree in it.
        withheld: Those of these files that the bundle holds by digest only.
    """

    schema: Literal["reprobundle/record/1"] = RECORD_SCHEMA
    bundle: str = ""
    role: Literal["reference", "repeat", "claim", "evidence", "restart", "replay"]
    pass_name: Literal["measured", "repeat", "evidence", "restart"]
    claim: str = "main"
    runs: Count = 0
    occasion: str = ""
    tool: str
    started: str
    elapsed_ns: Count
    platform: str
    command: Command
    environment: dict[str, Fact]
    randomness: Randomness
    processes: tuple[Process, ...]
    ranks: tuple[Rank, ...] = ()
    restart: Restart | None = None
    phases: tuple[Phase, ...]
    memory: Memory
    devices: Devices
    files_digest: Digest
    reads: tuple[FileRead, ...]
    sources: tuple[str, ...]
    outputs: tuple[Output, ...]
    outcome: Outcome
    remarks: tuple[Remark, ...]
    members: tuple[ContentMember, ...]
    withheld: tuple[WithheldFile, ...] = ()

    @property
    def loaded_torch(self) -> bool:
        """Whether any process of the run imported torch."""
        version = self.environment.get("torch.version")
        return version is not None and not version.unknown
