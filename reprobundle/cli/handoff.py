"""``reprobundle handoff``: replay a bundle on another machine, over ssh."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reprobundle.cli.options import (
    EXIT_INCOMPLETE,
    allow_option,
    bundle_argument,
    json_option,
    say,
)
from reprobundle.cli.paths import named
from reprobundle.errors import EXIT_BAD_CALL

if TYPE_CHECKING:
    from reprobundle.handoff.findings import Finding
    from reprobundle.handoff.state import State
    from reprobundle.handoff.wish import Wish
    from reprobundle.replay.plan import ReplayPlan

_name = click.argument("name", default="", required=False)
_retries = click.option(
    "--retries",
    type=click.IntRange(0, 1000),
    default=8,
    show_default=True,
    help="How often a lost connection is made again without progress.",
)
_folder = click.Path(path_type=Path, exists=True, file_okay=False)


class _Handoff(click.Group):
    """A group whose first word may be a destination, which stands for ``start``."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb, ``start`` where the first word is none."""
        if args and args[0] not in self.commands:
            args = ["start", *args]
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Let options stand before the destination too."""
        if args and args[0].startswith("-") and args[0] not in ("-h", "--help"):
            args = ["start", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Handoff)
def handoff() -> None:
    """Replay a bundle on another machine: handoff USER@HOST BUNDLE [--device mps].

    Looks whether the machine is fit, copies what is missing, installs nothing outside
    one folder there, starts the replay so that it outlives the connection, follows it,
    fetches the record, verifies and attaches it. Call it again after any interruption:
    it goes on where it was, and never starts a second run.
    """


@handoff.command(context_settings={"ignore_unknown_options": False})
@click.argument("destination")
@bundle_argument
@click.argument("replay_options", nargs=-1, type=click.UNPROCESSED)
@click.option("--device", default="", help="As for replay: mps, cuda, cpu.")
@click.option(
    "--env",
    "environment",
    default="fresh",
    show_default=True,
    metavar="fresh|PYTHON",
    help="Build the environment from the lock, or run with this interpreter there.",
)
@click.option("--python", default="", help="Interpreter there for reprobundle itself.")
@click.option("--wheels", type=_folder, help="Wheels of the lock to carry there.")
@click.option("--tool-wheels", type=_folder, help="Wheels for reprobundle itself.")
@click.option(
    "--fetch-there", is_flag=True, help="Let that machine fetch the lock's packages."
)
@click.option(
    "--folder",
    "root",
    default="~/.reprobundle/handoff",
    show_default=True,
    help="Where everything is put there.",
)
@click.option("-p", "--port", type=click.IntRange(0, 65535), default=0)
@click.option(
    "--ssh-option", "ssh_options", multiple=True, metavar="NAME=VALUE", help="ssh -o."
)
@_retries
@click.option("--again", is_flag=True, help="Start another run after one that ended.")
@click.option(
    "--no-wait", is_flag=True, help="Start it and return; fetch brings it home later."
)
@click.option(
    "--encrypt-to",
    multiple=True,
    metavar="RECIPIENT",
    help="Send the bundle encrypted by age or gpg; plain there only while it runs.",
)
@click.option("--identity", default="", help="Key file there that decrypts it (age).")
@click.option(
    "--override-policy",
    "override",
    default="",
    metavar="REASON",
    help="Hand it over although its policy is against it; the record says why.",
)
@click.option("--yes", is_flag=True, help="Consent to running the bundle's command.")
@allow_option
@json_option
def start(
    *,
    destination: str,
    bundle: Path,
    replay_options: tuple[str, ...],
    device: str,
    ssh_options: tuple[str, ...],
    port: int,
    no_wait: bool,
    yes: bool,
    allow: tuple[str, ...],
    as_json: bool,
    **given: Any,  # noqa: ANN401 -- named by the options above
) -> int:
    """Do everything up to the verdict; more options of replay go behind --."""
    from reprobundle.handoff.ssh import Destination
    from reprobundle.handoff.state import claimed, name_of
    from reprobundle.handoff.wish import Wish

    options = (*(("--device", device) if device else ()), *replay_options)
    wished = _replay_options(bundle, options)
    wish = Wish(
        Destination(destination, ssh_options, port),
        bundle,
        options=options,
        without=wished["without"],
        other_python=wished["allow_other_python"],
        **given,
    )
    plan = _plan(bundle, wished)
    if not _shown_and_wanted(wish, plan, yes=yes):
        return EXIT_BAD_CALL
    with claimed(name_of(plan.bundle, wish.destination)):
        return _drive(wish, plan, allow=allow, no_wait=no_wait, as_json=as_json)


def _replay_options(bundle: Path, options: tuple[str, ...]) -> dict[str, Any]:
    """Return what options of replay mean, refused here and not after an hour there."""
    from reprobundle.cli.replay import replay
    from reprobundle.handoff.wish import TAKEN

    context = replay.make_context("replay", [str(bundle), *options])
    source = click.core.ParameterSource.COMMANDLINE
    for name in TAKEN:
        if name != "bundle" and context.get_parameter_source(name) == source:
            (word,) = (one.opts[0] for one in replay.params if one.name == name)
            raise click.UsageError(
                f"handoff sets {word} of replay itself; leave it out behind --"
            )
    return dict(context.params)


def _plan(bundle: Path, wished: dict[str, Any]) -> ReplayPlan:
    from reprobundle.cli.replay import _options
    from reprobundle.replay.replay import inspect_plan

    return inspect_plan(_options({**wished, "bundle": bundle}))


def _shown_and_wanted(wish: Wish, plan: ReplayPlan, *, yes: bool) -> bool:
    from reprobundle.report.planned import render_plan
    from reprobundle.report.screen import Screen

    shown = render_plan(plan, Screen.of(sys.stderr), fresh_environment=wish.fresh)
    click.echo(shown, err=True)
    if yes:
        return True
    if not sys.stdin.isatty():
        raise click.UsageError(
            "a replay runs the bundle's code and there is no terminal to ask; "
            "read the command above and add --yes"
        )
    name = wish.destination.name
    return click.confirm(f"Copy it to {name} and run this code there?", err=True)


def _drive(
    wish: Wish,
    plan: ReplayPlan,
    *,
    allow: tuple[str, ...],
    no_wait: bool,
    as_json: bool,
) -> int:
    from reprobundle.handoff.errors import ConnectionLostError
    from reprobundle.handoff.findings import OVER
    from reprobundle.handoff.hand import HandOff, follow

    hand = HandOff(wish, plan, say=say)
    stands = hand.prepare()["state"]
    name = hand.state.name
    later = f"see: reprobundle handoff status {name}"
    if no_wait:
        bring = f"bring it home: reprobundle handoff fetch {name}"
        click.echo(f"{stands}; {bring if stands in OVER else later}")
        return EXIT_INCOMPLETE
    try:
        follow(hand.state, retries=wish.retries, say=say, show=_show)
    except (KeyboardInterrupt, ConnectionLostError) as error:
        words = str(error) or "interrupted"
        say(f"{words}; the replay goes on there, {later}")
        return EXIT_INCOMPLETE
    return _bring_back(
        hand.state, keep=None, allow=allow, retries=wish.retries, as_json=as_json
    )


def _show(words: str) -> None:
    """Show output of the other machine; it may not steer this terminal."""
    from reprobundle.report.text import safe

    click.echo("\n".join(map(safe, words.split("\n"))), nl=False, err=True)


def _bring_back(
    state: State,
    *,
    keep: Path | None,
    allow: tuple[str, ...],
    retries: int,
    as_json: bool,
) -> int:
    from reprobundle.handoff.errors import RefusedThereError
    from reprobundle.handoff.hand import remember, status_of
    from reprobundle.handoff.returning import bring_back
    from reprobundle.report.json import report_json
    from reprobundle.report.screen import Screen
    from reprobundle.report.terminal import render_report

    state, found = remember(state, status_of(state, retries=retries, say=say))
    for one in found:
        say(f"finding {one.name}: {one.text}")
    try:
        back = bring_back(state, keep=keep, allow=allow, retries=retries, say=say)
    except RefusedThereError as error:
        click.echo(f"INCOMPLETE: {error}", err=True)
        return EXIT_INCOMPLETE
    if as_json:
        click.echo(report_json(back.report).decode(), nl=False)
    else:
        click.echo(render_report(back.report, Screen.of(sys.stdout)))
    say(f"what is left there is removed by: reprobundle handoff clean {state.name}")
    return back.report.exit_status


@handoff.command()
@_name
@click.option("--offline", is_flag=True, help="Ask no machine; show what is known.")
@_retries
@json_option
def status(*, name: str, offline: bool, retries: int, as_json: bool) -> int:
    """Show how hand-offs stand, what went wrong, and every place of a copy."""
    from reprobundle.errors import ReprobundleError
    from reprobundle.handoff import state as known
    from reprobundle.handoff.hand import remember, status_of
    from reprobundle.report import handed

    states = (known.find(name),) if name else known.known()
    shown: list[str] = []
    documents: list[dict[str, object]] = []
    exit_status = 0
    for one in states:
        answer: dict[str, Any] | None = None
        why, state = "--offline", one
        found: tuple[Finding, ...] = ()
        if not offline:
            try:
                answer, why = status_of(one, retries=retries, say=say), ""
                state, found = remember(one, answer)
            except ReprobundleError as error:
                why = str(error)
        shown.append(handed.render_status(state, answer, found, why=why))
        documents.append(handed.status_json(state, answer, found, why=why))
        if name:
            result = (answer or {}).get("result") or {}
            finished = (answer or {}).get("state") == "finished"
            exit_status = result.get("exit_status", 11) if finished else EXIT_INCOMPLETE
    text = handed.render_json(documents) if as_json else "\n".join(shown)
    click.echo(text or "no hand-offs")
    return int(exit_status)


@handoff.command()
@_name
@click.option("-f", "--follow", "wait", is_flag=True, help="Go on while it runs.")
@_retries
def logs(*, name: str, wait: bool, retries: int) -> int:
    """Show what the replay printed there."""
    from reprobundle.handoff.hand import follow
    from reprobundle.handoff.state import find

    follow(find(name), wait=wait, retries=retries, say=say, show=_show)
    return 0


@handoff.command()
@_name
@click.option(
    "--record",
    type=click.Path(path_type=Path),
    callback=named,
    help="Keep the record there as well.",
)
@_retries
@allow_option
@json_option
def fetch(
    *,
    name: str,
    record: Path | None,
    retries: int,
    allow: tuple[str, ...],
    as_json: bool,
) -> int:
    """Fetch the record, verify it, attach it, and print the verdict."""
    from reprobundle.handoff.state import find

    return _bring_back(
        find(name), keep=record, allow=allow, retries=retries, as_json=as_json
    )


@handoff.command()
@_name
@_retries
def cancel(*, name: str, retries: int) -> int:
    """End the run there."""
    from reprobundle.handoff.copying import patiently
    from reprobundle.handoff.hand import agent_of
    from reprobundle.handoff.state import find

    agent = agent_of(find(name))
    done = patiently(lambda: agent.ask("cancel"), retries=retries, say=say)
    click.echo("cancelled" if done["cancelled"] else "it was not running")
    return 0


@handoff.command()
@_name
@click.option("--list", "only_list", is_flag=True, help="Remove nothing.")
@_retries
def clean(*, name: str, only_list: bool, retries: int) -> int:
    """List what a hand-off left there, remove it, and look again."""
    from reprobundle.handoff.leaving import leave, left_there
    from reprobundle.handoff.state import claimed, find, forget
    from reprobundle.report import handed

    state = find(name)
    if not state.python:
        click.echo(f"{state.name} never reached its machine: nothing was copied there")
        if not only_list:
            with claimed(state.name):
                forget(state)
            click.echo("forgotten here")
        return 0
    left = left_there(state, retries=retries, say=say)
    click.echo(handed.render_left(left, state.destination))
    if only_list:
        return 0
    state = leave(state, retries=retries, say=say)
    click.echo(f"removed, and looked again: nothing is left on {state.destination}")
    for place in state.places:
        end = f"gone since {place.removed}" if place.removed else "still there"
        click.echo(f"  {place.kind} in {place.where}: {end}")
    return 0
