"""What an issue says about results that differ, and how long it ever gets."""

from __future__ import annotations

import re

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reprobundle.errors import LimitError
from reprobundle.format.part import OtherPart, Part
from reprobundle.format.record import ErrorReport
from reprobundle.report.issue import Materials, render_issue
from reprobundle.report.issue_script import Snippet
from reprobundle.report.page import build_page
from tests.verify.builder import OUTPUTS, VALUES, Bench, Run, npy

ERROR = ErrorReport(
    type="ValueError", message="m", masked="m", where="a.py:1", traceback="", steps=3
)
OTHER = OtherPart(name="digits.part2.rpb.zip", size_bytes=9, blake3="b" * 64)
FIRST = Part(bundle="a" * 64, number=1, absent=("inputs/x",), other=OTHER)
SECOND = Part(bundle="a" * 64, number=2, absent=("inputs/x",))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of a bundle with two passes of a replay that gave something else."""
    bench = Bench(tmp_path_factory.mktemp("bench")).pack()
    values = VALUES.copy()
    values.flat[2] += 3
    other = {**OUTPUTS, "out/logits.npy": npy(values)}
    bench.replay(Run(dict(other)))
    bench.replay(Run(dict(other)), pass_name="repeat")
    return build_page(bench.path, bench.verify())


def test_the_worst_place_stands_on_both_sides_with_what_was_allowed(page):
    text = render_issue(page, Materials())
    row = next(
        line for line in text.splitlines() if "logits.npy" in line and "|" in line
    )
    cells = [cell.strip() for cell in row.strip("|").split(" | ")]
    index = [int(n) for n in re.findall(r"\d+", cells[0].partition("[")[2])]
    assert VALUES[tuple(index)] == VALUES.flat[2]
    assert float(cells[1].strip("`")) == pytest.approx(float(VALUES.flat[2]))
    assert float(cells[2].strip("`")) == pytest.approx(float(VALUES.flat[2]) + 3)
    assert cells[3].startswith("`rtol ")
    assert re.search(r"outside-tolerance: 1 of [\d,]+ outside", cells[4])


def row_of(text, name):
    """Return the cells of the row about one output."""
    row = next(line for line in text.splitlines() if line.startswith(f"| `{name}"))
    return [cell.strip() for cell in row.strip("|").split(" | ")]


def test_results_that_agree_show_the_value_of_both_sides(tmp_path):
    bench = Bench(tmp_path).pack()
    values = VALUES.copy()
    values.flat[7] = values.flat[7] * (1 + 1e-6)
    bench.replay(Run({**OUTPUTS, "out/logits.npy": npy(values)}))
    text = render_issue(build_page(bench.path, bench.verify()), Materials())
    place, expected, got, allowed, result = row_of(text, "out/logits.npy")
    index = tuple(int(n) for n in re.findall(r"\d+", place.partition("[")[2]))
    assert float(expected.strip("`")) == pytest.approx(float(VALUES[index]))
    assert float(got.strip("`")) == pytest.approx(float(values[index]))
    assert allowed.startswith("`rtol ")
    apart = re.fullmatch(
        r"`within-tolerance: 0 of 24 outside, at most (\S+) apart`", result
    )
    assert apart is not None
    moved = abs(float(values.flat[7]) - float(VALUES.flat[7]))
    assert float(apart[1]) == pytest.approx(moved, rel=1e-3)


def test_of_parts_that_agree_the_one_farthest_apart_is_shown(tmp_path):
    expected, got = b"a,b\n0.5,0.25\n", b"a,b\n0.5,0.2500001\n"
    bench = Bench(tmp_path, reference=Run({**OUTPUTS, "out/t.csv": expected})).pack()
    bench.replay(Run({**OUTPUTS, "out/t.csv": got}))
    text = render_issue(build_page(bench.path, bench.verify()), Materials())
    place, *sides, _, _ = row_of(text, "out/t.csv")
    assert place.startswith("`out/t.csv#b")
    assert [float(one.strip("`")) for one in sides] == [0.25, 0.2500001]


def test_results_of_equal_bytes_show_what_each_side_has(tmp_path):
    bench = Bench(tmp_path).pack()
    bench.replay(Run(dict(OUTPUTS)))
    text = render_issue(build_page(bench.path, bench.verify()), Materials())
    _, expected, got, _, result = row_of(text, "out/logits.npy")
    low, high = float(VALUES.min()), float(VALUES.max())
    assert expected == got == f"`npy, float32 [4, 6], {low:.4g} … {high:.4g}`"
    assert result == "`bit-identical`"


@pytest.mark.parametrize(
    ("part", "inline", "joined"),
    [
        (FIRST, "", "digits.part1.rpb.zip digits.part2.rpb.zip"),
        (FIRST, "A" * 60, "- digits.part2.rpb.zip"),
        (SECOND, "", "digits.part1.rpb.zip PART1"),
    ],
)
def test_of_a_part_it_names_join_and_replays_the_whole_only(page, part, inline, joined):
    report = msgspec.structs.replace(page.report, file="digits.part1.rpb.zip")
    text = render_issue(
        page._replace(report=report), Materials(part=part, inline=inline)
    )
    commands = text.rpartition("```sh\n")[2] if not inline else text
    assert f"reprobundle join {joined} -o digits.rpb.zip\n" in commands
    assert "reprobundle replay digits.rpb.zip\n" in commands
    assert commands.count("reprobundle replay") == 1
    assert commands.count("reprobundle join") == 1
    assert f"| part | {part.number} of 2" in text


def test_of_a_whole_bundle_there_is_nothing_to_join(page):
    assert "reprobundle join" not in render_issue(page, Materials())


def test_only_the_measured_pass_of_a_replay_is_shown(page):
    assert len(page.replays) == 2
    assert render_issue(page, Materials()).count("| ended with |") == 1


def test_what_does_not_differ_comes_last(page):
    text = render_issue(page, Materials())
    assert text.index("`out/logits.npy") < text.index("`out/metrics.json`")


def test_packages_and_copies_are_named_without_their_folders(page):
    told = (
        'File "/home/ada/x/lib/python3.11/site-packages/torch/a.py", line 1\n'
        "python: can't open file '/tmp/reprobundle-pack-ab12/run1/project/t.py'\n"
    )
    failed = with_error(page, told)
    text = render_issue(failed, Materials())
    assert "ada" not in text
    assert 'File "{site-packages}/torch/a.py"' in text
    assert "'{project}/t.py'" in text


def with_error(page, traceback):
    """Return the page with a reference that failed like that."""
    record = page.reference.record
    error = msgspec.structs.replace(ERROR, traceback=traceback)
    outcome = msgspec.structs.replace(record.outcome, error=error, exit_status=1)
    failed = msgspec.structs.replace(record, outcome=outcome)
    return page._replace(reference=page.reference._replace(record=failed))


pieces = st.sampled_from(["x", "é", "\N{GRINNING FACE}", "`", "\n", "\u202e", "</x>"])


# The page, a fixture of 57 kB, is described for every example.
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.tuples(pieces, pieces, pieces),
    st.integers(0, 60_000),
    st.integers(0, 60_000),
    st.integers(0, 60_000),
)
# Slashes without an end, in which a folder's name was once looked for from each.
@example(("x", "x", "</x>"), 0, 60_000, 0)
def test_it_is_never_longer_than_an_issue(page, kinds, script, trace, inline):
    materials = Materials(
        snippet=Snippet("a.py", kinds[0] * script),
        expected=kinds[1] * 900,
        inline="A" * inline,
    )
    failed = with_error(page, kinds[2] * trace)
    try:
        text = render_issue(failed, materials)
    except LimitError:
        assert inline > 50_000
        return
    assert len(text.encode()) <= 65_536
    assert materials.inline in text


@pytest.mark.parametrize("count", [21_172, 30_000, 60_000])
def test_fences_around_nothing_but_backticks_are_counted(page, count):
    text = render_issue(with_error(page, "`" * count), Materials(inline="A" * 60))
    assert len(text.encode()) <= 65_536


def test_no_room_beside_the_bundle_is_refused_with_the_way_out(page):
    with pytest.raises(LimitError, match="attach the file"):
        render_issue(page, Materials(inline="A" * 65_000))


def test_a_page_of_nothing_is_no_crash(page):
    bare = page._replace(reference=None, replays=())
    assert "The run cannot be read." in render_issue(bare, Materials())


def test_values_that_are_not_numbers_are_shown(tmp_path):
    bench = Bench(tmp_path).pack()
    values = VALUES.copy()
    values.flat[0] = np.nan
    bench.replay(Run({**OUTPUTS, "out/logits.npy": npy(values)}))
    text = render_issue(build_page(bench.path, bench.verify()), Materials())
    assert "`out/logits.npy" in text
    assert "NOT REPRODUCED" in text
