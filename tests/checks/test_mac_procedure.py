"""What is typed on a rented Mac exists: every command of docs/mac.md and macos.yml."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import click
import pytest

from reprobundle.cli.group import cli

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/mac.md").read_text(encoding="utf-8")
WORKFLOW = (ROOT / ".github/workflows/macos.yml").read_text(encoding="utf-8")
OURS = ("reprobundle", "~/rb/bin/reprobundle", ".venv/bin/reprobundle")


def typed(text):
    """Yield the words of each command in a page's indented lines, or a job's steps."""
    for line in text.splitlines():
        plain = line.strip().removeprefix("run:").removeprefix("- run:").strip()
        if line.startswith("    ") and plain and not plain.startswith(("|", "-", "#")):
            words = shlex.split(plain.partition(" #")[0], posix=True)
            if words:
                yield words


def of_ours(text):
    return [words[1:] for words in typed(text) if words[0] in OURS]


def problems(words):
    """Return what is wrong with the words behind the program's name."""
    command = cli.get_command(click.Context(cli), words[0])
    if command is None:
        return [f"no command {words[0]}"]
    known = {
        name: option
        for option in command.params
        if isinstance(option, click.Option)
        for name in (*option.opts, *option.secondary_opts)
    }
    found, places, rest = [], 0, iter(words[1:])
    for word in rest:
        if not word.startswith("-"):
            places += not word.startswith(">") and word != "verdict.json"
            continue
        option = known.get(word)
        if option is None:
            found.append(f"{words[0]} has no {word}")
        elif not option.is_flag:
            value = next(rest, "")
            if (
                isinstance(option.type, click.Choice)
                and value not in option.type.choices
            ):
                found.append(f"{word} does not take {value}")
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    if places > len(arguments) and all(one.nargs == 1 for one in arguments):
        found.append(f"{words[0]} takes {len(arguments)} arguments, got {places}")
    return found


def test_every_command_of_the_page_exists_as_it_is_written():
    commands = of_ours(PAGE)
    assert len(commands) >= 12
    assert {words[0] for words in commands} >= {
        "doctor",
        "replay",
        "status",
        "verify",
        "attach",
        "inspect",
    }
    assert [one for words in commands for one in problems(words)] == []


def test_every_option_that_the_page_names_in_passing_exists():
    named = set(re.findall(r"`[^`\n]*?(--[a-z][a-z-]+)[^`\n]*`", PAGE))
    context = click.Context(cli)
    known = {
        text
        for name in cli.list_commands(context)
        for command in (cli.get_command(context, name),)
        if command is not None
        for option in command.params
        for text in option.opts
    }
    assert len(named) > 5
    assert named <= known


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["clean"], "no command clean"),
        (["replay", "x.rpb.zip", "--devices", "mps"], "replay has no --devices"),
        (["replay", "x.rpb.zip", "--fallback", "on"], "--fallback does not take on"),
        (["verify", "x.rpb.zip", "y.rpb.zip"], "verify takes 1 arguments, got 2"),
    ],
)
def test_a_command_that_does_not_exist_would_be_seen(words, why):
    assert why in problems(words)


def test_each_program_that_the_workflow_runs_finds_what_it_names():
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = set(told["project"]["optional-dependencies"])
    markers = {
        one.partition(":")[0]
        for one in told["tool"]["pytest"]["ini_options"]["markers"]
    }
    seen = 0
    for words in typed(WORKFLOW):
        if words[0] == ".venv/bin/pytest":
            seen += 1
            marker = words[words.index("-m") + 1]
            assert set(re.findall(r"[a-z]+", marker)) - {"not", "and", "or"} <= markers
            folders = [word for word in words if word.startswith("tests")]
            assert [one for one in folders if not (ROOT / one).is_dir()] == []
        if "pip" in words:
            seen += 1
            assert (ROOT / words[words.index("-c") + 1]).is_file()
            wanted = re.search(r"\[(.*)\]", words[-1])
            assert wanted is not None
            assert set(wanted[1].split(",")) <= extras
    assert seen == 3
    assert [one for words in of_ours(WORKFLOW) for one in problems(words)] == []
    assert of_ours(WORKFLOW)


def test_the_workflow_fails_where_there_is_no_apple_gpu_and_keeps_the_bundles():
    assert "assert torch.backends.mps.is_available()" in WORKFLOW
    assert "REPROBUNDLE_BUNDLES: ${{ github.workspace }}/build/bundles" in WORKFLOW
    assert re.search(r"upload-artifact@v\d\n\s+with:\n.*\n\s+path: build\n", WORKFLOW)
