"""What a record keeps of outputs whose content stays with its author."""

from __future__ import annotations

import msgspec

from reprobundle.run.accessed import Accesses
from reprobundle.run.finished import Assembled
from reprobundle.run.withheld_outputs import WithheldOutputs, as_in_reference
from tests.verify.builder import LOGITS, METRICS, Run

OUTPUTS = {"out/logits.npy": LOGITS, "out/deep/a.json": METRICS, "b.json": METRICS}


def made(tmp_path, outputs=None):
    record, content = Run(outputs or dict(OUTPUTS)).build(tmp_path)
    files = {}
    for number, (name, data) in enumerate(content.items()):
        files[name] = tmp_path / str(number)
        files[name].write_bytes(data)
    return Assembled(record=record, content=files, accesses=Accesses())


def stored(run):
    return {output.name: output.stored for output in run.record.outputs}


def test_a_folder_stands_for_every_output_below_it(tmp_path):
    run = WithheldOutputs(frozenset({"out"})).applied(made(tmp_path))
    assert stored(run) == {
        "out/logits.npy": "withheld",
        "out/deep/a.json": "withheld",
        "b.json": "here",
    }
    assert not [name for name in run.content if name.startswith("outputs/out")]
    assert {one.name for one in run.record.members} == set(run.content)


def test_a_name_that_begins_alike_is_another_output(tmp_path):
    run = WithheldOutputs(frozenset({"b.js", "out/deep/a"})).applied(made(tmp_path))
    assert set(stored(run).values()) == {"here"}


def test_summaries_stay_only_where_they_are_asked_for(tmp_path):
    names = frozenset({"out/logits.npy"})
    without = WithheldOutputs(names).applied(made(tmp_path))
    kept = WithheldOutputs(names, keep_summaries=True).applied(made(tmp_path))
    find = {one.name: one for one in without.record.outputs}
    assert find["out/logits.npy"].arrays == ()
    find = {one.name: one for one in kept.record.outputs}
    assert find["out/logits.npy"].arrays[0].shape == (4, 6)


def test_names_that_stand_for_nothing_are_told(tmp_path):
    names = WithheldOutputs(frozenset({"out", "outputs/b.json", "c.json"}))
    assert names.unmatched(made(tmp_path).record.outputs) == ["c.json"]


def test_a_replay_keeps_no_more_than_its_reference(tmp_path):
    run = made(tmp_path)
    reference = WithheldOutputs(frozenset({"out/logits.npy"})).applied(run).record
    more = made(tmp_path, {**OUTPUTS, "out/new.json": METRICS, "new.json": METRICS})
    replay = as_in_reference(more, reference)
    assert stored(replay) == {
        "out/logits.npy": "withheld",
        "out/new.json": "withheld",
        "out/deep/a.json": "here",
        "b.json": "here",
        "new.json": "here",
    }
    assert all(
        not (one.member or one.arrays)
        for one in replay.record.outputs
        if one.stored == "withheld"
    )


def test_a_reference_that_shows_everything_takes_nothing_away(tmp_path):
    run = made(tmp_path)
    assert as_in_reference(run, run.record).content == run.content
    assert msgspec.json.encode(as_in_reference(run, run.record).record) == (
        msgspec.json.encode(run.record)
    )
