"""The command line: parse, call one verb, print, exit. Nothing else."""

from reprobundle.cli.group import main, run

__all__ = ["main", "run"]
