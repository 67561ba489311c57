"""Memory stays bounded, whatever the size of a member or the claims of a stranger."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
import zstandard

from .forge import CHUNK, Forged, ForgedBundle, build_zip

# On Linux the resource usage of a new program starts with the peak of the process that
# started it; the high-water mark of its own memory does not.
PEAK = """
import re, resource
from pathlib import Path
status = Path("/proc/self/status")
if status.exists():
    peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read_text())[1]) << 10
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print("peak", peak >> 20)
"""


def peak_mib(script: str, *arguments: object) -> int:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script) + PEAK, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


HOSTILE = """
import sys
from pathlib import Path
from reprobundle.errors import BundleError
from reprobundle.format.reader import check_digests, open_bundle
for path in sorted(Path(sys.argv[1]).iterdir()):
    try:
        with open_bundle(path) as bundle:
            damages = check_digests(bundle)
            assert damages, path
            for name in bundle.members:
                try:
                    bundle.read(name, limit_bytes=1 << 40)
                except BundleError:
                    pass
    except BundleError:
        pass
"""


def test_claims_of_a_stranger_cost_no_memory(tmp_path):
    packer = zstandard.ZstdCompressor(write_checksum=True)
    bomb = packer.compress(bytes(1 << 28))
    plain = bytes(CHUNK + 1)
    cases = {}
    for name, stored in {"one bomb": bomb, "many": bomb * 20}.items():
        forged = ForgedBundle({"README.txt": b"r", "inputs/x": plain})
        forged.stored["inputs/x"] = ("inputs/x.zst", stored)
        cases[name] = forged.build()
    claimed = ForgedBundle({"README.txt": b"r", "inputs/x": plain})
    claimed.change("inputs/x", size_bytes=1 << 37, chunks=["0" * 64] * (1 << 15))
    claimed.stored["inputs/x"] = ("inputs/x.zst", packer.compress(plain[:CHUNK]))
    cases["128 GiB"] = claimed.build()
    entries = ForgedBundle().entries()
    entries[1].both(size=(1 << 32) - 2, csize=(1 << 32) - 2)
    cases["four gigabytes"] = build_zip(entries)
    cases["ten million entries"] = ForgedBundle().build(
        total=0xFFFF, zip64={"count": 10**7, "total": 10**7}
    )
    cases["a large directory"] = ForgedBundle().build(
        size=0xFFFFFFFF, zip64={"size": 1 << 50}
    )
    deep = b'{"format":' + b"[" * 10**6 + b"]" * 10**6 + b"}"
    cases["a deep manifest"] = build_zip(ForgedBundle().entries(manifest=deep))
    cases["a long name"] = build_zip([Forged("x" * 60_000, b"")])
    for number, data in enumerate(cases.values()):
        (tmp_path / f"{number}.rpb.zip").write_bytes(data)
    # The interpreter with all that is imported takes about 40 MiB of this.
    assert peak_mib(HOSTILE, tmp_path) < 96


PACK_AND_CHECK = """
import os, sys
from pathlib import Path
from reprobundle.format.reader import check_digests, extract, open_bundle
from reprobundle.format.writer import Source, write_bundle
folder = Path(sys.argv[1])
files = sorted((folder / "in").iterdir())
target = folder / "x.rpb.zip"
write_bundle(target, [Source(f"inputs/{f.name}", "input", f) for f in files])
with open_bundle(target) as bundle:
    assert check_digests(bundle, deep=True) == []
    for f in files:
        with bundle.open(f"inputs/{f.name}") as stream:
            stream.seek(f.stat().st_size - 5)
            assert len(stream.read()) == 5
    extract(bundle, folder / "out")
"""


def cores() -> int:
    from reprobundle.format.parallel import core_count

    return core_count()


def write_file(path, size_bytes, *, compressible):
    """Write a file that is written fast and is no hole in the end."""
    import random

    block = random.Random(1).randbytes(1 << 20)
    if compressible:
        block = block.hex().encode()[: 1 << 20]
    with path.open("wb") as stream:
        for number in range(size_bytes >> 20):
            stream.write(number.to_bytes(8, "little") + block[8:])


def test_memory_does_not_grow_with_a_member(tmp_path):
    (tmp_path / "in").mkdir()
    write_file(tmp_path / "in" / "raw.bin", 80 << 20, compressible=False)
    write_file(tmp_path / "in" / "text.txt", 80 << 20, compressible=True)
    assert peak_mib(PACK_AND_CHECK, tmp_path) <= 64 + 12 * cores()


@pytest.mark.slow
@pytest.mark.parametrize("compressible", [False, True])
def test_a_member_beyond_four_gibibytes_stays_within_the_memory_bound(
    tmp_path, compressible
):
    (tmp_path / "in").mkdir()
    size_bytes = (4 << 30) + (3 << 20)
    write_file(tmp_path / "in" / "large", size_bytes, compressible=compressible)
    assert peak_mib(PACK_AND_CHECK, tmp_path) <= 64 + 12 * cores()
    name = "inputs/large.zst" if compressible else "inputs/large"
    listing = subprocess.run(
        ["unzip", "-Zl", tmp_path / "x.rpb.zip", name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert listing.returncode == 0, listing.stdout + listing.stderr
    (tmp_path / "out" / "inputs" / "large").unlink()
    (tmp_path / "in" / "large").unlink()
