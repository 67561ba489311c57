"""Two parts of a bundle: each says what it lacks, and together they are the whole."""

from __future__ import annotations

import shutil
import subprocess
from functools import partial

import pytest

from reprobundle.errors import (
    AbsentMemberError,
    BadCallError,
    BundleError,
    DigestError,
    StructureError,
)
from reprobundle.format.attach import attach_replay, detach_replay
from reprobundle.format.digests import digest_file
from reprobundle.format.integrity import check_digests
from reprobundle.format.parting import join_parts, split_bundle, whole_copy
from reprobundle.format.reader import extract, open_bundle
from reprobundle.format.writer import Source, write_bundle
from tests.conformance import container_files
from tests.format.conftest import make_sources
from tests.format.forge import Forged

MOVED = ("inputs/noise.bin", "inputs/metrics.csv", "runs/1/outputs/y.txt")


@pytest.fixture
def parts(bundle_path, tmp_path):
    """The two parts of a bundle with a replay, in a folder of their own."""
    attach_replay(bundle_path, b"{}\n", [Source("stdout.txt", "log", b"hi\n")])
    first, rest = tmp_path / "first.rpb.zip", tmp_path / "rest.rpb.zip"
    with open_bundle(bundle_path) as bundle:
        split_bundle(bundle, MOVED, first=first, rest=rest)
    return first, rest


@pytest.mark.parametrize("turned", [False, True])
def test_both_parts_give_the_bundle_byte_for_byte(parts, bundle_path, tmp_path, turned):
    one, two = reversed(parts) if turned else parts
    whole = tmp_path / "whole.rpb.zip"
    join_parts(one, two, whole)
    assert whole.read_bytes() == bundle_path.read_bytes()


def test_the_same_bundle_gives_the_same_parts(parts, bundle_path, tmp_path):
    again, rest = tmp_path / "again.rpb.zip", tmp_path / "x" / parts[1].name
    rest.parent.mkdir()
    with open_bundle(bundle_path) as bundle:
        split_bundle(bundle, MOVED, first=again, rest=rest)
    assert again.read_bytes() == parts[0].read_bytes()
    assert rest.read_bytes() == parts[1].read_bytes()


def test_both_have_the_id_and_name_what_they_lack(parts, bundle_path):
    with open_bundle(bundle_path) as whole, open_bundle(parts[0]) as first:
        assert first.id == whole.id
        assert first.members == whole.members
        assert first.absent == set(MOVED)
        assert first.part is not None
        assert first.part.other is not None
        assert first.part.other.blake3 == digest_file(parts[1])
        assert first.replay_ids == whole.replay_ids
    with open_bundle(parts[1]) as rest:
        assert rest.absent == set(rest.members) - set(MOVED)
        assert rest.replay_ids == ()


def test_an_absent_member_is_refused_by_the_name_of_the_other_part(parts):
    with open_bundle(parts[0]) as first:
        with pytest.raises(AbsentMemberError, match=r"noise\.bin.*'rest\.rpb\.zip'"):
            first.read("inputs/noise.bin")
        with pytest.raises(AbsentMemberError) as raised:
            first.open("inputs/noise.bin")
        assert raised.value.rule == "R-4.41"
        assert first.read("project/train.py")


def test_a_part_is_not_extracted_as_if_it_were_the_whole(parts, tmp_path):
    with open_bundle(parts[0]) as first:
        with pytest.raises(AbsentMemberError):
            extract(first, tmp_path / "out")
        extract(first, tmp_path / "out", paths=["project/train.py"])
    assert (tmp_path / "out/project/train.py").is_file()


def test_damage_in_what_is_here_is_found(parts):
    data = bytearray(parts[0].read_bytes())
    data[data.index(b"print('hello')")] ^= 1
    parts[0].write_bytes(data)
    with open_bundle(parts[0]) as first:
        assert [one.path for one in check_digests(first)] == ["project/train.py"]


def test_replays_are_attached_to_the_first_part_and_come_along(
    parts, bundle_path, tmp_path
):
    for path in (parts[0], bundle_path):
        attach_replay(path, b'{"a": 1}\n', [])
    join_parts(parts[0], parts[1], tmp_path / "whole.rpb.zip")
    assert (tmp_path / "whole.rpb.zip").read_bytes() == bundle_path.read_bytes()
    before = parts[0].read_bytes()
    replay_id = attach_replay(parts[0], b'{"b": 1}\n', [])
    detach_replay(parts[0], replay_id)
    assert parts[0].read_bytes() == before


def test_another_second_part_is_refused_by_its_digest(parts, tmp_path):
    data = bytearray(parts[1].read_bytes())
    position = data.index(b"inputs/noise.bin") + len("inputs/noise.bin") + 100
    data[position] ^= 1
    parts[1].write_bytes(data)
    with pytest.raises(DigestError):
        join_parts(parts[0], parts[1], tmp_path / "whole.rpb.zip")
    assert not (tmp_path / "whole.rpb.zip").exists()


def test_a_second_part_with_something_attached_is_another_file(parts, tmp_path):
    attach_replay(parts[1], b"{}\n", [])
    with pytest.raises(DigestError, match=r"rest\.rpb\.zip") as raised:
        join_parts(parts[0], parts[1], tmp_path / "whole.rpb.zip")
    assert raised.value.rule == "R-4.42"


def test_parts_of_two_bundles_are_not_joined(parts, tmp_path):
    other = tmp_path / "other.rpb.zip"
    write_bundle(other, make_sources({"project/train.py": b"1", "inputs/a": b"2"}))
    with open_bundle(other) as bundle:
        split_bundle(
            bundle, ["inputs/a"], first=tmp_path / "o1.zip", rest=tmp_path / "o2.zip"
        )
    with pytest.raises(StructureError, match="parts of two bundles"):
        join_parts(parts[0], tmp_path / "o2.zip", tmp_path / "whole.rpb.zip")


def test_parts_of_two_splits_of_one_bundle_are_not_joined(parts, bundle_path, tmp_path):
    with open_bundle(bundle_path) as bundle:
        split_bundle(
            bundle, MOVED[:1], first=tmp_path / "o1.zip", rest=tmp_path / "o2.zip"
        )
    with pytest.raises(StructureError, match="lies in neither"):
        join_parts(parts[0], tmp_path / "o2.zip", tmp_path / "whole.rpb.zip")
    with pytest.raises(StructureError, match="lie in both parts"):
        join_parts(tmp_path / "o1.zip", parts[1], tmp_path / "whole.rpb.zip")


def test_an_altered_member_is_not_joined(parts, tmp_path):
    data = parts[0].read_bytes()
    assert data.count(b"print('hello')") == 1
    parts[0].write_bytes(data.replace(b"print('hello')", b"print('HELLO')"))
    with pytest.raises(DigestError, match=r"train\.py"):
        join_parts(parts[0], parts[1], tmp_path / "whole.rpb.zip")
    assert not (tmp_path / "whole.rpb.zip").exists()


MEMORY = "runs/1/memory.json"
TARGET = "project/a.py"


@pytest.mark.parametrize(
    ("absent", "changes", "message"),
    [
        ((MEMORY,), {"bundle": "0" * 64}, "of bundle 000000000000"),
        ((MEMORY, TARGET), {}, "not in its order"),
        ((MEMORY,), {"absent": [MEMORY, "z.txt"]}, "does not list"),
        ((MEMORY,), {"other": None}, "names the other one"),
        ((MEMORY,), {"number": 2}, "names the other one"),
        ((), {}, "absent"),
        ((MEMORY,), {"absent": [TARGET, MEMORY]}, "lies in the other part"),
    ],
)
def test_a_part_that_says_what_is_not_so_is_refused(tmp_path, absent, changes, message):
    path = tmp_path / "part.rpb.zip"
    if "number" in changes:
        other = {"name": "rest.rpb.zip", "size_bytes": 9, "blake3": "0" * 64}
        changes = {**changes, "other": other}
    path.write_bytes(container_files.part(*absent, **changes))
    with pytest.raises(BundleError, match=message):
        open_bundle(path)


def test_a_large_part_json_has_to_start_aligned(tmp_path, monkeypatch):
    other = {"name": "x" * 20_000, "size_bytes": 9, "blake3": "0" * 64}
    path = tmp_path / "part.rpb.zip"
    path.write_bytes(container_files.part(MEMORY, other=other))
    open_bundle(path).close()
    unpadded = partial(Forged, local_extra=b"")
    monkeypatch.setattr(container_files, "Forged", unpadded)
    path.write_bytes(container_files.part(MEMORY, other=other))
    with pytest.raises(StructureError, match="not a multiple of 64"):
        open_bundle(path)


def test_one_part_twice_or_a_whole_one_is_a_bad_call(parts, bundle_path, tmp_path):
    shutil.copy(parts[0], tmp_path / "twin.rpb.zip")
    with pytest.raises(BadCallError, match="same part"):
        join_parts(parts[0], tmp_path / "twin.rpb.zip", tmp_path / "w.rpb.zip")
    with pytest.raises(BadCallError, match="is a whole bundle"):
        join_parts(bundle_path, parts[1], tmp_path / "w.rpb.zip")
    with (
        open_bundle(parts[0]) as first,
        pytest.raises(BadCallError, match="part of a bundle already"),
    ):
        split_bundle(first, ["policy.json"], first=tmp_path / "a", rest=tmp_path / "b")


def test_a_copy_of_one_part_alone_is_refused(parts, bundle_path, tmp_path):
    with pytest.raises(BadCallError, match=r"the other one is rest\.rpb\.zip"):
        whole_copy(parts[0], tmp_path / "whole.rpb.zip")
    whole_copy(bundle_path, tmp_path / "whole.rpb.zip")
    assert (tmp_path / "whole.rpb.zip").read_bytes() == bundle_path.read_bytes()


def test_an_altered_bundle_is_not_copied(bundle_path, tmp_path):
    data = bundle_path.read_bytes()
    bundle_path.write_bytes(data.replace(b"print('hello')", b"print('HELLO')"))
    with pytest.raises(DigestError, match=r"train\.py"):
        whole_copy(bundle_path, tmp_path / "whole.rpb.zip")
    assert not (tmp_path / "whole.rpb.zip").exists()


def test_unzip_puts_the_parts_together(parts, tmp_path):
    folder = tmp_path / "unzipped"
    for part in parts:
        done = subprocess.run(
            ["unzip", "-qn", str(part), "-d", str(folder)],
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    done = subprocess.run(
        [
            "sh",
            "-c",
            "find . -name '*.zst' | while read f; do zstd -q -d --rm $f; done",
        ],
        cwd=folder,
        check=False,
    )
    done = subprocess.run(
        ["b3sum", "--check", "--quiet", "B3SUMS"],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_member_named_like_a_compressed_one_stays_where_it_is(tmp_path):
    whole = tmp_path / "whole.rpb.zip"
    contents = {"inputs/x": b"1" * 20_000, "inputs/x.zst": b"2" * 20_000}
    write_bundle(whole, make_sources(contents))
    first, rest = tmp_path / "first.rpb.zip", tmp_path / "rest.rpb.zip"
    with open_bundle(whole) as bundle:
        split_bundle(bundle, ["inputs/x"], first=first, rest=rest)
    with open_bundle(first) as part:
        assert part.read("inputs/x.zst") == contents["inputs/x.zst"]
    join_parts(first, rest, tmp_path / "joined.rpb.zip")
    assert (tmp_path / "joined.rpb.zip").read_bytes() == whole.read_bytes()
