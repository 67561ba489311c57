"""Find the run that a person names: a bundle, one of its runs, or a replay."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from reprobundle.errors import BadCallError
from reprobundle.format.policy import Policy
from reprobundle.format.reader import Bundle, open_bundle
from reprobundle.format.record import Record
from reprobundle.verify.content import Content, attached
from reprobundle.verify.content import sealed as sealed_content
from reprobundle.verify.integrity import check_sealed_digests
from reprobundle.verify.replays import read_replay
from reprobundle.verify.sealed import REFERENCE_RUN, Sealed, read_sealed

REFERENCE = "reference"
NEWEST = "newest"
_SPLIT = re.compile(r"(?P<path>.+\.zip)(?::(?P<run>[^/:]+))?")
SHORTEST_ID = 8


class ChosenRun(NamedTuple):
    """A run with its content and the policy it is compared under.

    Attributes:
        name: As a person would name it.
        record: The record.
        content: Where its content lies, as long as the bundle is open.
        policy: The frozen policy of its bundle.
        fellows: All sound runs of the same bundle, this one too.
    """

    name: str
    record: Record
    content: Content
    policy: Policy
    fellows: tuple[Record, ...] = ()


def named_bundle(text: str) -> Path:
    """Return the bundle of the run that `text` names, see `choose_run`."""
    return _parted(text)[0]


def _parted(text: str) -> tuple[Path, str | None]:
    match = _SPLIT.fullmatch(text)
    return (Path(match["path"]), match["run"]) if match else (Path(text), None)


def choose_run(text: str, stack: ExitStack, *, default: str = REFERENCE) -> ChosenRun:
    """Return the run that `text` names, its bundle's integrity checked.

    Args:
        text: ``BUNDLE``, ``BUNDLE:reference``, ``BUNDLE:newest`` (the newest replay of
            the reference), ``BUNDLE:3`` (sealed run 3) or ``BUNDLE:1a2b3c4d`` (a replay
            by the start of its id).
        stack: Closes the bundle.
        default: The run meant by a bundle alone.

    Raises:
        BadCallError: It names no run.
        BundleError: The bundle is not sound.
    """
    path, run = _parted(text)
    bundle = stack.enter_context(open_bundle(path))
    sealed = _sound(bundle)
    chosen = _find(bundle, sealed, run or default)
    return chosen._replace(fellows=tuple(_every_run(bundle, sealed)))


def _every_run(bundle: Bundle, sealed: Sealed) -> Iterator[Record]:
    yield from sealed.runs.values()
    for replay_id in bundle.replay_ids:
        record, _ = read_replay(bundle, bundle, replay_id)
        if record is not None:
            yield record


def _sound(bundle: Bundle) -> Sealed:
    damaged = [
        found
        for found in check_sealed_digests(bundle, deep=False)
        if found.outcome == "fail"
    ]
    sealed, findings = read_sealed(bundle)
    problems = [*damaged, *findings] if sealed is None else damaged
    if sealed is None or problems:
        raise BadCallError(
            f"{bundle.path.name} is not as it was sealed: {problems[0].reason}",
            advice=f"see: reprobundle verify {bundle.path.name}",
        )
    return sealed


def _find(bundle: Bundle, sealed: Sealed, run: str) -> ChosenRun:
    if run == REFERENCE or (run.isdigit() and len(run) < SHORTEST_ID):
        number = REFERENCE_RUN if run == REFERENCE else int(run)
        if number not in sealed.runs:
            raise _unknown(bundle, sealed, run)
        record = sealed.runs[number]
        content = sealed_content(bundle, number, record)
        name = f"{bundle.path.name}:{number} ({record.role})"
        return ChosenRun(name, record, content, sealed.policy)
    if run == NEWEST:
        return _newest(bundle, sealed)
    found = [id_ for id_ in bundle.replay_ids if id_.startswith(run)]
    if len(found) != 1 or len(run) < SHORTEST_ID:
        raise _unknown(bundle, sealed, run)
    return _replay(bundle, sealed, found[0])


def _newest(bundle: Bundle, sealed: Sealed) -> ChosenRun:
    """Return the newest measured replay of the reference run."""
    for replay_id in reversed(bundle.replay_ids):
        chosen = _replay(bundle, sealed, replay_id)
        record = chosen.record
        if record.runs == REFERENCE_RUN and record.pass_name == "measured":
            return chosen
    raise _unknown(bundle, sealed, NEWEST)


def _replay(bundle: Bundle, sealed: Sealed, replay_id: str) -> ChosenRun:
    replay, findings = read_replay(bundle, bundle, replay_id)
    if replay is None:
        raise BadCallError(
            f"replay {replay_id[:12]} cannot be used: {findings[0].reason}",
            advice=f"see: reprobundle verify {bundle.path.name}",
        )
    content = attached(bundle, bundle, replay_id, replay)
    name = f"{bundle.path.name}:{replay_id[:12]} (replay)"
    return ChosenRun(name, replay, content, sealed.policy)


def _unknown(bundle: Bundle, sealed: Sealed, run: str) -> BadCallError:
    numbers = ", ".join(map(str, sorted(sealed.runs)))
    replays = ", ".join(id_[:12] for id_ in bundle.replay_ids) or "none"
    return BadCallError(
        f"{bundle.path.name} has no run {run!r}",
        advice=f"sealed runs: {numbers}; replays: {replays}",
    )
