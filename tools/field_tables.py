"""Make the table of the record's fields in docs/fields.md from the types themselves.

`tools/spec_tables.py` fills it in. The table of facts below it is written by hand: a
test compares it with what a real run records.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Iterator
from pathlib import Path

import msgspec

from reprobundle.format import record

FIELDS = Path(__file__).parents[1] / "docs" / "fields.md"
NOT_DESCRIBED = "not described yet"

# Who fills a type, and from what; the tests that show it.
ORIGINS: dict[str, tuple[str, str]] = {
    "Record": ("`run.assemble`, from everything below", "tests/cli/test_round_trip.py"),
    "Command": ("`pack`'s command line", "tests/run/test_command.py"),
    "Fact": ("the tables below", "tests/recorder/test_environment.py"),
    "Process": (
        "start and end events; the process tree seen from outside",
        "tests/run/test_facts.py, test_watch.py",
    ),
    "SeedCall": ("wrapped seed functions", "tests/recorder/test_randomness.py"),
    "Loader": ("`DataLoader._get_iterator`", "tests/recorder/test_beginnings.py"),
    "Drawn": ("the kernels of draws", "tests/recorder/test_draws.py"),
    "StartTensor": (
        "the first call of a module, the first optimizer step, the first batch",
        "tests/recorder/test_beginnings.py",
    ),
    "Randomness": (
        "generator states at import, making and end",
        "tests/recorder/test_randomness.py, tests/run/test_randomness.py",
    ),
    "Phase": ("module calls, optimizer hooks, wraps", "tests/recorder/test_phases.py"),
    "AllocatorCall": ("wrapped allocator functions", "tests/recorder"),
    "InputShape": ("first arguments of module calls", "tests/recorder"),
    "Growth": ("the memory series", "tests/run/test_growth.py"),
    "Memory": ("samples at named points and by clock", "tests/recorder, tests/run"),
    "MemorySample": ("one sample", "tests/recorder/test_environment.py"),
    "MemorySeries": ("all samples that were kept", "tests/run"),
    "Rank": ("each rank's own events", "tests/run, tests/cli"),
    "WithheldFile": (
        "`pack --hash-only`, `--stand-in`",
        "tests/pack/test_withholding.py",
    ),
    "Restart": (
        "`--restart-check`: the stopped and the resumed run",
        "tests/cli/test_restart.py",
    ),
    "Devices": ("tensors seen; warnings; traces", "tests/verify/test_devices.py"),
    "Float64Search": (
        "moves and operators on the steered device, evidence pass",
        "tests/recorder/test_float64.py",
    ),
    "Float64Site": ("as above", "tests/recorder/test_float64.py"),
    "OperatorForm": (
        "operators on an accelerator, evidence pass",
        "tests/verify/test_mps_kernels.py",
    ),
    "FileRead": ("audited and wrapped opens", "tests/recorder/test_files.py"),
    "ArraySummary": ("the output's own bytes", "tests/outputs"),
    "Output": ("files changed below the project, recorded values", "tests/outputs"),
    "ErrorReport": ("the exception hook", "tests/recorder/test_ending.py"),
    "Outcome": ("exit status seen by the launcher", "tests/cli/test_failures.py"),
    "Remark": ("`run.remarks`", "tests/cli/test_entry_kinds.py"),
    "ContentMember": ("digests of the files written", "tests/verify/test_integrity.py"),
}
_ENTRY = re.compile(r"^    (?P<names>\w+(?:, \w+)*): (?P<text>.*)$")


def record_types() -> list[type[msgspec.Struct]]:
    """Return the types of the record, the record itself first."""
    found = [
        kind
        for kind in vars(record).values()
        if inspect.isclass(kind)
        and issubclass(kind, msgspec.Struct)
        and kind.__module__.startswith(f"{record.__name__}.")
    ]
    return sorted(found, key=lambda kind: kind is not record.Record)


def described(kind: type[msgspec.Struct]) -> dict[str, str]:
    """Return what the docstring of a type says about each field."""
    texts: dict[str, str] = {}
    names: list[str] = []
    for line in (inspect.getdoc(kind) or "").partition("Attributes:")[2].splitlines():
        match = _ENTRY.match(line)
        if match:
            names = match["names"].split(", ")
            texts.update(dict.fromkeys(names, match["text"].strip()))
        elif line.strip():
            for name in names:
                texts[name] += " " + line.strip()
    return texts


def table() -> Iterator[str]:
    """Yield the lines of the table, one section for each type."""
    for kind in record_types():
        source, tests = ORIGINS.get(kind.__name__, (NOT_DESCRIBED, NOT_DESCRIBED))
        summary = (inspect.getdoc(kind) or "").partition("\n")[0]
        yield f"### {kind.__name__}"
        yield ""
        yield f"{summary} Filled from: {source}. Shown by: {tests}."
        yield ""
        yield "| field | meaning |"
        yield "|---|---|"
        texts = described(kind)
        for name in typing.get_type_hints(kind):
            meaning = texts.get(name, "as its name says").replace("|", "\\|")
            yield f"| `{name}` | {meaning.replace('``', '`')} |"
        yield ""
