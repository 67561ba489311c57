"""No bundle makes a verb use more than is declared (docs/hardening.md)."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.hostile import bundles, limits

MIB = 1 << 20

pytestmark = pytest.mark.linux

RULE = {"compare": False, "reason": "r"}
SIGNED = {"author": "a", "reason": "r"}


def progressive() -> bytes:
    from PIL import Image

    held = io.BytesIO()
    Image.effect_noise((600, 600), 20).save(held, "JPEG", progressive=True)
    return held.getvalue()


# Each is as small as shows what it would do at full size; those are marked as slow.
CASES = {
    "folders": (lambda: bundles.folders(8_000), "R-5.7"),
    "members": (lambda: bundles.members(5_000), ""),
    "zstd bomb": (lambda: bundles.repeated(24), ""),
    "128 GiB stated": (lambda: bundles.claimed(1 << 37), ""),
    "window of 1 GiB": (bundles.wide_window, ""),
    "blocks": (bundles.many_blocks, ""),
    "lists": (lambda: bundles.record(b'"z":[' + b"[]," * 1_200_000 + b"0]"), "R-6.1"),
    "newer manifest": (
        lambda: bundles.newer_manifest(b"[" + b"[]," * 1_200_000 + b"0]"),
        "R-6.1",
    ),
    "number": (lambda: bundles.record(b'"z":' + b"9" * 1_000_000), ""),
    "argument": (
        lambda: bundles.recorded(command={"argv": ["x" * 4_000_000], "seed": 0}),
        "",
    ),
    "facts": (
        lambda: bundles.recorded(
            environment={f"python.x{n}": {"value": n} for n in range(5_000)}
        ),
        "",
    ),
    "rules": (
        lambda: bundles.policy(
            outputs=[{"match": f"{n}*", **RULE} for n in range(1_001)], **SIGNED
        ),
        "R-7.1",
    ),
    "stars": (
        lambda: bundles.policy(
            outputs=[{"match": "*a" * 500 + "b", **RULE}] * 5, **SIGNED
        ),
        "",
    ),
    "a long pattern": (
        lambda: bundles.policy(outputs=[{"match": "a" * 1_025, **RULE}], **SIGNED),
        "R-7.1",
    ),
    "replays": (lambda: bundles.replays(1_001), "R-4.34"),
    "fields": (lambda: bundles.many_fields(1_001, 2), ""),
    "axes": (lambda: bundles.many_axes(30_000), ""),
    "unary header": (lambda: bundles.deep_header("-" * 60_000 + "1"), ""),
    "sums in a header": (lambda: bundles.deep_header(f"({'1+' * 30_000}1,)"), ""),
    "Fortran order": (lambda: bundles.fortran_npz(24), ""),
    "tensors": (lambda: bundles.many_tensors(3_000), ""),
    "a tensor of 2^6300000 elements": (lambda: bundles.huge_tensor(100_000), ""),
    "lists in a header": (lambda: bundles.nested_tensors(1_200_000), ""),
    "twin keys": (
        lambda: bundles.document(bundles.keys(50_000)[:-1] + b',"k":1,"k":2}'),
        "",
    ),
    "values": (lambda: bundles.document(b"[" + b"0," * 1_100_000 + b"0]"), ""),
    "a long path": (
        lambda: bundles.document(
            json.dumps({"x" * 70_000: {f"{n:x}": 1 for n in range(20_000)}}).encode()
        ),
        "",
    ),
    "long keys": (
        lambda: bundles.document(json.dumps({"a " * 300_000: 1, "b": 2}).encode()),
        "",
    ),
    "pieces of a stream": (lambda: bundles.notebook(20_000, 4_000_000), ""),
    "columns of one name": (
        lambda: bundles.table(b",".join([b"a"] * 9_999) + b"\n" + b"1," * 9_998 + b"1"),
        "",
    ),
    "long cells": (lambda: bundles.wide_rows(300, 100_000), ""),
    "a word of digits": (lambda: bundles.log(b"1" * 200_000 + b"a"), ""),
    "scans of a JPEG": (lambda: bundles.jpeg_scans(150, progressive()), ""),
    "a PNG of 4 Gpixel": (lambda: bundles.png_claim(65_535, 65_535), ""),
}

FULL_SIZE = {
    "members": lambda: bundles.members(99_000),
    "replays": lambda: bundles.replays(1_000),
    "zstd bomb": lambda: bundles.repeated(1_024),
    "lists": lambda: bundles.record(b'"z":[' + b"[]," * (20 << 20) + b"0]"),
    "facts": lambda: bundles.recorded(
        environment={f"python.x{n}": {"value": n} for n in range(150_000)}
    ),
    "Fortran order": lambda: bundles.fortran_npz(1_024),
    "tensors": lambda: bundles.many_tensors(99_000),
    "values": lambda: bundles.document(b"[" + b"0.5," * 990_000 + b"1]"),
    "keys": lambda: bundles.document(bundles.keys(150_000)),
    "long cells": lambda: bundles.wide_rows(3_000, 100_000),
    "fields": lambda: bundles.many_fields(1_000, 20_000),
}


def check(data: bytes, tmp_path: Path, *, temporary_bytes: int) -> list[dict[str, Any]]:
    path = tmp_path / "hostile.rpb.zip"
    path.write_bytes(data)
    done = subprocess.run(
        [sys.executable, limits.__file__, str(path), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr[-2000:])
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(limits.VERBS)
    for one in answers:
        assert one["status"] in {0, 10, 11, 12, 20, 21}, one
        assert one["peak_bytes"] <= limits.MOST_MEMORY_BYTES, one
        assert one["seconds"] <= limits.MOST_SECONDS, one
        assert one["temporary_bytes"] <= temporary_bytes, one
        assert one["open_files"] <= 8, one
        assert len(one["err"].splitlines()) <= 1, one
        assert one["err"].rstrip("\n").isprintable(), one
    left = {one.name for one in tmp_path.iterdir()}
    assert left <= {path.name, "report.html", "report.xml", "extracted"}
    return answers


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_bundle_stays_within_the_declared_limits(name, tmp_path):
    make, rule = CASES[name]
    answers = check(make(), tmp_path, temporary_bytes=128 * MIB)
    # They take half a second; whatever takes the square of its size takes minutes.
    assert max(one["seconds"] for one in answers) <= 15
    assert not rule or all(
        f"[{rule}]" in one["err"] for one in answers if one["verb"].startswith("insp")
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", FULL_SIZE)
def test_so_does_one_of_full_size(name, tmp_path):
    answers = check(FULL_SIZE[name](), tmp_path, temporary_bytes=5 << 30)
    slowest = max(answers, key=lambda one: one["seconds"])
    sys.stdout.write(
        f"\n{name}: {(tmp_path / 'hostile.rpb.zip').stat().st_size / 1e6:.1f} MB, "
        f"{max(one['peak_bytes'] for one in answers) / MIB:.0f} MiB, "
        f"{slowest['seconds']:.1f} s ({slowest['verb'].split()[0]}), "
        f"{max(one['temporary_bytes'] for one in answers) / MIB:.0f} MiB of disk\n"
    )
