"""Which outputs are kept whole, and what is kept of the others."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from reprobundle.format.digests import digest_file
from reprobundle.format.record import ContentMember, Output
from reprobundle.outputs.summary import summarise
from reprobundle.run.accessed import Accesses
from reprobundle.run.budget import (
    Budget,
    kept_whole,
    not_whole,
    places_of_rows,
    within_budget,
)
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


def test_small_tables_are_kept_even_over_the_budget(run, tmp_path):
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


@pytest.fixture
def large(run, tmp_path):
    """Return a run with a table of more than 4 MiB and documents of that size."""
    rows = b"step,loss\n" + b"".join(b"%d,0.125\n" % n for n in range(400_000))
    wide = b"{" + b",".join(b'"%d":1' % n for n in range(1001)) + b"}\n"
    text = b'"%b"' % (b"x" * (5 << 20))
    contents = {"f.csv": rows, "g.json": text, "h.jsonl": wide}
    outputs, files = list(run.record.outputs), dict(run.content)
    for name, data in contents.items():
        path = tmp_path / name
        path.write_bytes(data)
        files[f"outputs/{name}"] = path
        told = summarise(name, path)
        outputs.append(
            Output(
                name=name,
                kind=told.kind,
                format=told.format,
                size_bytes=len(data),
                blake3=digest_file(path),
                stored="here",
                member=f"outputs/{name}",
                rows=told.rows,
            )
        )
    record = msgspec.structs.replace(run.record, outputs=tuple(outputs))
    return Assembled(record=record, content=files, accesses=Accesses())


def test_a_large_table_is_kept_as_rows_and_a_document_whole(large, tmp_path):
    outputs, done, told = cut(large, tmp_path, 5 << 20)
    table = outputs["f.csv"]
    assert table.row_sample is not None
    assert (table.stored, table.member) == ("sample", "samples/outputs/f.csv")
    assert (table.sample_key, table.row_sample.places) == (KEY, 100_000)
    assert done.content[table.member].read_bytes().count(b"\n") == 100_001
    assert outputs["g.json"].stored == "here"
    assert (
        "output f.csv: 5,088,900 bytes, a sample of 100,000 of its 400,000 rows and "
        "the digests and sums of all are kept"
    ) in told


def test_a_large_document_over_the_budget_is_told_with_a_remedy(large, tmp_path):
    _, done, told = cut(large, tmp_path, 5 << 20)
    (remark,) = done.record.remarks
    assert (remark.id, remark.severity) == ("output-over-budget", "gap")
    assert remark.where == "g.json"
    assert "5,242,882 bytes of json were kept whole" in remark.text
    assert "write JSON Lines" in remark.text
    assert "--hash-only" in remark.text
    assert f"output g.json: {remark.text}" in told


@pytest.mark.parametrize("options", [{}, {"never": frozenset({"g.json"})}])
def test_what_fits_and_what_a_replay_must_keep_is_not_told(large, tmp_path, options):
    budget_bytes = 5 << 20 if options else 40 << 20
    _, done, _ = cut(large, tmp_path, budget_bytes, **options)
    assert done.record.remarks == large.record.remarks


def test_a_replay_keeps_as_many_rows_as_its_reference(large, tmp_path):
    outputs, done, _ = cut(
        large,
        tmp_path,
        10 << 20,
        always=frozenset({"f.csv", "h.jsonl"}),
        places={"f.csv": 7},
    )
    assert places_of_rows(done.record) == {"f.csv": 7}
    assert outputs["h.jsonl"].stored == "here"


def test_what_has_too_many_columns_is_kept_whole_and_that_is_told(large, tmp_path):
    _, _, told = cut(large, tmp_path, 10 << 20, always=frozenset({"h.jsonl"}))
    assert any(
        "h.jsonl" in line and "kept whole: no sample of its rows" in line
        for line in told
    )
