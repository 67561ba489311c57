"""Bad files: each its own one-line error and status, no traceback, nothing left."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from reprobundle.format.canonical import encode
from reprobundle.format.reader import open_bundle
from tests.cli.conftest import reprobundle


def lines_of(done):
    assert "Traceback" not in done.err + done.out
    return (done.err + done.out).strip().splitlines()


def cut(data, share):
    return data[: int(len(data) * share)]


def rebuilt(data, change):
    """Return the ZIP with its entries passed through `change(name, content)`."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            changed = change(info.filename, old.read(info))
            if changed is not None:
                new.writestr(zipfile.ZipInfo(changed[0]), changed[1])
    return out.getvalue()


BAD_FILES = {
    "empty": lambda data: b"",
    "a text": lambda data: b"hello\n" * 100,
    "a pdf": lambda data: b"%PDF-1.7\n" + data,
    "another zip": lambda data: rebuilt(data, lambda n, c: ("x/" + n, c)),
    "cut in the first header": lambda data: data[:20],
    "cut at a tenth": lambda data: cut(data, 0.1),
    "cut in the middle": lambda data: cut(data, 0.5),
    "cut in the directory": lambda data: data[:-100],
    "cut by one byte": lambda data: data[:-1],
    "one byte more": lambda data: data + b"\0",
    "something before": lambda data: b"#!/bin/sh\n" + data,
    "written by another zip program": lambda data: rebuilt(data, lambda n, c: (n, c)),
}


@pytest.mark.parametrize("name", BAD_FILES)
@pytest.mark.parametrize("verb", ["verify", "inspect", "replay"])
def test_a_bad_file_is_refused_in_one_line(packed, tmp_path, name, verb):
    bad = tmp_path / "bad.rpb.zip"
    bad.write_bytes(BAD_FILES[name](packed.read_bytes()))
    options = ["--yes"] if verb == "replay" else []
    done = reprobundle(verb, bad, *options)
    assert done.status == 21, done.out + done.err
    text = lines_of(done)
    if verb != "verify":
        assert len(text) == 1
        assert "[R-" in text[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.rpb.zip"]


@pytest.mark.parametrize("verb", ["verify", "inspect", "replay"])
def test_a_file_that_does_not_exist_is_a_bad_call(tmp_path, verb):
    done = reprobundle(verb, tmp_path / "gone.rpb.zip")
    assert done.status == 20
    assert "gone.rpb.zip" in lines_of(done)[-1] or "gone.rpb.zip" in lines_of(done)[0]


def test_a_folder_is_a_bad_call(tmp_path):
    assert reprobundle("verify", tmp_path).status in {20, 21}


def test_one_flipped_byte_anywhere_in_the_content_is_found(packed, tmp_path):
    """Each member in turn: the structure stays as it is, only content changes."""
    data = packed.read_bytes()
    with open_bundle(packed) as bundle:
        names = [name for name, member in bundle.members.items() if member.size_bytes]
    with zipfile.ZipFile(packed) as archive:
        places = {info.filename: info.header_offset for info in archive.infolist()}
    target = tmp_path / "flipped.rpb.zip"
    for name in names:
        entry = name if name in places else f"{name}.zst"
        header = places[entry]
        start = header + 30 + int.from_bytes(data[header + 26 : header + 28], "little")
        start += int.from_bytes(data[header + 28 : header + 30], "little")
        flipped = bytearray(data)
        flipped[start] ^= 1
        target.write_bytes(flipped)
        done = reprobundle("verify", target)
        assert done.status == 21, name
        assert "TAMPERED" in done.out or "UNREADABLE" in done.out, name


def forged(packed, tmp_path, change):
    """Repack the bundle with changed contents and digests that fit them."""
    from reprobundle.format.writer import Source, write_bundle

    target = tmp_path / "forged.rpb.zip"
    with open_bundle(packed) as bundle:
        sources = [
            Source(
                name,
                member.role,
                change(name, bundle.read(name)),
                executable=member.executable,
            )
            for name, member in bundle.members.items()
            if member.role not in {"readme", "checksums"}
        ]
    write_bundle(target, sources)
    return target


def identifier(path):
    return json.loads(reprobundle("verify", "--json", path).out)["bundle"]


@pytest.mark.parametrize(
    ("member", "old", "new"),
    [
        ("project/model.py", b"len(rows)", b"len(rows) - 1"),
        ("inputs/data/points.csv", b"3.5", b"9.5"),
        ("runs/1/outputs/out/metrics.json", b"2.5", b"2.6"),
    ],
)
def test_a_forger_who_computes_all_digests_anew_changes_the_id(
    packed, tmp_path, member, old, new
):
    def change(name, content):
        if name != member:
            return content
        assert old in content
        return content.replace(old, new)

    target = forged(packed, tmp_path, change)
    done = reprobundle("verify", target, "--expect-id", identifier(packed))
    assert done.status == 21
    assert "TAMPERED" in done.out


def test_an_edited_output_does_not_fit_its_record_even_with_new_digests(
    packed, tmp_path
):
    def change(name, content):
        return (
            content.replace(b"2.5", b"2.6")
            if name.endswith("metrics.json")
            else content
        )

    done = reprobundle("verify", forged(packed, tmp_path, change))
    assert done.status == 21
    assert "TAMPERED" in done.out


def test_a_replay_names_the_bundle_it_ran(packed, replayed, tmp_path):
    """A replay record taken from the honest bundle does not fit the forged one."""
    record = tmp_path / "r.rpr.zip"
    honest = tmp_path / "honest.rpb.zip"
    honest.write_bytes(packed.read_bytes())
    assert reprobundle("replay", honest, "--yes", "-q", "--record", record).status == 0

    def loosened(name, content):
        if name != "policy.json":
            return content
        policy = json.loads(content)
        for rule in policy["tolerances"]:
            rule["tolerance"]["rtol"] = 10.0
        return encode(policy)

    target = forged(packed, tmp_path, loosened)
    done = reprobundle("verify", target, "--replay-file", record)
    assert done.status == 21, done.out
    assert reprobundle("attach", target, record).status in {20, 21}


def test_a_newer_major_version_is_told_from_a_broken_file(packed, tmp_path):
    data = packed.read_bytes()
    newer = data.replace(b'"version":"1.0"', b'"version":"2.0"')
    if newer == data:
        newer = data.replace(b'"version": "1.0"', b'"version": "2.0"')
    assert newer != data
    target = tmp_path / "newer.rpb.zip"
    target.write_bytes(newer)
    done = reprobundle("inspect", target)
    assert done.status == 21
    assert "update reprobundle" in done.err


def test_extracting_a_damaged_bundle_leaves_no_folder_behind(packed, tmp_path):
    data = bytearray(packed.read_bytes())
    place = data.index(b"x\n1.5\n2.5\n3.5\n")
    data[place] ^= 1
    bad = tmp_path / "bad.rpb.zip"
    bad.write_bytes(data)
    done = reprobundle("extract", bad, "--into", tmp_path / "out")
    assert done.status == 21
    assert not (tmp_path / "out").exists()


def test_reading_a_member_that_is_not_there_names_it(packed):
    done = reprobundle("cat", packed, "project/gone.py")
    assert done.status == 20
    assert "project/gone.py" in done.err
