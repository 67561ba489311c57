"""Compare packing and verifying with other tools, on the same files, in one run.

    python benchmarks/container.py                       # about 200 MB of mixed files
    python benchmarks/container.py --kind weights --size-mb 800 --repeats 9

Every command is a whole process, start-up included. The commands take turns (A B C,
A B C, ...), so a slow minute of the machine hits all of them; what counts is the ratio
of the medians, not the seconds. Files are read from the page cache: the first turn of
each is thrown away.

Other tools do other work, so read the last column: tar and zip do not wait for the
disk, bagit makes no archive, and reprozip also traces (not timed here). Install bagit
and reprozip into a virtual environment of their own and name their programs:

    python benchmarks/container.py --bagit bin/bagit.py --reprozip bin/reprozip
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("weights", "csv", "small", "mix")

PACK = """
import sys
from pathlib import Path
from reprobundle.format.writer import Source, write_bundle
root = Path(sys.argv[1])
files = [path for path in root.rglob("*") if path.is_file()]
roles = {"inputs": "input", "project": "project"}
sources = [
    Source(name, roles[name.partition("/")[0]], path)
    for path in files
    for name in [path.relative_to(root).as_posix()]
]
write_bundle(Path(sys.argv[2]), sources)
"""

VERIFY = """
import sys
from pathlib import Path
from reprobundle.format.reader import check_digests, open_bundle
with open_bundle(Path(sys.argv[1])) as bundle:
    sys.exit(bool(check_digests(bundle, deep=sys.argv[2] == "deep")))
"""


@dataclass
class Contestant:
    """One command that takes part.

    Attributes:
        name: What the table calls it.
        command: Its arguments, or a line for the shell.
        note: What it does that the others do not, or the other way round.
        prepare: Called before each turn, not timed.
        product: The file or folder whose size is reported.
        seconds: Wall time of each turn.
        cpu_seconds: Processor time of each turn.
    """

    name: str
    command: list[str] | str
    note: str = ""
    prepare: Callable[[], None] = lambda: None
    product: Path | None = None
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)

    def take_turn(self, *, counts: bool) -> None:
        self.prepare()
        # Nobody waits for what the one before has left to be written.
        os.sync()
        before = os.times()
        start = time.perf_counter()
        done = subprocess.run(
            self.command,
            shell=isinstance(self.command, str),
            capture_output=True,
            text=True,
            check=False,
        )
        elapsed = time.perf_counter() - start
        after = os.times()
        if done.returncode:
            sys.exit(f"{self.name} failed: {done.stderr or done.stdout}")
        if counts:
            self.seconds.append(elapsed)
            self.cpu_seconds.append(
                after.children_user
                + after.children_system
                - before.children_user
                - before.children_system
            )


# -- payloads


def write_weights(path: Path, size_bytes: int) -> None:
    """Write normally distributed float32 values, a deviation of its own each 4 MiB."""
    import numpy as np

    rng = np.random.default_rng(1)
    with path.open("wb") as stream:
        for _ in range(max(1, size_bytes >> 22)):
            values = rng.standard_normal(1 << 20, dtype=np.float32)
            stream.write((values * np.float32(rng.uniform(0.005, 0.08))).tobytes())


def csv_lines(rng: random.Random) -> Iterator[str]:
    seconds = 0.0
    for step in range(1 << 40):
        seconds += rng.gauss(0.12, 0.01)
        loss = 2.3 / (1 + step / 1e4) + rng.gauss(0, 0.02)
        allocated = rng.randrange(2**20, 2**21) * 4096
        yield f"{step},{seconds:.6f},{loss:.7f},{allocated},{rng.gauss(3, 0.2):.3f}\n"


def write_csv(path: Path, size_bytes: int) -> None:
    """Write a table of metrics as a training loop does."""
    written = 0
    with path.open("w") as stream:
        for line in csv_lines(random.Random(7)):
            written += stream.write(line)
            if written >= size_bytes:
                return


def write_small(folder: Path, size_bytes: int) -> None:
    """Write copies of this interpreter's own library: many small files of source."""
    library = Path(os.__file__).parent
    sources = sorted(
        p for p in library.rglob("*.py") if 100 < p.stat().st_size < 60_000
    )
    written = number = 0
    while written < size_bytes:
        data = sources[number % len(sources)].read_bytes()
        path = folder / f"{number % 50:02d}" / f"module_{number:05d}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        written += path.write_bytes(data)
        number += 1


def make_payload(root: Path, kind: str, size_bytes: int) -> None:
    """Write about `size_bytes` of files of one kind, or of all of them."""
    inputs, project = root / "inputs", root / "project"
    inputs.mkdir(parents=True)
    project.mkdir()
    if kind in {"weights", "mix"}:
        share = 1.0 if kind == "weights" else 0.68
        write_weights(inputs / "model.safetensors", int(size_bytes * share))
    if kind in {"csv", "mix"}:
        share = 1.0 if kind == "csv" else 0.25
        write_csv(inputs / "metrics.csv", int(size_bytes * share))
    if kind in {"small", "mix"}:
        share = 1.0 if kind == "small" else 0.07
        write_small(project, int(size_bytes * share))


# -- contestants


def packers(root: Path, out: Path, options: argparse.Namespace) -> list[Contestant]:
    """Return what packs; the first is ours."""
    bundle, bag = out / "ours.rpb.zip", out / "bag"

    def fresh_bag() -> None:
        shutil.rmtree(bag, ignore_errors=True)
        shutil.copytree(root, bag)

    def fresh_zip() -> None:
        (out / "peer.zip").unlink(missing_ok=True)

    tar = f"tar -C {root} -cf {out}/peer.tar.zst --zstd ."
    found = [
        Contestant(
            "reprobundle",
            [sys.executable, "-c", PACK, str(root), str(bundle)],
            "two digests of everything; waits for the disk",
            product=bundle,
        ),
        Contestant("tar --zstd", tar, "no digest", product=out / "peer.tar.zst"),
        Contestant(
            "tar --zstd; sync",
            f"{tar} && sync {out}/peer.tar.zst",
            "no digest; waits for the disk",
        ),
        Contestant(
            "tar -I 'zstd -T0'",
            f"tar -C {root} -cf {out}/threads.tar.zst -I 'zstd -3 -T0' .",
            "no digest",
            product=out / "threads.tar.zst",
        ),
    ]
    if not options.quick:
        found.append(
            Contestant(
                "zip -6",
                f"cd {root} && zip -6 -q -r {out}/peer.zip .",
                "CRC-32",
                prepare=fresh_zip,
                product=out / "peer.zip",
            )
        )
    if options.bagit:
        command = [
            *options.bagit.split(),
            "--sha512",
            "--processes",
            str(os.cpu_count()),
        ]
        found.append(
            Contestant(
                "bagit", [*command, str(bag)], "SHA-512; no archive", fresh_bag, bag
            )
        )
    if options.reprozip and not options.quick:
        found.append(reprozip(root, out, options.reprozip))
    return found


def reprozip(root: Path, out: Path, program: str) -> Contestant:
    """Return reprozip after tracing a command that reads every file."""
    trace = out / "trace"
    everything = ["find", str(root), "-type", "f", "-exec", "cat", "{}", "+"]
    subprocess.run(
        [program, "trace", "--overwrite", "-d", str(trace), *everything],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    target = out / "peer.rpz"
    return Contestant(
        "reprozip pack",
        [program, "pack", "-d", str(trace), str(target)],
        "tar.gz, with the programs the trace saw; no digest",
        prepare=lambda: target.unlink(missing_ok=True),
        product=target,
    )


def verifiers(root: Path, out: Path, options: argparse.Namespace) -> list[Contestant]:
    """Return what verifies; the first is ours."""
    check = [sys.executable, "-c", VERIFY, str(out / "ours.rpb.zip")]
    found = [
        Contestant("reprobundle", [*check, "plain"], "structure and BLAKE3"),
        Contestant("reprobundle, deep", [*check, "deep"], "and chunks and CRC-32"),
        Contestant(
            "b3sum of the files",
            f"find {root} -type f -print0 | xargs -0 b3sum",
            "BLAKE3; compares nothing",
        ),
        Contestant(
            "sha256sum of the files",
            f"find {root} -type f -print0 | xargs -0 sha256sum",
            "SHA-256; compares nothing",
        ),
        Contestant(
            "zstd -t of the tar", f"zstd -q -t {out}/peer.tar.zst", "xxHash, 64 bits"
        ),
    ]
    if not options.quick:
        unzip = f"unzip -tqq {out}/peer.zip"
        found.append(Contestant("unzip -t of the zip", unzip, "CRC-32"))
    if options.bagit:
        command = [*options.bagit.split(), "--validate", "--processes"]
        found.append(
            Contestant(
                "bagit --validate",
                [*command, str(os.cpu_count()), str(out / "bag")],
                "SHA-512",
            )
        )
    return found


# -- running and telling


def compete(contestants: list[Contestant], repeats: int) -> None:
    """Let all take turns; the first round warms the caches and does not count."""
    for number in range(repeats + 1):
        for contestant in contestants:
            contestant.take_turn(counts=number > 0)


def size_of(product: Path | None) -> str:
    if product is None or not product.exists():
        return ""
    files = [product] if product.is_file() else product.rglob("*")
    return f"{sum(p.stat().st_size for p in files if p.is_file()) / 1e6:,.0f}"


def print_table(title: str, contestants: list[Contestant]) -> None:
    """Print medians and their ratios to the first contestant as a Markdown table."""
    base = statistics.median(contestants[0].seconds)
    base_cpu = statistics.median(contestants[0].cpu_seconds)
    print(f"\n**{title}**\n")
    print("| what | median s | × ours | CPU s | × ours | MB | note |")
    print("|---|---:|---:|---:|---:|---:|---|")
    for one in contestants:
        wall = statistics.median(one.seconds)
        cpu = statistics.median(one.cpu_seconds)
        print(
            f"| {one.name} | {wall:.3f} | {wall / base:.2f} | {cpu:.2f} "
            f"| {cpu / base_cpu:.2f} | {size_of(one.product)} | {one.note} |"
        )


def available(contestants: list[Contestant]) -> list[Contestant]:
    """Leave out, aloud, what is not installed here."""
    kept = []
    for one in contestants:
        words = one.command.split() if isinstance(one.command, str) else one.command
        tools = {"tar", "zip", "unzip", "zstd", "b3sum", "sha256sum"} & set(words)
        missing = sorted(tool for tool in tools if shutil.which(tool) is None)
        if missing:
            print(f"left out: {one.name} ({', '.join(missing)} is not installed)")
        else:
            kept.append(one)
    return kept


def main() -> None:
    """Run the comparison that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kind", choices=[*KINDS, "all"], default="mix")
    parser.add_argument("--size-mb", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--quick", action="store_true", help="leave out zip and reprozip, the slowest"
    )
    parser.add_argument("--bagit", default="", help="command that runs bagit")
    parser.add_argument("--reprozip", default="", help="path of reprozip")
    parser.add_argument("--folder", type=Path, help="where the files are written")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = str(ROOT)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["REPROZIP_USAGE_STATS"] = "off"
    for kind in KINDS if options.kind == "all" else [options.kind]:
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            root, out = Path(name) / "files", Path(name) / "out"
            out.mkdir()
            # An installed package is compiled once; so is it here, in the first round.
            os.environ["PYTHONPYCACHEPREFIX"] = str(Path(name) / "compiled")
            make_payload(root, kind, options.size_mb * 1_000_000)
            files = [path for path in root.rglob("*") if path.is_file()]
            total = sum(path.stat().st_size for path in files) / 1e6
            title = f"{kind}: {total:,.0f} MB in {len(files):,} files"
            for verb, make in (("pack", packers), ("verify", verifiers)):
                contestants = available(make(root, out, options))
                compete(contestants, options.repeats)
                print_table(f"{verb}, {title}, {os.cpu_count()} cores", contestants)


if __name__ == "__main__":
    main()
