"""Write the table of cases in docs/verdict.md: what each change of a replay leads to.

    python tools/verdict_cases.py [--print]

Packs the examples, replays each as it is and in the ways named below, and asks
`verify`. Another machine is an interpreter that sets variables before it starts: other
CPU kernels, another number of threads, products in bfloat16. It is not `replay --set`,
which makes an experiment that decides nothing. A changed script and a changed input
cannot come out of an honest replay, which refuses an altered bundle; there the record
of the changed project is given the id of the sound bundle, as somebody would who passes
it off as a replay.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from reprobundle.format.attach import attach_replay
from reprobundle.format.canonical import decode, encode
from reprobundle.format.digests import digest_bytes
from reprobundle.format.findings import Report
from reprobundle.format.reader import (
    Bundle,
    ReplayFile,
    open_bundle,
    open_replay_file,
)
from reprobundle.format.record import ContentMember, Record
from reprobundle.format.writer import Source
from reprobundle.verify.causes.likely import next_change
from reprobundle.verify.content import attached
from reprobundle.verify.verify import verify_bundle

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "verdict.md"
START, END = "<!-- cases -->\n", "<!-- end -->"
# The table is about numbers and protocol; repeat and evidence have their own tests.
ONE_PASS = ("--passes", "measured")
LOGS = ("stdout.txt", "stderr.txt")


class Example(NamedTuple):
    """One example: its folder, its command, and what a pack of it needs besides."""

    folder: str
    command: tuple[str, ...]
    options: tuple[str, ...] = ()


EXAMPLES = (
    Example(
        "digits",
        ("python", "train.py", "--device", "cpu", "--epochs", "2"),
        ("--seed", "7"),
    ),
    Example("inference", ("python", "infer.py")),
    Example("expected_failure", ("python", "train.py"), ("--expect-failure",)),
)
# Another machine → the variables that make it one.
MACHINES = (
    ("other kernels", "ATEN_CPU_CAPABILITY=default"),
    ("one thread", "OMP_NUM_THREADS=1"),
    ("three threads", "OMP_NUM_THREADS=3"),
    ("products in bfloat16", "PRECISION=bfloat16"),
)


def run(*arguments: str | Path, folder: Path) -> int:
    """Run one `reprobundle` command with this interpreter and return its status."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    ended = subprocess.run(
        [sys.executable, "-m", "reprobundle", *arguments],
        cwd=folder,
        env={**os.environ, "PATH": path},
        check=False,
        capture_output=True,
        text=True,
    )
    if ended.returncode in (20, 21, 22):
        sys.exit(f"{' '.join(map(str, arguments))}: {ended.stderr}")
    return ended.returncode


def pack(example: Example, project: Path, bundle: Path) -> None:
    """Pack a copy of the example."""
    run(
        "pack",
        *("--project", ".", "-o", str(bundle), "-q", *ONE_PASS, *example.options),
        *("--", *example.command),
        folder=project,
    )


def replayed(bundle: Path, goal: Path, *options: str) -> Report:
    """Return what `replay` says about its run of a copy of `bundle`."""
    shutil.copyfile(bundle, goal)
    run("replay", goal, "--yes", "-q", *ONE_PASS, *options, folder=goal.parent)
    with open_bundle(goal) as opened:
        made = opened.replay_ids
    # A run with --set is an experiment, which is judged only where it is asked for.
    return verify_bundle(goal, only=made)


def machine(folder: Path, setting: str) -> Path:
    """Return an interpreter that has a variable set, whoever starts it."""
    home = folder / setting.replace("=", "-")
    home.mkdir(exist_ok=True)
    python = home / "python"
    python.write_text(
        f'#!/bin/sh\nexport {setting}\nexec {shlex.quote(sys.executable)} "$@"\n'
    )
    python.chmod(0o755)
    return python


def passed_off(bundle: Path, other: Path, goal: Path) -> Report:
    """Return the verdict on a replay of another bundle that names this one."""
    shutil.copyfile(bundle, goal)
    alone = goal.with_suffix(".rpr.zip")
    alone.unlink(missing_ok=True)
    run(
        *("replay", str(other), "--yes", "-q", *ONE_PASS, "--record", str(alone)),
        folder=goal.parent,
    )
    with open_bundle(goal) as opened:
        bundle_id = opened.id
    with open_replay_file(alone) as source, open_bundle(other) as packed:
        for replay_id in source.replay_ids:
            record, sources = _renamed(source, replay_id, packed)
            record = msgspec.structs.replace(record, bundle=bundle_id)
            attach_replay(goal, encode(record), sources)
    return verify_bundle(goal)


def _renamed(
    source: ReplayFile, replay_id: str, packed: Bundle
) -> tuple[Record, list[Source]]:
    """Return a replay with everything beside it that its own bundle held for it."""
    top = f"replays/{replay_id}/"
    data = source.read_unsealed(f"{top}record.json")
    record = decode(data, Record, where="record.json", rule="R-7.2")
    held = attached(packed, source, replay_id, record)
    contents = {}
    for stated in record.members:
        with held.open_own(stated.name) as file:
            contents[stated.name] = file.read()
    outputs = []
    for place, output in enumerate(record.outputs):
        own = output
        if output.stored == "sealed":
            name = f"outputs/sealed-{place}"
            contents[name] = packed.read(output.member)
            own = msgspec.structs.replace(output, stored="here", member=name)
        outputs.append(own)
    members = (
        ContentMember(name=name, size_bytes=len(content), blake3=digest_bytes(content))
        for name, content in sorted(contents.items())
    )
    record = msgspec.structs.replace(
        record, outputs=tuple(outputs), members=tuple(members)
    )
    return record, [
        Source(name, "log" if name in LOGS else "output", content)
        for name, content in contents.items()
    ]


# --- changed projects


def change_script(project: Path) -> None:
    """Change one number in a script."""
    for name, old, new in (
        ("train.py", "import ", "CHANGED = 1\nimport "),
        ("infer.py", "import ", "CHANGED = 1\nimport "),
    ):
        path = project / name
        if path.exists():
            path.write_text(path.read_text().replace(old, new, 1))


def change_input(project: Path) -> None:
    """Change one digit of the data."""
    for path in [*sorted(project.glob("data/*.csv")), *sorted(project.glob("*.csv"))]:
        lines = path.read_text().splitlines()
        cells = lines[1].split(",")
        cells[3] = "7.5" if "." in cells[3] else "7"
        lines[1] = ",".join(cells)
        path.write_text("\n".join(lines) + "\n")
        return


CHANGES: tuple[tuple[str, Callable[[Path], None]], ...] = (
    ("changed script", change_script),
    ("changed input", change_input),
)


def cases(folder: Path) -> Iterator[tuple[str, str, Report]]:
    """Yield example, case and report."""
    for example in EXAMPLES:
        project = folder / example.folder
        shutil.copytree(ROOT / "examples" / example.folder, project)
        bundle = folder / f"{example.folder}.rpb.zip"
        pack(example, project, bundle)
        goal = folder / f"{example.folder}-case.rpb.zip"
        yield example.folder, "as it is", replayed(bundle, goal)
        for name, setting in MACHINES:
            python = machine(folder, setting)
            report = replayed(bundle, goal, "--env", str(python))
            yield example.folder, f"{name} (`{setting}`)", report
        for name, change in CHANGES:
            changed = folder / f"{example.folder}-changed"
            shutil.rmtree(changed, ignore_errors=True)
            shutil.copytree(project, changed)
            change(changed)
            other = folder / "changed.rpb.zip"
            other.unlink(missing_ok=True)
            pack(example, changed, other)
            yield example.folder, name, passed_off(bundle, other, goal)
    yield from masked(folder)


def masked(folder: Path) -> Iterator[tuple[str, str, Report]]:
    """Yield a pipeline whose first part fails on the second machine."""
    project = folder / "masked"
    project.mkdir()
    script = (
        "import os, pathlib, torch\n"
        "pathlib.Path('out.txt').write_text('42\\n')\n"
        "assert os.environ.get('OMP_NUM_THREADS') != '1', 'too few threads'\n"
    )
    (project / "run.py").write_text(script)
    bundle = folder / "masked.rpb.zip"
    pack(Example("", ("sh", "-c", "python run.py | cat")), project, bundle)
    goal = folder / "masked-case.rpb.zip"
    report = replayed(bundle, goal, "--env", str(machine(folder, "OMP_NUM_THREADS=1")))
    yield "a pipeline", "masked failure (`python run.py | cat`)", report


def table(rows: Iterator[tuple[str, str, Report]]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| example | replay | verdict | exit | first reason | likely cause, and try |",
        "|---|---|---|---|---|---|",
    ]
    for example, case, report in rows:
        causes = report.judgements[-1].causes if report.judgements else ()
        command = next_change(causes)
        likely = f"{causes[0].id}: `{command}`" if causes and command else ""
        likely = likely or (causes[0].id if causes else "")
        reason = report.reasons[0] if report.reasons else ""
        # The interpreter's place is that of whoever made the table.
        short = reason.replace(sys.executable, "python").replace("|", "\\|")[:140]
        case = case.replace("|", "\\|")
        likely = likely.replace("|", "\\|").replace("-case.rpb.zip", ".rpb.zip")
        cells = (example, case, report.verdict, str(report.exit_status), short, likely)
        lines.append(f"| {' | '.join(cells)} |")
        sys.stderr.write(f"{lines[-1]}\n")
        sys.stderr.flush()
    return "\n".join(lines) + "\n"


def main() -> None:
    """Make the cases and write them into the page."""
    with tempfile.TemporaryDirectory() as folder:
        text = table(cases(Path(folder)))
    if "--print" in sys.argv:
        return
    page = PAGE.read_text()
    head, _, rest = page.partition(START)
    PAGE.write_text(f"{head}{START}{text}{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
