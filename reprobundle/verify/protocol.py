"""Whether a replay ran the same thing as the sealed run it stands against."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from reprobundle.format.findings import Finding
from reprobundle.format.record import FileRead, Record
from reprobundle.verify.checks import finding
from reprobundle.verify.drawn import check_drawn
from reprobundle.verify.inputs import check_inputs

MOST_NAMED = 3
OPTIMIZER = "optimizer"


def sealed_counterpart(
    replay: Record, runs: Mapping[int, Record]
) -> tuple[Record | None, Finding]:
    """Return the sealed run a replay stands against, and the finding about that.

    The replay names the run, but may not choose one that served another claim or was
    another pass: the measured pass is compared with the measured pass, and so is the
    traced one, for tracing must change nothing.
    """
    reference = runs.get(replay.runs)
    if reference is None:
        reason = f"it names sealed run {replay.runs}, the bundle has no such run"
        return None, finding("same-run", "fail", reason, got=replay.runs)
    stands_for = "measured" if replay.pass_name == "evidence" else replay.pass_name
    for what, expected, got in (
        ("claim", reference.claim, replay.claim),
        ("pass", reference.pass_name, stands_for),
    ):
        if expected != got:
            reason = f"it is a {what} {got!r}, sealed run {replay.runs} is {expected!r}"
            mismatch = finding("same-run", "fail", reason, expected=expected, got=got)
            return None, mismatch
    return reference, finding("same-run", "pass", where=f"runs/{replay.runs}")


def check_protocol(reference: Record, replay: Record) -> Iterator[Finding]:
    """Yield the findings of V12 about one replay."""
    yield _files(reference, replay)
    yield _command(reference, replay)
    yield from _seeds(reference, replay)
    yield from check_drawn(reference, replay)
    yield _steps(reference, replay)
    yield from check_inputs(reference, replay)


def _files(reference: Record, replay: Record) -> Finding:
    if reference.files_digest == replay.files_digest:
        return finding("same-files", "pass")
    return finding(
        "same-files",
        "fail",
        "the replay started from other files: its script or data was changed",
        expected=reference.files_digest,
        got=replay.files_digest,
        advice="replay the bundle as it is",
    )


def _command(reference: Record, replay: Record) -> Finding:
    for what, expected, got in (
        ("arguments", _argv(reference, reference), _argv(replay, reference)),
        (
            "working directory",
            reference.command.working_directory,
            replay.command.working_directory,
        ),
        (
            "variables",
            sorted(reference.command.environment.items()),
            sorted(replay.command.environment.items()),
        ),
    ):
        if expected != got:
            return finding(
                "same-command",
                "fail",
                f"the replay ran with other {what}",
                where=what,
                expected=expected,
                got=got,
            )
    return finding("same-command", "pass", where=" ".join(reference.command.argv))


def _argv(record: Record, reference: Record) -> list[str]:
    """Return the arguments with files outside the project by their names in the bundle.

    Such a file lies elsewhere on another machine, where the replay takes it from the
    bundle; its content is checked as an input.
    """
    outside = [
        read
        for read in reference.reads
        if read.member and read.path.startswith("external:")
    ]
    return [_portable(argument, outside) for argument in record.command.argv]


def _portable(argument: str, outside: list[FileRead]) -> str:
    option, separator, path = argument.rpartition("=")
    for read in outside:
        places = [f"/{read.member}", read.origin.removeprefix("~")]
        if path.endswith(tuple(place for place in places if place.startswith("/"))):
            return f"{option}{separator}{read.member}"
    return argument


def _seeds(reference: Record, replay: Record) -> Iterator[Finding]:
    sides = [
        (record.command.seed, record.randomness.seed) for record in (reference, replay)
    ]
    if sides[0] != sides[1]:
        yield finding(
            "same-seed",
            "fail",
            "the replay was started with another seed",
            expected=sides[0][0],
            got=sides[1][0],
        )
    else:
        yield finding("same-seed", "pass", got=sides[0][0])
    expected, got = _calls(reference), _calls(replay)
    if expected == got:
        yield finding("seed-calls", "pass", f"{expected.total()} seed calls")
        return
    yield finding(
        "seed-calls",
        "warn",
        "the script set other seeds than in the reference",
        expected=_named(expected - got) or "nothing more",
        got=_named(got - expected) or "nothing more",
    )


def _steps(reference: Record, replay: Record) -> Finding:
    """Return whether both runs made the same number of optimizer steps."""
    if "evidence" in (reference.pass_name, replay.pass_name):
        reason = "a traced pass keeps no counts of phases"
        return finding("same-steps", "not-applicable", reason)
    expected, got = optimizer_steps(reference), optimizer_steps(replay)
    if expected == got == 0:
        return finding("same-steps", "not-applicable", "no optimizer step was seen")
    if expected == got:
        return finding("same-steps", "pass", f"{expected:,} optimizer steps", got=got)
    if replay.outcome.stop:
        # Why it ended is told by `stopped`; nothing else is to be looked for.
        reason = f"the replay was stopped after {got:,} of {expected:,} optimizer steps"
        return finding("same-steps", "not-checked", reason)
    return finding(
        "same-steps",
        "warn",
        f"the replay made {got:,} optimizer steps, the reference {expected:,}",
        expected=expected,
        got=got,
        advice="find what ended the training early: time, a skipped batch, a condition",
    )


def optimizer_steps(record: Record) -> int:
    """Return how many optimizer steps were timed in the run."""
    return sum(phase.count for phase in record.phases if phase.name == OPTIMIZER)


def _calls(record: Record) -> Counter[tuple[str, str]]:
    entered = {process.pid for process in record.processes if process.entered}
    # A pipeline has several processes that nothing of ours started, in any order; a
    # loader's worker is seeded by its parent, which counts already.
    main = {
        process.pid
        for process in record.processes
        if process.kind == "main"
        or process.part in ("rank", "kernel")
        or (process.kind == "python" and process.parent_pid not in entered)
    }
    return Counter(
        (call.function, call.value)
        for call in record.randomness.calls
        if call.pid in main or not main
    )


def _named(calls: Counter[tuple[str, str]]) -> str:
    shown = [f"{function}({value})" for function, value in calls]
    more = f" and {len(shown) - MOST_NAMED} more" if len(shown) > MOST_NAMED else ""
    return ", ".join(shown[:MOST_NAMED]) + more
