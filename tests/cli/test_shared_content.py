"""Ten replays that agree add ten records: what is sealed already is referred to."""

from __future__ import annotations

import json
import shutil
import subprocess

import msgspec
import pytest

from reprobundle.cli.group import run
from reprobundle.format.attach import detach_replay, write_replay_file
from reprobundle.format.canonical import decode, encode
from reprobundle.format.digests import digest_bytes
from reprobundle.format.reader import open_bundle, open_replay_file
from reprobundle.format.record import Record
from reprobundle.format.writer import Source
from tests.cli.conftest import reprobundle

SCRIPT = """\
import os, random
from pathlib import Path
for step in range(2000):
    print("step", step, "loss", 1 / (step + 1))
Path("out").mkdir()
Path("out/weights.bin").write_bytes(random.Random(3).randbytes(600_000))
Path("out/curve.csv").write_text(
    "step,loss\\n" + "".join(f"{n},{1 / (n + 1)!r}\\n" for n in range(3000))
)
if os.environ.get("OMP_NUM_THREADS") == "7":
    Path("out/curve.csv").write_text("step,loss\\n0,9.0\\n")
"""
OUTPUTS = ("runs/1/outputs/out/weights.bin", "runs/1/outputs/out/curve.csv")


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A bundle with one replay that is kept beside it, too."""
    folder = tmp_path_factory.mktemp("shared")
    project = folder / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT)
    path = folder / "p.rpb.zip"
    options = ("-q", "--passes", "measured")
    done = reprobundle(
        "pack", "-o", path, *options, "--", "python", "train.py", cwd=project
    )
    assert done.status == 0, done.err
    alone = folder / "alone.rpr.zip"
    # The truth of one result is stated with a status of its own; both are fine here.
    done = reprobundle("replay", path, "--yes", "-q", "--record", alone)
    assert "VERDICT" in done.out, done.err
    return path, alone


@pytest.fixture
def bundle(packed, tmp_path):
    return shutil.copy(packed[0], tmp_path / "p.rpb.zip")


def record_of(path, number=0):
    opened = open_replay_file(path) if str(path).endswith(".rpr.zip") else None
    with opened or open_bundle(path) as file:
        name = f"replays/{file.replay_ids[number]}/record.json"
        return decode(file.read_unsealed(name), Record, where=name, rule="R-7.2")


def test_ten_replays_add_their_records_and_memory_series_only(bundle):
    before = bundle.stat().st_size
    sealed_end, _ = ends(bundle)
    done = reprobundle("replay", bundle, "--yes", "-q", "--repeat", "10")
    assert "VERDICT  REPRODUCED" in done.out, done.out + done.err
    with open_bundle(bundle) as opened:
        assert len(opened.replay_ids) == 10
        names = {name.rpartition("/")[2] for name in opened.unsealed_contents()}
        own = sum(entry.size_bytes for entry in opened.entries[sealed_end:])
        count = len(opened.entries) - sealed_end
    # Nothing is said of an empty file, and every run has a memory series of its own.
    assert names <= {"record.json", "memory.json", "stderr.txt"}
    grown = bundle.stat().st_size - before
    # A ZIP entry takes 76 bytes and its name twice, and at most 67 to be aligned.
    assert own < grown <= own + count * (76 + 2 * 90 + 67)
    # A memory series is as long as its run: on a busy machine it has more samples.
    assert grown < 10 * 600_000 / 2


def ends(path):
    with open_bundle(path) as opened:
        return len(opened.entries), opened.entries[-1].end


def test_a_plain_unzip_of_the_sealed_part_still_gives_everything(bundle, tmp_path):
    reprobundle("replay", bundle, "--yes", "-q", "--repeat", "2")
    subprocess.run(["unzip", "-q", bundle, "-d", tmp_path / "plain"], check=True)
    for zipped in (tmp_path / "plain").rglob("*.zst"):
        subprocess.run(["zstd", "-dq", "--rm", zipped], check=True)
    sums = tmp_path / "plain" / "B3SUMS"
    for line in sums.read_text().splitlines():
        digest, _, name = line.partition("  ")
        assert digest_bytes((tmp_path / "plain" / name).read_bytes()) == digest
    for name in OUTPUTS:
        assert (tmp_path / "plain" / name).stat().st_size


def test_a_replay_that_differs_keeps_what_differs(bundle):
    reprobundle("replay", bundle, "--yes", "-q", "--set", "OMP_NUM_THREADS=7")
    outputs = {one.name: one for one in record_of(bundle).outputs}
    assert outputs["out/weights.bin"].stored == "sealed"
    assert outputs["out/curve.csv"].stored == "here"


def test_a_replay_alone_says_what_it_lacks_and_is_whole_when_attached(
    packed, bundle, capsys
):
    alone = packed[1]
    record = record_of(alone)
    members = {one.name: one for one in record.members}
    assert members["stdout.txt"].sealed == "runs/1/stdout.txt"
    assert {one.member for one in record.outputs} == set(OUTPUTS)
    assert run(["inspect", str(alone)]) == 0
    shown = capsys.readouterr().out
    for name in ("in the bundle only", "runs/1/stdout.txt", *OUTPUTS):
        assert name in shown
    assert run(["inspect", "--json", str(alone)]) == 0
    [replay] = json.loads(capsys.readouterr().out)["replays"]
    lacking = {one[1]: one[3] for one in replay["lacking"]}
    with open_bundle(bundle) as opened:
        assert lacking == {
            name: opened.members[name].blake3
            for name in (*OUTPUTS, "runs/1/stdout.txt")
        }
    run(["verify", str(bundle), "--replay-file", str(alone)])
    beside = capsys.readouterr().out
    assert run(["attach", str(bundle), str(alone)]) == 0
    capsys.readouterr()
    run(["verify", str(bundle)])
    assert "REPRODUCED, bit-identical" in capsys.readouterr().out
    assert "REPRODUCED, bit-identical" in beside


@pytest.mark.parametrize(
    ("name", "sealed", "words"),
    [
        ("stdout.txt", "runs/7/stdout.txt", "has none of that name"),
        ("stdout.txt", "project/train.py", "stdout.txt -> project/train.py"),
    ],
)
def test_a_reference_to_another_member_is_tampered_and_not_attached(
    packed, bundle, tmp_path, capsys, name, sealed, words
):
    record = record_of(packed[1])
    changed = tuple(
        msgspec.structs.replace(one, sealed=sealed) if one.name == name else one
        for one in record.members
    )
    lie = encode(msgspec.structs.replace(record, members=changed))
    forged = tmp_path / "forged.rpr.zip"
    with open_replay_file(packed[1]) as replays:
        top = f"replays/{replays.replay_ids[0]}/"
        beside = [
            Source(one.name, "log", replays.read_unsealed(top + one.name))
            for one in record.members
            if not one.sealed
        ]
    write_replay_file(forged, [(lie, beside)])
    before = bundle.read_bytes()
    assert run(["verify", str(bundle), "--replay-file", str(forged)]) == 21
    assert "refers to a sealed member" in capsys.readouterr().out
    assert run(["attach", str(bundle), str(forged)]) != 0
    assert words in capsys.readouterr().err
    assert bundle.read_bytes() == before


def test_detaching_one_replay_takes_nothing_from_another(bundle):
    reprobundle("replay", bundle, "--yes", "-q", "--repeat", "2")
    with open_bundle(bundle) as opened:
        first, second = opened.replay_ids
    detach_replay(bundle, first)
    done = reprobundle("verify", bundle)
    assert "REPRODUCED, bit-identical" in done.out
    assert second[:12] in reprobundle("inspect", bundle).out
