"""Which outputs are kept whole, and what is kept of the others."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from reprobundle.format.digests import digest_file
from reprobundle.format.record import ContentMember, Output
from reprobundle.outputs.summary import summarise
from reprobundle.run.accessed import Accesses
from reprobundle.run.budget import Budget, kept_whole, not_whole, within_budget
from reprobundle.run.finished import Assembled
from tests.verify.builder import Run

KEY = "ab" * 32
KIB = 1024


@pytest.fixture
def run(tmp_path):
    """Return a run with arrays of 4, 40 and 400 KiB, plain bytes and a table."""
    record, _ = Run({}).build(tmp_path)
    files = {}
    for name, kib in (("a.npy", 4), ("b.npy", 40), ("c.npy", 400)):
        np.save(tmp_path / name, np.arange(kib * 256, dtype="f4"))
    (tmp_path / "d.bin").write_bytes(b"\0\xff" * 50 * KIB)
    (tmp_path / "e.csv").write_text("x,y\n" + "1.5,2.5\n" * 10_000)
    outputs = []
    for name in ("a.npy", "b.npy", "c.npy", "d.bin", "e.csv"):
        path = tmp_path / name
        told = summarise(name, path)
        files[f"outputs/{name}"] = path
        outputs.append(
            Output(
                name=name,
                kind=told.kind,
                format=told.format,
                size_bytes=path.stat().st_size,
                blake3=digest_file(path),
                stored="here",
                member=f"outputs/{name}",
                arrays=told.arrays,
                rows=told.rows,
            )
        )
    members = [
        ContentMember(name=n, size_bytes=p.stat().st_size, blake3=digest_file(p))
        for n, p in files.items()
    ]
    record = msgspec.structs.replace(
        record, outputs=tuple(outputs), members=tuple(members)
    )
    return Assembled(record=record, content=files, accesses=Accesses())


def cut(run, tmp_path, budget_bytes, **options):
    (tmp_path / "samples").mkdir()
    told: list[str] = []
    budget = Budget(budget_bytes=budget_bytes, key=KEY, **options)
    done = within_budget(run, budget, tmp_path / "samples", say=told.append)
    assert {one.name for one in done.record.members} == set(done.content)
    return {one.name: one for one in done.record.outputs}, done, told


def test_all_is_kept_whole_where_it_fits(run, tmp_path):
    _, done, told = cut(run, tmp_path, 10 << 20)
    assert done == run
    assert told == []


def test_the_largest_go_first_and_tables_stay(run, tmp_path):
    outputs, done, told = cut(run, tmp_path, 130 * KIB)
    stored = {name: output.stored for name, output in outputs.items()}
    assert stored == {
        "a.npy": "here",
        "b.npy": "here",
        "c.npy": "sample",
        "d.bin": "none",
        "e.csv": "here",
    }
    assert [line.partition(":")[0] for line in told] == [
        "output c.npy",
        "output d.bin",
    ]
    assert outputs["c.npy"].sample_key == KEY
    assert outputs["c.npy"].member == "samples/outputs/c.npy.safetensors"
    assert outputs["c.npy"].member in done.content
    assert outputs["c.npy"].arrays == run.record.outputs[2].arrays
    assert (outputs["d.bin"].member, outputs["d.bin"].sample_key) == ("", "")


def test_tables_are_kept_even_over_the_budget(run, tmp_path):
    outputs, _, _ = cut(run, tmp_path, 0)
    assert [name for name, one in outputs.items() if one.stored == "here"] == ["e.csv"]


def test_a_replay_keeps_what_its_reference_kept(run, tmp_path):
    outputs, done, _ = cut(
        run, tmp_path, 0, always=frozenset({"a.npy"}), never=frozenset({"c.npy"})
    )
    assert outputs["a.npy"].stored == "sample"
    assert outputs["c.npy"].stored == "here"
    assert kept_whole(done.record) == {"c.npy", "e.csv"}
    assert not_whole(done.record) == {"a.npy", "b.npy", "d.bin"}


def test_content_that_is_sealed_already_is_not_stored_again(run, tmp_path):
    whole = {one.blake3: f"runs/1/{one.member}" for one in run.record.outputs}
    outputs, done, _ = cut(run, tmp_path, 10 << 20, sealed=whole)
    assert {one.stored for one in outputs.values()} == {"sealed"}
    assert outputs["a.npy"].member == "runs/1/outputs/a.npy"
    assert done.content == {}


def test_an_equal_sample_is_not_stored_again(run, tmp_path):
    first, done, _ = cut(run, tmp_path, 130 * KIB)
    member = first["c.npy"].member
    sealed = {digest_file(done.content[member]): f"runs/1/{member}"}
    (tmp_path / "second").mkdir()
    budget = Budget(budget_bytes=130 * KIB, key=KEY, sealed=sealed)
    again = within_budget(run, budget, tmp_path / "second", say=lambda line: None)
    (output,) = [one for one in again.record.outputs if one.name == "c.npy"]
    assert (output.stored, output.member) == ("sample", f"runs/1/{member}")
    assert member not in again.content
