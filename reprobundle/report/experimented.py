"""Show the attached runs that were to differ, and how to set them side by side."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from reprobundle.format.findings import ExperimentRun, Report
from reprobundle.report import text
from reprobundle.report.layout import Column, Row, more, paragraph, table
from reprobundle.report.screen import Line, Screen, Span

MOST_RUNS = 8
EXPERIMENT_COLUMNS = ("experiment", "asked to differ", "run", "ended")
EXPERIMENT_NOTE = "Experiments show causes. None of them counts for the verdict."


def experiment_cells(run: ExperimentRun) -> tuple[str, str, str, str]:
    """Return what a table says about one experiment."""
    name = text.digest(run.replay)
    if run.side:
        name = f"{name} (side {run.side} of pair {run.pair[:8]})"
    where = f"{run.pass_name} pass of {run.claim} on {run.device}"
    return name, run.asked, where, run.ending


def experiment_command(report: Report) -> str:
    """Return what sets the newest pair, or else experiment, side by side."""
    runs = report.experiments
    bundle = shlex.quote(report.file)
    pairs = [one.pair for one in runs if one.side]
    if not pairs:
        newest = runs[-1].replay[:12]
        return f"reprobundle diff {bundle}:reference {bundle}:{newest}"
    sides = {one.side: one.replay for one in reversed(runs) if one.pair == pairs[-1]}
    names = [f"{bundle}:{sides[side][:12]}" for side in ("A", "B") if side in sides]
    return f"reprobundle diff {' '.join(names)}"


def experiment_lines(report: Report, screen: Screen, *, verbose: bool) -> list[Line]:
    """Return the experiments of a bundle, the newest last."""
    runs: Sequence[ExperimentRun] = report.experiments
    if not runs:
        return []
    shown = runs if verbose else runs[-MOST_RUNS:]
    columns = (
        Column(EXPERIMENT_COLUMNS[0], least=14),
        Column(EXPERIMENT_COLUMNS[1], least=16),
        Column(EXPERIMENT_COLUMNS[2], least=16),
        Column(EXPERIMENT_COLUMNS[3], least=12),
    )
    rows: list[Row] = [tuple(map(Span, experiment_cells(run))) for run in shown]
    words = f"{EXPERIMENT_NOTE} See: {experiment_command(report)}"
    return [
        *table(screen, columns, rows),
        *more(screen, len(runs) - len(shown), "experiment"),
        *paragraph(screen, "", words, whole=True),
    ]
