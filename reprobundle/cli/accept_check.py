"""``reprobundle accept --check``: does the attached acceptance hold on this machine?"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from reprobundle.cli.options import say

if TYPE_CHECKING:
    from reprobundle.format.assessment import (
        AcceptanceState,
        Assessment,
        AttachedAcceptance,
    )

EXIT_HOLDS = 0
EXIT_NOT_KNOWN = 11
EXIT_TAMPERED = 21


class _Answer(NamedTuple):
    """Whether it holds here, why not, and what was not compared."""

    state: AcceptanceState
    reasons: list[str]
    notes: list[str]


def check_here(bundle: Path, python: Path | None, *, as_json: bool) -> int:
    """Say whether the newest acceptance holds for this machine, and return the status.

    0 it holds, 11 it is stale, cannot be compared or there is none, 21 contradicted.
    """
    from reprobundle.format.canonical import encode
    from reprobundle.report.accepted import STATES

    newest, accepted = _newest(bundle)
    answer = _Answer(newest.state, list(newest.reasons), [])
    if newest.state == "holds":
        answer = _compared(bundle, accepted, python)
    state, reasons, notes = answer
    if as_json:
        shown = {
            "acceptance": newest.id,
            "state": state,
            "reasons": reasons,
            "notes": notes,
        }
        click.echo(encode(shown).decode(), nl=False)
    else:
        click.echo(f"acceptance {newest.id[:12]} by {newest.by}: {STATES[state]}")
        for text in (*reasons, *notes):
            click.echo(f"  {text}")
    if state == "stale":
        name = shlex.quote(str(bundle))
        say(f"replay it with these versions: reprobundle replay {name}")
    if state == "contradicted":
        return EXIT_TAMPERED
    return EXIT_HOLDS if state == "holds" else EXIT_NOT_KNOWN


def _newest(bundle: Path) -> tuple[AttachedAcceptance, Assessment]:
    """Return the newest attached acceptance and what it came to.

    Raises:
        BadCallError: There is none, or the bundle is not sound.
    """
    from reprobundle.errors import BadCallError
    from reprobundle.format.reader import open_bundle
    from reprobundle.verify.acceptance_records import read_acceptances
    from reprobundle.verify.verify import verify_bundle

    report = verify_bundle(bundle)
    if not report.acceptances:
        raise BadCallError(
            f"{bundle.name} holds no sound acceptance record ({report.verdict})",
            advice="make one: reprobundle accept BUNDLE --by NAME --where PLACE "
            "--attach",
        )
    newest = report.acceptances[-1]
    with open_bundle(bundle) as opened:
        sound, _ = read_acceptances(opened)
    record = next(one.record for one in sound if one.id == newest.id)
    return newest, record.assessment


def _compared(bundle: Path, accepted: Assessment, python: Path | None) -> _Answer:
    from reprobundle.verify.assessment.versions import compare_here, platforms_of

    system, here = _machine(bundle, python)
    systems = platforms_of(accepted)
    if system not in systems:
        listed = ", ".join(systems) or "no platform"
        reason = f"it is about {listed}, and this machine is {system}"
        return _Answer("not-confirmed", [reason], [])
    found = compare_here(accepted, platform=system, here=here)
    notes = []
    if found.not_compared:
        notes = [f"not compared: {', '.join(found.not_compared)}"]
    if found.changed:
        return _Answer("stale", list(found.changed), notes)
    if found.unknown:
        reason = f"this machine does not tell: {', '.join(found.unknown)}"
        return _Answer("not-confirmed", [reason], notes)
    return _Answer("holds", [], notes)


def _machine(bundle: Path, python: Path | None) -> tuple[str, Mapping[str, str]]:
    """Return this machine's system and versions, as far as its interpreter tells."""
    from reprobundle import __version__
    from reprobundle.errors import EnvironmentUnusableError
    from reprobundle.format.reader import open_bundle
    from reprobundle.port.doctor.asked import ask
    from reprobundle.replay.chosen_environment import current_python
    from reprobundle.replay.environment import check_current
    from reprobundle.run.command import platform_name
    from reprobundle.verify.assessment.versions import PACKAGES, VERSION_FACTS
    from reprobundle.verify.sealed import read_sealed

    interpreter = python or current_python()
    facts = ask(interpreter, os.environ)
    here = {name: facts.text(name) for name in VERSION_FACTS if facts.text(name)}
    here["tool"] = f"reprobundle {__version__}"
    with open_bundle(bundle) as opened:
        sealed, _ = read_sealed(opened)
    if sealed is not None and sealed.lock is not None:
        try:
            here[PACKAGES] = str(len(check_current(sealed.lock, interpreter)))
        except EnvironmentUnusableError as error:
            say(f"packages were not compared: {error}")
    system = {"darwin": "macos", "win32": "windows"}.get(
        platform_name(), platform_name()
    )
    return system, here
