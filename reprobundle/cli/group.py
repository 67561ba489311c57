"""The group of all verbs, and what happens with a verb's status or error.

A verb's module is imported when the verb is called, and its own imports stay inside
it: `reprobundle verify` of a small bundle is to answer in a tenth of a second.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from importlib import import_module

import click

from reprobundle import __version__
from reprobundle.errors import EXIT_BAD_CALL, BundleError, ReprobundleError

# Verb: the module of this package that holds it. The help lists them in this order.
VERBS = {
    "pack": "pack",
    "verify": "verify",
    "replay": "replay",
    "accept": "accept",
    "report": "report",
    "issue": "issue",
    "status": "status",
    "handoff": "handoff",
    "copies": "copies",
    "inspect": "inspect",
    "check": "check",
    "export": "export",
    "split": "split",
    "join": "split",
    "wheels": "wheels",
    "diff": "diff",
    "scan": "scan",
    "doctor": "doctor",
    "forecast": "forecast",
    "policy": "policy",
    "extract": "members",
    "cat": "members",
    "attach": "attachments",
    "detach": "attachments",
    "sign": "sign",
    "selftest": "selftest",
}


_GARBAGE_OBJECTS = 100_000
"""Objects made before the collector looks for cycles: with the default of 700 it looks
through what imports made again and again, a twelfth of a short command's time."""

_ONLY_POSIX = frozenset({"fcntl", "grp", "pwd", "resource", "termios"})


class _Verbs(click.Group):
    """A group that imports a verb when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all verbs, the three main ones first."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the verb, or None when there is none of that name."""
        if cmd_name not in VERBS:
            return None
        module = import_module(f"reprobundle.cli.{VERBS[cmd_name]}")
        command = getattr(module, cmd_name)
        return command if isinstance(command, click.Command) else None


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="reprobundle")
def cli() -> None:
    """Pack a PyTorch run into one file, replay it elsewhere, judge the result.

    Exit status: 0 reproduced, 10 not reproduced, 11 no verdict yet, 12 reproduced
    with warnings, 20 bad call, 21 bundle unreadable or altered, 22 command failed.
    """


def _tell_job(error: ReprobundleError) -> None:
    """Let a detached replay that ends with an error say so, if this is one."""
    if "REPROBUNDLE_JOB" in os.environ:
        from reprobundle.replay.jobs import report_result

        report_result(error.exit_status, str(error))


def _named(error: ReprobundleError) -> str:
    """Return the line, with the file's name: `attach` and `join` take two of them."""
    file = error.file if isinstance(error, BundleError) else ""
    return f"{file}: {error}" if file and file not in str(error) else str(error)


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit status.

    Args:
        arguments: Without the program's name.
    """
    try:
        status = cli.main(arguments, prog_name="reprobundle", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        return EXIT_BAD_CALL
    except click.ClickException as error:
        click.echo(f"reprobundle: {error.format_message()}", err=True)
        return EXIT_BAD_CALL
    except ReprobundleError as error:
        from reprobundle.report.text import safe

        click.echo(f"reprobundle: {safe(_named(error))}", err=True)
        _tell_job(error)
        return error.exit_status
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        return EXIT_BAD_CALL
    except ModuleNotFoundError as error:
        if error.name not in _ONLY_POSIX:
            raise
        click.echo(
            f"reprobundle: this verb needs Linux or macOS: there is no {error.name} "
            "here; inspect, verify, report, diff, extract and cat work everywhere",
            err=True,
        )
        return EXIT_BAD_CALL
    except MemoryError:
        click.echo(
            "reprobundle: the memory that this process may use is not enough", err=True
        )
        return EXIT_BAD_CALL
    except BrokenPipeError:
        # The reader of our output went away, as `head` does.
        sys.stderr.close()
        return EXIT_BAD_CALL
    except OSError as error:
        # A full disk or a lost permission can show anywhere.
        click.echo(f"reprobundle: {_told(error)}", err=True)
        return EXIT_BAD_CALL
    return status if isinstance(status, int) else 0


def _end_like_an_interrupt() -> None:
    """Have a request to end clean up as Ctrl-C does.

    Otherwise the command under way would run on alone, and its copies stay behind. A
    signal that somebody had us ignore, as nohup does, stays ignored.
    """
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def _told(error: OSError) -> str:
    """Return one line about an error of the system."""
    text = (error.strerror or str(error)).lower()
    if error.filename:
        return f"{error.filename}: {text}; check the free space and permissions there"
    # A failed write names no file: it went to a copy, or to what was to be made.
    return (
        f"{text}; check the free space and permissions of the folder for temporary "
        "files (TMPDIR) and of the folder that is written to"
    )


def main() -> None:
    """Run the console script.

    It ends without the interpreter's clean-up, which takes a sixth of the time that a
    verify of a small bundle takes: every file and folder is closed or removed by then.
    """
    gc.set_threshold(_GARBAGE_OBJECTS)
    _end_like_an_interrupt()
    status = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        # The reader of our output may have gone away, as `head` does.
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)
