"""``replay --ab``, ``--shapes A,B`` and ``--round A,B``: run twice, show the pair."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reprobundle.cli.options import say, split

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reprobundle.replay.options import ReplayOptions

# What both sides share: consent, the form of the answer, and where records go.
_COMMON = ("yes", "as_json", "detach", "ab", "bundle", "record_file", "allow", "quiet")


def sides_of(
    context: click.Context,
    ab: tuple[str, str] | None,
    *,
    shapes: str,
    round_: str,
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return the parameters of both sides of a pair; None where none is asked for.

    Raises:
        click.UsageError: More than one pair is asked for, or a side asks for what both
            must share.
    """
    asked = {"--shapes": split(shapes), "--round": split(round_)}
    pairs = [(option, words) for option, words in asked.items() if len(words) > 1]
    if len(pairs) + bool(ab) > 1 or any(len(words) > 2 for _, words in pairs):
        raise click.UsageError("one pair at a time: two sides that differ in one thing")
    if pairs:
        option, words = pairs[0]
        ab = (f"{option} {words[0]}", f"{option} {words[1]}")
        own = {option.removeprefix("--").replace("round", "round_"): ""}
        base = {**context.params, **own}
    else:
        base = context.params
    if ab is None:
        return None
    for name in ("detach", "record_file"):
        if base[name]:
            raise click.UsageError(f"a pair cannot be made with --{name.split('_')[0]}")
    return _side(context, base, ab[0]), _side(context, base, ab[1])


def _side(
    context: click.Context, base: Mapping[str, Any], arguments: str
) -> dict[str, Any]:
    """Return the call's parameters with what one side adds to them."""
    try:
        parts = shlex.split(arguments)
    except ValueError as error:
        raise click.UsageError(f"--ab {arguments!r}: {error}") from error
    own = context.command.make_context(
        "replay --ab", [str(base["bundle"]), *parts], resilient_parsing=False
    )
    given = {
        name: value
        for name, value in own.params.items()
        if own.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        and name != "bundle"
    }
    for name in given:
        if name in _COMMON:
            raise click.UsageError(f"--ab {arguments!r}: this belongs to both sides")
    for name, value in given.items():
        if isinstance(base[name], tuple):
            given[name] = (*base[name], *value)
    return {**base, **given}


def show_pair(bundle: Path, sides: Sequence[ReplayOptions], *, as_json: bool) -> int:
    """Run both sides, print what differs, and return the exit status of diff."""
    import dataclasses
    import secrets

    from reprobundle.format.canonical import encode
    from reprobundle.format.record import Experiment
    from reprobundle.replay.replay import inspect_plan
    from reprobundle.replay.replay import replay as run_replay
    from reprobundle.report.differences import render_differences
    from reprobundle.report.screen import Screen
    from reprobundle.verify.pairs.chosen_run import choose_run
    from reprobundle.verify.pairs.diff import diff_runs

    ids = []
    pair = secrets.token_hex(8)
    for letter, side in zip(("A", "B"), sides, strict=True):
        say(f"side {letter}")
        mark = Experiment(id=pair, side="A" if letter == "A" else "B")
        options = dataclasses.replace(side, experiment=mark)
        done = run_replay(options, inspect_plan(options), say=say)
        ids.append(done.replay_ids[0])
        say(f"side {letter}: {done.report.verdict} (exit {done.report.exit_status})")
    with ExitStack() as stack:
        left, right = (choose_run(f"{bundle}:{one}", stack) for one in ids)
        report = diff_runs(left, right)
        if as_json:
            shown = encode(report).decode()
        else:
            shown = render_differences(report, Screen.of(sys.stdout))
    click.echo(shown, nl=not as_json)
    return report.exit_status
