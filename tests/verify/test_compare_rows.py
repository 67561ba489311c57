"""Outputs of which only rows were kept: what passes, and every false pass."""

from __future__ import annotations

import io
import json

import msgspec
import numpy as np
import pytest

from reprobundle.format.digests import digest_bytes
from reprobundle.format.policy import OutputRule, Tolerance
from reprobundle.format.record import Output
from reprobundle.outputs.places import places
from reprobundle.outputs.row_sample import take_rows
from reprobundle.outputs.summary import summarise
from reprobundle.verify.compare_output import compare_output
from reprobundle.verify.content import Content
from reprobundle.verify.defaults import default_policy

KEY = "ab" * 32
ROWS = 4000
PLACES = 200
LOSSES = np.random.default_rng(5).random(ROWS)
NAME = "out/history.csv"
SAMPLED = places(KEY, NAME, "rows", (ROWS + 1,), size=ROWS, count=PLACES)
SEEN = int(SAMPLED[50])
UNSEEN = int(np.setdiff1d(np.arange(100, ROWS), SAMPLED)[0])


def csv_of(losses, *, tag="a", steps=range(ROWS)):
    rows = [f"{n},{loss!r},{tag}" for n, loss in zip(steps, losses, strict=True)]
    return "\n".join(["step,loss,tag", *rows, ""])


def moved(index=None, by=0.0, *, factor=1.0):
    losses = [float(one) for one in LOSSES * factor]
    if index is not None:
        losses[index] += by
    return losses


class Side:
    """One side of a comparison: its output, and its content in memory."""

    def __init__(
        self, folder, text, *, name=NAME, kept="sample", key=KEY, count=PLACES
    ):
        path = folder / "content"
        path.write_text(text)
        told = summarise(name, path)
        self.output = Output(
            name=name,
            kind=told.kind,
            format=told.format,
            size_bytes=path.stat().st_size,
            blake3=digest_bytes(path.read_bytes()),
            stored=kept,
            member="m" if kept != "none" else "",
            rows=told.rows,
        )
        self.data = path.read_bytes()
        if kept == "sample":
            taken = take_rows(
                lambda: path.open("rb"), told.format, key=key, output=name, count=count
            )
            self.data = taken.text
            self.retold(sample_key=key, row_sample=taken.summary)

    def retold(self, **changes):
        self.output = msgspec.structs.replace(self.output, **changes)
        return self

    @property
    def content(self):
        def opened(name):
            assert name == "m"
            return io.BytesIO(self.data)

        return Content(frozenset({"m"}), opened, opened)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return Side(tmp_path_factory.mktemp("reference"), csv_of(moved()))


def compared(reference, replay, policy=None):
    return compare_output(
        reference.output,
        replay.output,
        reference.content,
        replay.content,
        policy or default_policy(),
        "same",
    )


def under(**rule):
    return msgspec.structs.replace(
        default_policy(), outputs=(OutputRule(match=NAME, reason="a test", **rule),)
    )


@pytest.mark.parametrize("kept", ["sample", "here"])
def test_a_small_difference_is_within_tolerance_and_names_the_rows(
    tmp_path, reference, kept
):
    replay = Side(tmp_path, csv_of(moved(factor=1 + 1e-12)), kept=kept)
    for found in (compared(reference, replay), compared(replay, reference)):
        assert found.result == "within-tolerance", found.reason
        assert found.reason == (
            "sampled at 200 rows of 4,000; 1 of 1 blocks differs; what counts exactly "
            "agrees in all, moments agree"
        )
        assert not any(part.equal for part in found.parts)
        assert {part.elements for part in found.parts} == {PLACES}


def test_a_sampled_number_outside_the_tolerance_is_named_by_its_row(
    tmp_path, reference
):
    found = compared(reference, Side(tmp_path, csv_of(moved(SEEN, 0.5))))
    assert found.result == "outside-tolerance"
    (loss,) = [part for part in found.parts if part.name == "loss"]
    assert (loss.outside, loss.worst_index) == (1, (SEEN,))


def test_a_row_that_differs_outside_the_sample_shows_in_the_moments(
    tmp_path, reference
):
    found = compared(reference, Side(tmp_path, csv_of(moved(UNSEEN, 0.5))))
    assert found.result == "outside-tolerance"
    assert "of the whole column is" in found.reason


def test_nan_outside_the_sample_shows(tmp_path, reference):
    found = compared(reference, Side(tmp_path, csv_of(moved(UNSEEN, np.nan))))
    assert found.result == "outside-tolerance"
    assert found.reason.startswith("loss: what is compared exactly differs")


def test_nan_on_both_sides_outside_the_sample_is_counted(tmp_path):
    losses = moved(UNSEEN, np.nan)
    (tmp_path / "b").mkdir()
    reference = Side(tmp_path / "b", csv_of(losses))
    losses[SEEN] *= 1 + 1e-13
    found = compared(reference, Side(tmp_path, csv_of(losses)))
    assert found.result == "within-tolerance"
    assert sum(part.nan for part in found.parts) == 1


def test_a_text_or_whole_number_that_differs_outside_the_sample_shows(
    tmp_path, reference
):
    text = csv_of(moved()).split("\n")
    text[UNSEEN + 1] = text[UNSEEN + 1][:-1] + "b"
    found = compared(reference, Side(tmp_path, "\n".join(text)))
    assert found.result == "outside-tolerance"
    assert found.reason == "tag: what is compared exactly differs in some row"


@pytest.mark.parametrize("change", ["inserted", "deleted", "moved"])
def test_a_row_more_or_less_or_elsewhere_is_found(tmp_path, reference, change):
    lines = csv_of(moved()).split("\n")
    if change != "deleted":
        lines.insert(UNSEEN + 1, lines[UNSEEN + 1])
    if change != "inserted":
        del lines[UNSEEN + 40]
    found = compared(reference, Side(tmp_path, "\n".join(lines)))
    assert found.result == "outside-tolerance"
    assert (", expected 4,001" in found.reason) == (change != "moved")


def test_another_order_of_a_column_of_numbers_alone_is_found(tmp_path):
    """Moments are the same whatever the order: only the rows show it."""
    (tmp_path / "b").mkdir()
    losses = sorted(moved())
    name = "loss.csv"
    text, other = (
        "loss\n" + "".join(f"{one!r}\n" for one in side)
        for side in (losses, losses[::-1])
    )
    found = compared(
        Side(tmp_path / "b", text, name=name), Side(tmp_path, other, name=name)
    )
    assert found.result == "outside-tolerance"


def test_an_ignored_column_does_not_count(tmp_path, reference):
    policy = under(ignore=("tag",))
    replay = Side(tmp_path, csv_of(moved(), tag="other"))
    assert compared(reference, replay, policy).result == "within-tolerance"
    assert compared(reference, replay).result == "outside-tolerance"


def test_only_the_first_rows_count_where_a_rule_says_so(tmp_path, reference):
    replay = Side(tmp_path, csv_of(moved(ROWS - 1, 9.0)))
    found = compared(reference, replay, under(rows=2000))
    assert found.result == "within-tolerance"
    assert found.reason.endswith("only rows before 2,000 count")
    wrong = Side(tmp_path, csv_of(moved(SEEN, 9.0)))
    assert compared(reference, wrong, under(rows=2000)).result == "outside-tolerance"


# --- false passes


def test_samples_taken_under_another_policy_or_count_are_not_compared(
    tmp_path, reference
):
    text = csv_of(moved(factor=1 + 1e-12))
    for replay in (Side(tmp_path, text, key="cd" * 32), Side(tmp_path, text, count=20)):
        found = compared(reference, replay)
        assert found.result == "not-compared"
        assert "taken at different places" in found.reason


def test_nothing_kept_is_nothing_compared(tmp_path, reference):
    replay = Side(tmp_path, csv_of(moved(factor=2)), kept="none")
    assert compared(reference, replay).result == "not-compared"


def test_copied_digests_of_blocks_do_not_pass(tmp_path, reference):
    replay = Side(tmp_path, csv_of(moved(factor=1 + 1e-12)))
    told, copied = replay.output.row_sample, reference.output.row_sample
    assert told is not None
    told = msgspec.structs.replace(told, blocks=copied.blocks)
    found = compared(reference, replay.retold(row_sample=told))
    assert found.result == "outside-tolerance"
    assert "the digests of all blocks agree although" in found.reason


def test_a_sample_with_a_row_less_is_not_compared(tmp_path, reference):
    replay = Side(tmp_path, csv_of(moved(factor=1 + 1e-12)))
    replay.data = b"".join(replay.data.splitlines(keepends=True)[:-1])
    assert compared(reference, replay).result == "not-compared"


def test_a_copied_sample_beside_other_moments_does_not_pass(tmp_path, reference):
    replay = Side(tmp_path, csv_of(moved(factor=3.0)))
    replay.data = reference.data
    assert compared(reference, replay).result == "outside-tolerance"


def test_rows_beyond_the_range_of_their_summary_do_not_pass(tmp_path, reference):
    replay = Side(tmp_path, csv_of(moved(factor=1 + 1e-12)))
    lines = replay.data.split(b"\n")
    lines[9] = lines[9].split(b",")[0] + b",7.5,a"
    replay.data = b"\n".join(lines)
    found = compared(reference, replay)
    assert found.result == "outside-tolerance"
    assert "values beyond those of its summary" in found.reason


# --- lines


def test_lines_of_json_are_compared_by_column(tmp_path):
    (tmp_path / "b").mkdir()
    name = "log.jsonl"

    def text(losses):
        lines = [json.dumps({"step": n, "loss": one}) for n, one in enumerate(losses)]
        return "\n".join(lines)

    where = places(KEY, name, "rows", (ROWS,), size=ROWS - 1, count=PLACES) + 1
    reference = Side(tmp_path / "b", text(moved()), name=name)
    near = Side(tmp_path, text(moved(factor=1 + 1e-12)), name=name)
    found = compared(reference, near)
    assert found.result == "within-tolerance"
    assert found.reason.startswith("sampled at 201 lines of 4,000; 1 of 1 blocks")
    far = Side(tmp_path, text(moved(int(where[3]), 0.5)), name=name)
    found = compared(reference, far)
    (loss,) = [part for part in found.parts if part.name == "[].loss"]
    assert (found.result, loss.worst_index) == (
        "outside-tolerance",
        (int(where[3]),),
    )
    unseen = int(np.setdiff1d(np.arange(100, ROWS), where)[0])
    lines = text(moved()).split("\n")
    lines[unseen] = lines[unseen].replace("step", "stop")
    found = compared(reference, Side(tmp_path, "\n".join(lines), name=name))
    assert found.result == "outside-tolerance"


def test_a_text_is_exact_but_where_a_rule_gives_a_tolerance(tmp_path):
    (tmp_path / "b").mkdir()
    name = NAME.replace(".csv", ".log")
    policy = msgspec.structs.replace(
        default_policy(),
        outputs=(
            OutputRule(
                match=name, reason="a test", tolerance=Tolerance(rtol=1e-6, atol=0.0)
            ),
        ),
    )

    def text(losses, word="loss"):
        return "".join(f"{word} {one!r}\n" for one in losses)

    def side(folder, losses, word="loss"):
        return Side(folder, text(losses, word), name=name)

    reference = side(tmp_path / "b", moved())
    near = side(tmp_path, moved(factor=1 + 1e-12))
    assert compared(reference, near, policy).result == "within-tolerance"
    found = compared(reference, near)
    assert found.result == "outside-tolerance"
    unseen = side(tmp_path, moved(UNSEEN, 1e-12))
    assert "text is compared exactly" in compared(reference, unseen).reason
    other = side(tmp_path, moved(), word="less")
    assert compared(reference, other, policy).result == "outside-tolerance"
