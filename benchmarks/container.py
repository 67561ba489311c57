"""Compare packing and verifying with other tools, on the same files, in one run.

    python benchmarks/container.py                       # about 200 MB of mixed files
    python benchmarks/container.py --kind weights --size-mb 800 --repeats 9

Every command is a whole process, start-up included. The commands take turns (A B C,
A B C, ...), so a slow minute of the machine hits all of them; what counts is the median
of ours divided by theirs, turn by turn, not the seconds. Files are read from the page
cache: the first turn of each is thrown away.

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
TOOLS = {"7z", "b3sum", "borg", "restic", "sha256sum", "tar", "unzip", "zip", "zstd"}
SMALL_BYTES = 10_000
KINDS = ("weights", "csv", "small", "mix")

# Ours begin and end as the program does: see `reprobundle.cli.group.main`.
PACK = """
import gc, os, sys
gc.set_threshold(100_000)
from pathlib import Path
from reprobundle.format.writer import Source, write_bundle
root = sys.argv[1]
roles = {"inputs": "input", "project": "project"}
sources = []
for folder, _, names in os.walk(root):
    inside = folder[len(root) + 1:]
    for name in names:
        role = roles[inside.partition("/")[0]]
        sources.append(Source(f"{inside}/{name}", role, Path(f"{folder}/{name}")))
write_bundle(Path(sys.argv[2]), sources)
os._exit(0)
"""

FLOOR = """
import os, sys, threading, time, zlib
from blake3 import blake3
from reprobundle.format import frames
root, cores = sys.argv[1], os.cpu_count()
files = [f"{folder}/{name}" for folder, _, names in os.walk(root) for name in names]
work = []
for path in files:
    data = open(path, "rb").read()
    size = len(data)
    level = 0
    if "/inputs/" in path and size > frames.SAMPLED_BYTES:
        level = frames.best_level(lambda o, n: data[o : o + n], size)
    pieces = [data] if size <= 4 << 20 else [
        data[start : start + (4 << 20)] for start in range(0, size, 4 << 20)
    ]
    work += [(piece, level, len(pieces) > 1) for piece in pieces]
work.sort(key=lambda one: -len(one[0]))
def share(number):
    for piece, level, twice in work[number::cores]:
        blake3(piece).digest()
        if twice:
            blake3(piece).digest()
        zlib.crc32(frames.compress(piece, level) if level else piece)
threads = [threading.Thread(target=share, args=(n,)) for n in range(cores)]
frames.compress(b"x", 1)
start = time.perf_counter()
cpu = time.process_time()
for one in threads: one.start()
for one in threads: one.join()
print(time.perf_counter() - start, time.process_time() - cpu)
"""

# What no packer of this kind can do without, in the simplest program that does it: read
# each file, digest, CRC-32, zstd at the same level, write it, wait for the disk.
FLOOR_ON_DISK = """
import os, sys, threading, zlib
from blake3 import blake3
from reprobundle.format import frames
root, target, cores, big = sys.argv[1], sys.argv[2], os.cpu_count(), 4 << 20
work = []
for folder, _, names in os.walk(root):
    for name in names:
        path = f"{folder}/{name}"
        size = os.stat(path).st_size
        level = 0
        if "/inputs/" in path and size > frames.SAMPLED_BYTES:
            file = os.open(path, os.O_RDONLY)
            level = frames.best_level(lambda o, n: os.pread(file, n, o), size)
            os.close(file)
        work += [(path, at, size > big, level) for at in range(0, size, big)]
out = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
end, lock = 0, threading.Lock()
def share(number):
    global end
    for path, at, twice, level in work[number::cores]:
        file = os.open(path, os.O_RDONLY)
        piece = os.pread(file, big, at)
        os.close(file)
        blake3(piece).digest()
        if twice:
            blake3(piece).digest()
        stored = frames.compress(piece, level) if level else piece
        zlib.crc32(stored)
        with lock:
            place, end = end, end + len(stored)
        os.pwrite(out, stored, place)
frames.compress(b"x", 1)
threads = [threading.Thread(target=share, args=(n,)) for n in range(cores)]
for one in threads: one.start()
for one in threads: one.join()
os.fsync(out)
os._exit(0)
"""


VERIFY = """
import gc, os, sys
gc.set_threshold(100_000)
from pathlib import Path
from reprobundle.format.reader import check_digests, open_bundle
with open_bundle(Path(sys.argv[1])) as bundle:
    os._exit(bool(check_digests(bundle, deep=sys.argv[2] == "deep")))
"""

VERIFY_FLOOR = """
import os, sys, threading, time
from pathlib import Path
from blake3 import blake3
from reprobundle.format.reader import open_bundle
cores = os.cpu_count()
work = []
with open_bundle(Path(sys.argv[1])) as bundle:
    for path in bundle.members:
        content = bundle.content(path)
        work += [(content, span, content.stored(span)) for span in content.spans()]
work.sort(key=lambda one: -one[1].plain_bytes)
def share(number):
    for content, span, stored in work[number::cores]:
        blake3(content.decode(stored, span)).digest()
threads = [threading.Thread(target=share, args=(n,)) for n in range(cores)]
start = time.perf_counter()
cpu = time.process_time()
for one in threads: one.start()
for one in threads: one.join()
print(time.perf_counter() - start, time.process_time() - cpu)
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
        reports_itself: Whether it prints its own wall and processor time.
        seconds: Wall time of each turn.
        cpu_seconds: Processor time of each turn.
    """

    name: str
    command: list[str] | str
    note: str = ""
    prepare: Callable[[], None] = lambda: None
    product: Path | None = None
    reports_itself: bool = False
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
        if counts and self.reports_itself:
            wall, cpu = map(float, done.stdout.split())
            self.seconds.append(wall)
            self.cpu_seconds.append(cpu)
        elif counts:
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
    mean_bytes = sum(path.stat().st_size for path in sources) / len(sources)
    while written < size_bytes:
        data = sources[number % len(sources)].read_bytes()
        if mean_bytes < SMALL_BYTES and number % 7 == 0:
            data += data  # so that 50 MB are about 5,000 files
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

    def fresh(name: str) -> Callable[[], None]:
        # Each writes a file that is not there: to overwrite one uses its memory again.
        return lambda: (out / name).unlink(missing_ok=True)

    found = [
        Contestant(
            "reprobundle",
            [sys.executable, "-c", PACK, str(root), str(bundle)],
            "two digests of everything; waits for the disk",
            fresh(bundle.name),
            bundle,
        ),
        Contestant(
            "tar --zstd",
            tar,
            "no digest",
            fresh("peer.tar.zst"),
            out / "peer.tar.zst",
        ),
        Contestant(
            "tar --zstd; sync",
            f"{tar} && sync {out}/peer.tar.zst",
            "no digest; waits for the disk",
            fresh("peer.tar.zst"),
        ),
        Contestant(
            "tar -I 'zstd -T0'",
            f"tar -C {root} -cf {out}/threads.tar.zst -I 'zstd -3 -T0' .",
            "no digest",
            fresh("threads.tar.zst"),
            out / "threads.tar.zst",
        ),
    ]
    found.append(
        Contestant(
            "the work alone, in memory",
            [sys.executable, "-c", FLOOR, str(root)],
            "digests, CRC-32, zstd on all cores; neither reads nor writes; own clock",
            reports_itself=True,
        )
    )
    found.append(
        Contestant(
            "the work alone, on the disk",
            [sys.executable, "-c", FLOOR_ON_DISK, str(root), str(out / "floor")],
            "the same, read from files and written to one; no names, no checks",
            fresh("floor"),
        )
    )
    found += [] if options.no_stores else stores(root, out, options)
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


def stores(root: Path, out: Path, options: argparse.Namespace) -> list[Contestant]:
    """Return backup programs, each with a new store for each turn, and a signer."""
    borg, restic = out / "borg", out / "restic"
    os.environ.update(
        BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK="yes",
        BORG_BASE_DIR=str(out / "borg-base"),
        RESTIC_PASSWORD="benchmark",
        RESTIC_CACHE_DIR=str(out / "restic-cache"),
    )

    def fresh(folder: Path, *command: str) -> Callable[[], None]:
        def make() -> None:
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run(command, check=True, capture_output=True)

        return make

    found = [
        Contestant(
            "borg create, zstd 3",
            f"borg create --compression zstd,3 {borg}::a {root}",
            "SHA-256, deduplicated",
            fresh(borg, "borg", "init", "-e", "none", str(borg)),
            borg,
        ),
        Contestant(
            "restic backup",
            f"restic -r {restic} backup {root}",
            "SHA-256, deduplicated, encrypted",
            fresh(restic, "restic", "-r", str(restic), "init"),
            restic,
        ),
    ]
    if options.model_signing:
        found.append(
            Contestant(
                "model_signing sign",
                f"{options.model_signing} sign key --private_key {options.key} "
                f"--signature {out}/model.sig {root}",
                "SHA-256; no archive",
            )
        )
    if not options.quick:
        found.append(
            Contestant(
                "7z",
                f"7z a -bd -bso0 {out}/peer.7z {root}",
                "LZMA2, CRC-32",
                lambda: (out / "peer.7z").unlink(missing_ok=True),
                out / "peer.7z",
            )
        )
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
            "the work alone, in memory",
            [sys.executable, "-c", VERIFY_FLOOR, str(out / "ours.rpb.zip")],
            "zstd and BLAKE3 on all cores; neither reads nor compares; own clock",
            reports_itself=True,
        ),
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
    found += (
        []
        if options.no_stores
        else [
            Contestant(
                "borg check --verify-data",
                f"borg check --verify-data {out}/borg",
                "SHA-256",
            ),
            Contestant(
                "restic check --read-data",
                f"restic -r {out}/restic check --read-data",
                "SHA-256, decrypts",
            ),
        ]
    )
    if options.model_signing:
        found.append(
            Contestant(
                "model_signing verify",
                f"{options.model_signing} verify key --public_key {options.key}.pub "
                f"--signature {out}/model.sig {root}",
                "SHA-256",
            )
        )
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


def ratio(ours: list[float], theirs: list[float]) -> str:
    """Return the median of the ratios, turn by turn: both then had the same minute."""
    turns = zip(ours, theirs, strict=True)
    return f"{statistics.median(a / max(b, 1e-3) for a, b in turns):.2f}"


def print_table(title: str, contestants: list[Contestant]) -> None:
    """Print medians and their ratios to the first contestant as a Markdown table."""
    print(f"\n**{title}**\n")
    print("| what | median s | ours / it | CPU s | ours / it | MB | note |")
    print("|---|---:|---:|---:|---:|---:|---|")
    for one in contestants:
        wall = statistics.median(one.seconds)
        cpu = statistics.median(one.cpu_seconds)
        print(
            f"| {one.name} | {wall:.3f} | {ratio(contestants[0].seconds, one.seconds)} "
            f"| {cpu:.2f} | {ratio(contestants[0].cpu_seconds, one.cpu_seconds)} "
            f"| {size_of(one.product)} | {one.note} |"
        )


def available(contestants: list[Contestant]) -> list[Contestant]:
    """Leave out, aloud, what is not installed here."""
    kept = []
    for one in contestants:
        words = one.command.split() if isinstance(one.command, str) else one.command
        tools = TOOLS & set(words)
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
    parser.add_argument(
        "--no-stores", action="store_true", help="leave out borg, restic and 7z"
    )
    parser.add_argument("--bagit", default="", help="command that runs bagit")
    parser.add_argument("--reprozip", default="", help="path of reprozip")
    parser.add_argument("--model-signing", default="", help="path of model_signing")
    parser.add_argument("--key", default="", help="its key; KEY.pub is the public one")
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
