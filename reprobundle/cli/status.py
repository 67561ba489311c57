"""``reprobundle status``."""

from __future__ import annotations

import click

from reprobundle.cli.options import json_option


@click.command()
@click.argument("job", required=False)
@click.option("--cancel", is_flag=True, help="End the job.")
@json_option
def status(*, job: str | None, cancel: bool, as_json: bool) -> int:
    """Show detached replays: running, finished, crashed, or lost in a reboot."""
    from reprobundle.report.jobs import render_jobs

    text, exit_status = render_jobs(job, end=cancel, as_json=as_json)
    click.echo(text)
    return exit_status
