"""Options and small steps that several verbs share."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprobundle.cli.paths import STANDARD, local_path

if TYPE_CHECKING:
    from reprobundle.sign.signers import Signers
    from reprobundle.verify.second_opinion import OwnPolicy

EXIT_INCOMPLETE = 11
DEVICES = ("as-is", "cpu", "cuda", "mps")

bundle_argument = click.argument("bundle", type=local_path)
output_option = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    callback=lambda _context, _parameter, path: None if path == STANDARD else path,
    help="File to write. [default: - (standard output)]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
DESTINATIONS = ("github-issue", "pytorch-issue", "zenodo", "huggingface", "paper")
destinations_option = click.option(
    "--for",
    "destinations",
    multiple=True,
    type=click.Choice(DESTINATIONS),
    help="Where it is to be attached; what it takes there is compared with it.",
)
allow_option = click.option(
    "--allow",
    multiple=True,
    metavar="NAME",
    help="Accept a warning by name; the verdict says so. CPU fallback, stand-in "
    "devices and reduced input can never be accepted.",
)


def signers_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that say whose keys are whose."""
    for option in (
        click.option(
            "--at",
            default="",
            metavar="YYYYMMDD",
            help="Ask whether the keys were valid then; otherwise now.",
        ),
        click.option(
            "--revoked",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Keys that were withdrawn, one a line, or a key revocation list.",
        ),
        click.option(
            "--signers",
            multiple=True,
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Whose keys are whose: an allowed_signers file, or one person's "
            "public keys, the file named after them (NAME.keys). One of them must "
            "have signed the bundle.",
        ),
    ):
        command = option(command)
    return command


def stated_signers(
    files: tuple[Path, ...], revoked: Path | None, at: str
) -> Signers | None:
    """Return whose keys are whose, or None if nobody said.

    Raises:
        click.UsageError: Something is asked of signers, and none are named.
    """
    if not files:
        if revoked is not None or at:
            raise click.UsageError("--revoked and --at need --signers")
        return None
    from reprobundle.sign import signers

    return signers.stated_signers(files, revoked=revoked, at=at)


_UNITS = {
    "": 1,
    "b": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)},
}


def size_bytes(text: str) -> int:
    """Return the bytes that a text such as ``25MB``, ``16MiB`` or ``0`` names."""
    match = re.fullmatch(
        r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([a-z]*)", text.strip().lower()
    )
    if match is None or match[2] not in _UNITS:
        raise click.BadParameter(f"{text!r} is no size: write it like 25MB or 16MiB")
    return int(float(match[1]) * _UNITS[match[2]])


restart_option = click.option(
    "--restart-check",
    is_flag=True,
    help="Also stop the run after a checkpoint, resume it, and compare the result "
    "with the straight run's.",
)
resume_option = click.option(
    "--resume-command",
    default="",
    metavar="COMMAND",
    help="What resumes the run, if it is not the command itself; one quoted line.",
)


def split(text: str) -> tuple[str, ...]:
    """Return the parts of a comma-separated list."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


map_device_option = click.option(
    "--map-device",
    "mappings",
    multiple=True,
    type=click.Choice(("cuda=cpu", "cuda=mps")),
    help="Have a command that names CUDA outright use that device, without editing it; "
    "the record holds every mapped call, and what only CUDA has stops the run.",
)


def mapped_devices(
    devices: tuple[str, ...], mappings: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the devices to use: where none is named, those that are mapped to.

    Raises:
        click.UsageError: A device is mapped to and not among those named.
    """
    targets = tuple(dict.fromkeys(one.partition("=")[2] for one in mappings))
    if targets and devices == ("as-is",):
        return targets
    for target in targets:
        if target not in devices:
            named = ", ".join(devices)
            raise click.UsageError(
                f"--map-device cuda={target} maps to {target}, and --device names "
                f"{named}: add {target} there, or leave out --device"
            )
    return devices


def parse_devices(text: str) -> tuple[str, ...]:
    """Return the devices of a comma-separated list.

    Raises:
        click.UsageError: One is not known, or none is named.
    """
    names = tuple(dict.fromkeys(split(text)))
    for name in names:
        if name not in DEVICES:
            known = ", ".join(DEVICES)
            raise click.UsageError(f"unknown device {name!r}; choose from {known}")
    if not names:
        raise click.UsageError("--device names no device")
    return names


def say(line: str) -> None:
    """Show one line of progress; results alone go to stdout.

    What a bundle or another machine put into it cannot steer the terminal.
    """
    from reprobundle.report.text import safe

    click.echo(safe(line), err=True)


def deliver(output: Path | None, text: str) -> None:
    """Write a text to a file, whole or not at all; print it where none is named.

    Raises:
        EnvironmentUnusableError: The file cannot be written.
    """
    if output is None:
        click.echo(text, nl=False)
        return
    from reprobundle.format.atomic import write_text

    write_text(output, text)


def own_policy(path: Path | None) -> OwnPolicy | None:
    """Return the verifier's own policy, read from `path`; None without one.

    Raises:
        BadCallError: The file is no policy.
    """
    if path is None:
        return None
    from reprobundle.pack.policy import read_stated
    from reprobundle.verify.second_opinion import OwnPolicy

    return OwnPolicy(path.name, read_stated(path))
