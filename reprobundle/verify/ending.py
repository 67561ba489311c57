"""Whether a run ended as it should: completed, and with the expected result."""

from __future__ import annotations

from collections.abc import Iterator

from reprobundle.format.findings import Finding
from reprobundle.format.record import ErrorReport, Record
from reprobundle.verify.checks import finding


def is_finished(record: Record) -> bool:
    """Whether the run came to an end by itself, so that its outputs can be judged."""
    return record.outcome.completed and not record.outcome.stop


def check_ending(reference: Record, replay: Record) -> Iterator[Finding]:
    """Yield the findings of V14 about one replay."""
    outcome = replay.outcome
    if outcome.stop and outcome.stop != "interrupted":
        detail = outcome.stop_detail or "no detail was recorded"
        yield finding(
            "stopped",
            "not-checked",
            f"{outcome.stop}: {detail}",
            got=outcome.stop,
            advice=_way_on(replay),
        )
        return
    if not is_finished(replay):
        reason = outcome.stop_detail or "the run was interrupted or never finished"
        yield finding(
            "run-completed",
            "not-checked",
            reason,
            advice="run the replay again: a later one decides; or take this one off "
            "with reprobundle detach BUNDLE ID",
        )
        return
    yield finding("run-completed", "pass")
    if reference.outcome.expected_failure:
        yield from _failure(reference, replay)
    else:
        yield _success(reference, replay)


def _way_on(replay: Record) -> str:
    """Return what may help a replay that stopped, where something does."""
    names_cuda = replay.outcome.stop == "cuda_required" and replay.outcome.error
    if names_cuda and not replay.devices.mapping:
        return "replay it with --map-device cuda=cpu or cuda=mps, or on CUDA"
    if replay.outcome.stop == "platform" and replay.outcome.error:
        return "replay it on a Mac, or have the command take its device from {device}"
    return ""


def _success(reference: Record, replay: Record) -> Finding:
    expected, got = reference.outcome.exit_status, replay.outcome.exit_status
    error = replay.outcome.error
    if expected == got and (got or error is None):
        return finding("exit-status", "pass", got=got)
    if expected == got:
        reason = "it states a success and an error that ended it"
        return finding("exit-status", "fail", reason, expected=expected, got=got)
    text = f"{error.type}: {error.message}" if error else "no Python error was seen"
    return finding(
        "exit-status",
        "fail",
        f"the command failed: {_one_line(text)}",
        where=error.where if error else "",
        expected=expected,
        got=got,
    )


def _failure(reference: Record, replay: Record) -> Iterator[Finding]:
    if replay.outcome.exit_status == 0:
        expected = reference.outcome.error
        yield finding(
            "expected-failure",
            "fail",
            "the command succeeded, the expected failure did not happen",
            expected=f"{expected.type} at {expected.where}" if expected else "failure",
            got="exit status 0",
            advice="compare the versions: the fault may be mended there",
        )
        return
    yield finding("expected-failure", "pass", got=replay.outcome.exit_status)
    yield _same_failure(reference, replay)


def _same_failure(reference: Record, replay: Record) -> Finding:
    expected, got = reference.outcome.error, replay.outcome.error
    if expected is None or got is None:
        return _same_status(reference, replay)
    for field, left, right in _parts(expected, got):
        if left != right:
            return finding(
                "same-failure",
                "fail",
                f"another {field} than in the reference",
                where=got.where,
                expected=_one_line(left),
                got=_one_line(right),
            )
    return finding(
        "same-failure",
        "pass",
        f"same error, same place, after the same {expected.steps} steps",
        where=got.where,
        expected=_one_line(expected.message),
        got=_one_line(got.message),
    )


def _parts(expected: ErrorReport, got: ErrorReport) -> Iterator[tuple[str, str, str]]:
    yield "error type", expected.type, got.type
    yield "error message", expected.masked, got.masked
    yield "place", _place(expected.where), _place(got.where)
    yield "number of steps before it", str(expected.steps), str(got.steps)


def _place(where: str) -> str:
    """Return what of a place two machines agree in.

    Both run the same project, but a library lies elsewhere on each, and its lines move
    from release to release.
    """
    if where.startswith("{project}/") or not where.startswith(("/", "~", "{")):
        return where
    return where.rpartition("/")[2].rpartition(":")[0]


def _same_status(reference: Record, replay: Record) -> Finding:
    """Compare failures of which one side has no Python error: by exit status."""
    sides = (reference.outcome.error, replay.outcome.error)
    expected, got = reference.outcome.exit_status, replay.outcome.exit_status
    if sides == (None, None) and expected == got:
        return finding("same-failure", "pass", "the same exit status", got=got)
    texts = [
        f"{side.type}: {side.message}" if side else "no Python error" for side in sides
    ]
    return finding(
        "same-failure",
        "fail",
        "the command failed in another way",
        expected=f"{_one_line(texts[0])}, status {expected}",
        got=f"{_one_line(texts[1])}, status {got}",
    )


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 300 else f"{line[:299]}…"
