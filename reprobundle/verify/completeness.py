"""Whether a bundle holds the eight things without which it is no evidence (V9)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from reprobundle.format.findings import Finding
from reprobundle.format.lock import LOCK_MEMBER, PYLOCK_MEMBER
from reprobundle.format.manifest import STAND_INS, Member
from reprobundle.format.record import Fact, Randomness, Record, SeedCall
from reprobundle.verify.checks import finding
from reprobundle.verify.linux_reference import check_linux_reference
from reprobundle.verify.sealed import Sealed

Members = Mapping[str, Member]

GENERATOR_MODULES = ("random", "numpy.random", "torch")

_PROJECT_LOCKS = "lock/project/"
# Options of the interpreter whose value is the next argument.
_TAKE_A_VALUE = ("-W", "-X")
_SEEDED_BY = (
    ("python", ("random.seed",)),
    ("numpy", ("numpy.random.seed",)),
    ("torch.cpu", ("torch.manual_seed", "torch.seed")),
)
# What seeds a generator of its own: one that was made, or a device's. Mapped to the
# CPU, those of CUDA become nothing at all.
_OF_ONE_ALONE = frozenset(
    {
        "random.Random",
        "random.Random.seed",
        "numpy.random.default_rng",
        "torch.Generator",
        "torch.cuda.manual_seed",
        "torch.cuda.manual_seed_all",
        "torch.mps.manual_seed",
    }
)


def check_completeness(
    members: Members, sealed: Sealed, replays: Sequence[Record]
) -> Iterator[Finding]:
    """Yield the findings of V9: eight that are required, one that is not.

    Args:
        members: The sealed members by path.
        sealed: The decoded documents.
        replays: Records of the attached replays whose integrity holds.
    """
    reference = sealed.reference
    yield _lockfile(members, sealed)
    yield _script(members, reference)
    yield _input_sample(members, reference)
    yield _seeds(reference)
    yield _versions(reference)
    yield _memory_log(reference)
    yield _output_summary(sealed)
    yield check_linux_reference(sealed, replays)
    yield _lock_for_others(members, sealed)


def _lockfile(members: Members, sealed: Sealed) -> Finding:
    if sealed.lock is not None and sealed.lock.distributions:
        count = len(sealed.lock.distributions)
        return finding(
            "has-lockfile", "pass", f"{count:,} distributions", where=LOCK_MEMBER
        )
    own = [
        path
        for path, member in members.items()
        if path.startswith(_PROJECT_LOCKS) and member.size_bytes
    ]
    if own:
        return finding("has-lockfile", "pass", where=min(own))
    return finding(
        "has-lockfile", "fail", "no lockfile and no list of installed packages is here"
    )


def _lock_for_others(members: Members, sealed: Sealed) -> Finding:
    if PYLOCK_MEMBER in members:
        return finding("lock-for-others", "pass", where=PYLOCK_MEMBER)
    why = sealed.lock.pylock_unknown if sealed.lock is not None else ""
    return finding(
        "lock-for-others",
        "not-checked",
        f"the lock holds for one kind of machine: {why or 'no other was recorded'}",
        advice="pack where uv and a package index can be reached",
    )


def _script(members: Members, reference: Record) -> Finding:
    names = [
        *reference.sources,
        *_project_arguments(reference),
        *_scripts_of_processes(members, reference),
    ]
    held = [name for name in names if _project_member(members, name)]
    missing = [name for name in reference.sources if not _project_member(members, name)]
    if missing:
        return finding(
            "has-script",
            "fail",
            "the run used a source file that the bundle does not hold",
            where=missing[0],
        )
    if held:
        return finding("has-script", "pass", where=f"project/{held[0]}")
    return finding(
        "has-script",
        "fail",
        "no project file is known that the command ran",
        where=" ".join(reference.command.argv),
    )


def _scripts_of_processes(members: Members, reference: Record) -> list[str]:
    """Return the project files that a Python process of the run was started with.

    A shell line names them inside one argument of its own.
    """
    scripts = [
        _script_of(process.argv) for process in reference.processes if process.entered
    ]
    names = _project_names(reference, filter(None, scripts))
    return [name for name in names if f"project/{name}" in members]


def _script_of(argv: Sequence[str]) -> str:
    """Return the file that a Python was started with; empty for ``-c`` and ``-m``."""
    rest = iter(argv[1:])
    for argument in rest:
        if argument in _TAKE_A_VALUE:
            next(rest, None)
        elif argument in ("-c", "-m"):
            return ""
        elif not argument.startswith("-"):
            return argument
    return ""


def _project_arguments(reference: Record) -> list[str]:
    """Return the arguments that may name a project file."""
    return _project_names(reference, reference.command.argv)


def _project_names(reference: Record, arguments: Iterable[str]) -> list[str]:
    """Return paths as the command wrote them, as names below the project."""
    folder = reference.command.working_directory.strip("/")
    inside = "" if folder in ("", ".") else f"{folder}/"
    return [
        argument.removeprefix("{project}/")
        if argument.startswith("{project}/")
        else inside + argument.removeprefix("./")
        for argument in arguments
    ]


def _project_member(members: Members, name: str) -> bool:
    return f"project/{name}" in members or f"inputs/{name}" in members


def _input_sample(members: Members, reference: Record) -> Finding:
    data = [read for read in reference.reads if read.path not in _code(reference)]
    held = [
        read
        for read in data
        if read.member.startswith(("inputs/", "external/")) and read.member in members
    ]
    if held:
        return finding(
            "has-input-sample", "pass", f"{len(held)} inputs", where=held[0].member
        )
    inputs = {f"{STAND_INS}{one.name}" for one in reference.withheld}
    samples = sorted(inputs.intersection(members))
    if samples:
        return finding(
            "has-input-sample", "pass", f"{len(samples)} stand-ins", where=samples[0]
        )
    unheld = [read for read in data if not read.member.startswith("project/")]
    if not unheld:
        return finding(
            "has-input-sample", "not-applicable", "the run read no input file"
        )
    withheld = {f"project:{one.name}" for one in reference.withheld}
    pinned = {one.path for one in unheld if one.origin and one.blake3}
    if all(read.path in withheld | pinned for read in unheld):
        return finding(
            "has-input-sample",
            "warn",
            "every input is kept by digest only, and there is no sample of any",
            where=unheld[0].path,
            advice="pack it with --stand-in PATH=SAMPLE; files outside the project "
            "with --external include",
        )
    return finding(
        "has-input-sample",
        "fail",
        f"the run read {len(unheld)} input files, none of them is included",
        where=unheld[0].path,
    )


def _code(reference: Record) -> frozenset[str]:
    return frozenset(f"project:{source}" for source in reference.sources)


def _seeds(reference: Record) -> Finding:
    known = reference.randomness
    calls = tuple(call for call in known.calls if call.is_chosen)
    # Such a seed says nothing about the global generators.
    alone = all(call.function in _OF_ONE_ALONE for call in calls)
    if known.seed is not None or (calls and not (alone and _moved(known, calls))):
        set_by = "--seed" if known.seed is not None else calls[0].where
        note = f"{len(calls)} calls{_unseeded(known, calls)}"
        return finding("has-seeds", "pass", note, where=set_by)
    if not known.initial:
        return _no_generators(known)
    drawn = [
        name for name, state in known.initial.items() if known.final.get(name) != state
    ]
    if not drawn:
        return _nothing_moved(reference)
    unsure = "" if known.final else " as far as is known"
    moved = _moved(known, calls)
    no_seed = (
        f"{calls[0].function} does not seed {moved[0]}" if calls else "no seed was set"
    )
    return finding(
        "has-seeds",
        "warn",
        f"random numbers were drawn{unsure} and {no_seed}{_happened(reference)}",
        where=moved[0] if moved else drawn[0],
        advice="set the seeds in the script, or pack with --seed",
    )


def _nothing_moved(reference: Record) -> Finding:
    """Return what generators that did not move say; of ranks they say nothing."""
    if reference.ranks:
        return finding(
            "has-seeds",
            "warn",
            "no seed was set, and whether a rank drew random numbers is not known: "
            "generators are compared at the end of the command's first process only",
            advice="set the seeds in the script, or pack with --seed",
        )
    return finding(
        "has-seeds",
        "not-applicable",
        "no seed was set and no generator moved: nothing random was drawn",
    )


def _unseeded(known: Randomness, calls: Sequence[SeedCall]) -> str:
    """Return which global generators moved although nobody seeded them, in words."""
    moved = [] if known.seed is not None else _moved(known, calls)
    return f"; {', '.join(moved)} moved without a seed" if moved else ""


def _moved(known: Randomness, calls: Sequence[SeedCall]) -> list[str]:
    """Return which global generators moved although none of `calls` seeded them."""
    seeded = {
        name for name, how in _SEEDED_BY for call in calls if call.function in how
    }
    return [
        name
        for name, _ in _SEEDED_BY
        if name in known.final
        and known.initial.get(name) != known.final[name]
        and name not in seeded
    ]


def _no_generators(known: Randomness) -> Finding:
    """Return the finding about a run of which no generator state is known."""
    if set(GENERATOR_MODULES) <= set(known.absent):
        names = ", ".join(GENERATOR_MODULES)
        return finding(
            "has-seeds",
            "not-applicable",
            f"no random generator was loaded: no process imported {names}",
        )
    return finding(
        "has-seeds",
        "fail",
        "neither seeds nor generator states were recorded",
        advice="pack it with --seed",
    )


def _happened(reference: Record) -> str:
    """Return which seeds the system drew, as far as the generators tell them."""
    known = reference.randomness
    drawn = [f"{call.function} took {call.drawn}" for call in known.calls if call.drawn]
    first = reference.environment.get("torch.initial_seed")
    if first is not None and not first.unknown:
        drawn.insert(0, f"torch started from {first.value}")
    return f"; {', '.join(drawn[:2])}" if drawn else ""


def _versions(reference: Record) -> Finding:
    facts = reference.environment
    for name in ("python.version", "torch.version"):
        fact = facts.get(name)
        if name == "torch.version" and fact is None:
            # A run that never imports torch has no such fact.
            continue
        if fact is None or fact.unknown:
            return finding(
                "has-versions",
                "fail",
                fact.unknown if fact else "the fact was not recorded",
                where=name,
            )
    return finding("has-versions", "pass", _known(facts))


def _known(facts: Mapping[str, Fact]) -> str:
    names = ("python.version", "torch.version")
    shown = [f"{name} {facts[name].value}" for name in names if name in facts]
    return ", ".join(shown)


def _memory_log(reference: Record) -> Finding:
    memory = reference.memory
    # That the series lies there was proven with the record's other members.
    if memory.samples and memory.series:
        return finding(
            "has-memory-log",
            "pass",
            f"{memory.samples:,} samples",
            where=f"runs/1/{memory.series}",
        )
    reason = memory.peak_rss_bytes.unknown or "no memory series was recorded"
    return finding("has-memory-log", "fail", reason)


def _output_summary(sealed: Sealed) -> Finding:
    reference = sealed.reference
    if reference.outputs:
        count = len(reference.outputs)
        return finding("has-output-summary", "pass", f"{count:,} outputs")
    if reference.outcome.expected_failure and reference.outcome.error is not None:
        error = reference.outcome.error
        return finding("has-output-summary", "pass", f"the error {error.type}")
    return finding("has-output-summary", "fail", "nothing that came out is described")
