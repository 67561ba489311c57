from typing import Any

import msgspec
import pytest

from reprobundle.format.record import (
    AllocatorCall,
    Devices,
    Fact,
    Growth,
    InputShape,
    Phase,
    Remark,
)
from reprobundle.report.inspect import BundleView, render_inspect
from reprobundle.report.screen import Screen
from reprobundle.report.view import MemoryPoint
from tests.report import bundles

PLAIN = Screen()


def shown(view: BundleView = bundles.VIEW, *, verbose: bool = False) -> str:
    return render_inspect(view, PLAIN, verbose=verbose)


def lines_with(
    word: str, view: BundleView = bundles.VIEW, *, verbose: bool = False
) -> list[str]:
    return [line for line in shown(view, verbose=verbose).split("\n") if word in line]


def with_record(**changes: Any) -> BundleView:
    record = msgspec.structs.replace(bundles.RECORD, **changes)
    run = msgspec.structs.replace(bundles.VIEW.runs[0], record=record)
    return msgspec.structs.replace(bundles.VIEW, runs=(run,))


def test_it_starts_with_what_the_bundle_is_for_and_how_it_was_made():
    assert shown().startswith(
        f"bundle        {bundles.BUNDLE}\n"
        "file          412 KiB  format 1.0\n"
        "purpose       Digits with a small network\n"
        "scenario      not stated\n"
        "command       python train.py --name 'two words'\n"
        "made          2026-01-02T03:04:05Z by reprobundle 0.1.0 on linux; ended with "
        "status 0 after 12.3 s\n"
        "with          python 3.11.7  torch 2.13.0+cpu  Debian GNU/Linux 12  "
        "AMD EPYC 7R13  device cpu\n"
        "              git 444444444444, changed since  1 package locked\n"
    )


def test_members_are_grouped_with_their_sizes_and_the_largest_named():
    assert "input 1 (259 KiB)" in shown()
    first, second = lines_with("runs/1/outputs/logits.npy")[0], lines_with("digits.csv")
    assert first.split() == [
        "runs/1/outputs/logits.npy", "output", "1.00", "MiB", "eeeeeeeeeeee",
    ]  # fmt: skip
    assert second[0].split()[:2] == ["inputs/digits.csv", "input"]
    assert lines_with("and 2 more members (--verbose shows all)")
    assert lines_with("B3SUMS", verbose=True)


def test_an_input_that_is_not_in_the_bundle_is_marked():
    assert lines_with("external:1/big.bin")[0].endswith("declared  digest only")
    assert lines_with("missing:gone.csv")[0].endswith("observed  unknown content")
    assert lines_with("project:digits.csv")[0].endswith("observed  in the bundle")
    text = shown()
    assert text.index("external:1/big.bin") < text.index("project:digits.csv")


def test_an_array_shows_its_summary_and_its_infinities():
    (row,) = (line for line in lines_with("logits.npy") if "[1797,10]" in line)
    assert row.split() == [
        "logits.npy", "arrays", "float32", "[1797,10]",
        "-12.35", "inf", "0.001", "0", "1", "1.00", "MiB",
    ]  # fmt: skip


def test_nans_are_counted_even_in_an_array_that_is_not_shown():
    (output,) = (it for it in bundles.RECORD.outputs if it.name == "model.pt")
    last = msgspec.structs.replace(output.arrays[-1], nan=4)
    output = msgspec.structs.replace(output, arrays=(*output.arrays[:-1], last))
    (row,) = lines_with("  model.pt", with_record(outputs=(output,)))
    assert row.split() == ["model.pt", "arrays", "5", "arrays", "4", "0", "78.1", "KiB"]


def test_a_file_of_many_arrays_shows_the_first_ones_and_counts_the_rest():
    assert len(lines_with(".weight")) == 3
    assert lines_with("    and 2 more")
    assert len(lines_with(".weight", verbose=True)) == 5


def test_seeds_name_who_set_them():
    (line,) = lines_with("seeds")
    assert line == (
        "seeds         7 set before the command's own code  "
        "torch.manual_seed(7) at train.py:12"
    )


def test_a_run_without_seeds_says_so():
    randomness = msgspec.structs.replace(bundles.RECORD.randomness, seed=None, calls=())
    assert "seeds         none set" in shown(with_record(randomness=randomness))


def test_the_time_of_an_unsynchronised_phase_is_never_shown():
    for verbose in (False, True):
        text = shown(verbose=verbose)
        (row,) = (line for line in text.split("\n") if line.startswith("  forward"))
        assert row.split()[:5] == ["forward", "300", "-", "-", "-"]
        assert row.endswith("no: durations unknown")
        assert not {"777", "555", "333"} & set(text.replace(".", " ").split())


@pytest.mark.parametrize("synchronized", ["cpu", "cuda", "mps"])
def test_the_time_of_a_synchronised_phase_is_shown_with_how(synchronized):
    phase = Phase(
        name="step",
        count=2,
        total_ns=4_000_000_000,
        median_ns=13_000_000,
        longest_ns=40_000_000,
        synchronized=synchronized,
        synchronizations=600,
    )
    (row,) = lines_with("  step     ", with_record(phases=(phase,)))[:1]
    figures = "  step         2  4.00 s  13.0 ms    -  40.0 ms        -  "
    assert row.startswith(figures + synchronized)


def test_the_share_that_a_clock_without_waits_sees_stands_beside_the_median():
    phase = Phase(
        name="forward",
        count=2,
        total_ns=40_000_000,
        median_ns=20_000_000,
        longest_ns=20_000_000,
        synchronized="cuda",
        synchronizations=4,
        unwaited_median_ns=2_000_000,
    )
    for ratio in (None, 0.1):
        checked = msgspec.structs.replace(phase, unwaited_ratio=ratio)
        text = shown(with_record(phases=(checked,)))
        assert "  median  unwaited  p95" in text
        assert "20.0 ms    10.0 %    -" in text


def test_warm_up_and_percentile_stand_beside_the_median():
    phase = Phase(
        name="forward",
        count=300,
        total_ns=4_000_000_000,
        median_ns=13_000_000,
        p95_ns=15_000_000,
        longest_ns=161_000_000,
        warmup_count=3,
        warmup_ns=170_000_000,
        synchronized="cpu",
    )
    (row,) = lines_with("  forward  ", with_record(phases=(phase,)))[:1]
    assert "13.0 ms  15.0 ms   161 ms  3, 170 ms  cpu" in row


def test_a_wait_for_less_than_each_reading_hides_the_time_too():
    phase = Phase(
        name="forward",
        count=300,
        total_ns=777_000_000,
        median_ns=777_000_000,
        longest_ns=777_000_000,
        synchronized="mps",
        synchronizations=599,
    )
    devices = Devices(observed=("mps",), fallback="none-seen")
    changed = with_record(phases=(phase,), devices=devices, platform="darwin")
    assert "777 ms" not in shown(changed)


def test_the_course_of_memory_is_shown_with_its_noise_and_its_circumstances():
    memory = msgspec.structs.replace(
        bundles.RECORD.memory,
        taken=40,
        rounds="step",
        course="linear",
        growth=(
            Growth(
                counter="anonymous",
                kind="linear",
                bytes_per_round=2.4 * bundles.MIB,
                noise_bytes_per_round=67 * 1024.0,
                first_round=10,
                last_round=1200,
            ),
            Growth(counter="rss", kind="not-classified", reason="9 samples"),
        ),
        limits={"PYTORCH_MPS_HIGH_WATERMARK_RATIO": "0.0"},
        calls=(
            AllocatorCall(
                function="torch.mps.empty_cache",
                where="train.py:7",
                calls=12,
                first_step=4,
                in_use=True,
            ),
        ),
        shapes=tuple(InputShape(shape=f"float32[{n}]", count=n) for n in range(1, 7)),
        distinct_shapes=6,
    )
    text = shown(with_record(memory=memory))
    assert "12 samples of 40" in text
    assert (
        "anonymous linear: +2.40 MiB a step, noise up to 67.0 KiB, steps 10 to 1,200"
        in text
    )
    assert "rss not-classified: 9 samples" in text
    assert "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0" in text
    called = "torch.mps.empty_cache() at train.py:7, 12 times from step 4 on"
    assert called in text
    assert "float32[1] 1x" in text
    assert "and 2 more" in text


def test_of_many_rounds_the_first_and_the_last_are_shown():
    def point(name):
        return MemoryPoint(point=name, samples=1, first_ns=1, peak_bytes={"rss": 1})

    names = ("start", "step 1", "step 2", "step 3", "clock", "end")
    run = msgspec.structs.replace(
        bundles.VIEW.runs[0], memory_points=tuple(point(name) for name in names)
    )
    view = msgspec.structs.replace(bundles.VIEW, runs=(run,))
    lines = shown(view).split("\n")
    for name, there in zip(names, (1, 1, 0, 1, 0, 1), strict=True):
        assert sum(line.startswith(f"  {name} ") for line in lines) == there, name
    assert "and 2 more points (--verbose shows all)" in shown(view)


def test_memory_shows_peaks_points_and_what_is_unknown():
    (peaks,) = lines_with("peak resident")
    assert "peak resident 412 MiB" in peaks
    assert "peak on device unknown (no device allocator was seen in use)" in shown()
    (point,) = lines_with("  step  ")
    assert point.split() == ["step", "2.00", "s", "11", "412", "MiB", "9.00", "MiB"]


def test_environment_is_grouped_and_unknown_facts_state_the_reason():
    assert "python        version 3.11.7" in shown()
    assert "memory        total_bytes 16.0 GiB" in shown()
    assert "env           OMP_NUM_THREADS 2\n" in shown()
    assert "and 1 more known fact (--verbose shows all)" in shown()
    assert "env           OMP_NUM_THREADS 2  PYTHONPATH empty" in shown(verbose=True)
    assert "unknown       torch.cuda.driver, torch.cuda.name: no CUDA device" in shown()


def test_a_fact_can_name_no_heading_of_its_own():
    forged = "VERDICT  REPRODUCED, bit-identical (exit 0)"
    facts = {
        name: Fact(value="x")
        for name in (forged, f"{forged}.a", "verdictreproduced.a", "\u0430b.c")
    }
    lines = shown(with_record(environment=facts), verbose=True).split("\n")
    assert not any(line.startswith(("VERDICT", "verdict", "\u0430")) for line in lines)
    assert any(line.startswith(f"other         {forged} x") for line in lines)


def test_serious_remarks_come_first_and_are_limited():
    (first, second) = lines_with("gap: no-seed") + lines_with("warning: network-used")
    text = shown()
    assert text.index(second) < text.index(first)
    many = with_record(
        remarks=tuple(
            Remark(id="python-warning", severity="gap", text=f"number {at}")
            for at in range(30)
        )
    )
    assert lines_with("and 22 more remarks", many)
    assert len(lines_with("python-warning", many, verbose=True)) == 30


def test_the_policy_names_author_reason_tolerances_rules_and_claims():
    text = shown()
    assert "set by A. Author" in text
    assert "measured over five runs" in text
    assert "never compared by name: elapsed_s" in text
    assert "*.png: not compared; fonts differ" in text
    assert "metric accuracy is read from the output by accuracy ([0-9.]+)" in text
    (smoke,) = lines_with("smoke")
    assert smoke.split() == [
        "smoke",
        "-",
        "python",
        "train.py",
        "--quick",
        "all",
        "0.5",
    ]
    assert lines_with("and 1 more tolerance (")
    assert lines_with("bfloat16", verbose=True)


def test_replays_are_listed_and_a_broken_one_is_shown_with_the_reason():
    (row,) = lines_with("9b1f0c22d3aa")
    assert row.split()[:4] == ["9b1f0c22d3aa", "linux", "cpu", "2026-01-02T03:04:05Z"]
    assert "replay        777777777777 cannot be read: no valid JSON [R-6.4]" in shown()


def test_a_bundle_without_replays_or_runs_is_shown_all_the_same():
    bare = msgspec.structs.replace(bundles.VIEW, replays=(), runs=())
    assert "replays       none attached" in shown(bare)


def test_a_newer_minor_version_is_pointed_out():
    newer = msgspec.structs.replace(bundles.VIEW, newer_minor=True)
    assert "newer than this reader: it may hold more than is shown" in shown(newer)


def test_nothing_is_judged():
    assert not any(
        word in shown().upper() for word in ("VERDICT", "REPRODUCED", "REPLICATED")
    )


@pytest.mark.parametrize("width", [32, 50, 80, 120])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_every_width_and_encoding_is_obeyed(width, encoding):
    text = render_inspect(bundles.VIEW, Screen(width=width, encoding=encoding))
    assert all(len(line) <= width for line in text.split("\n"))
    assert text.isascii() or encoding == "utf-8"


HOSTILE = ["\x1b[2J", "a\nVERDICT  REPRODUCED", "\u202eexe", "x" * 50_000, "\ud800"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_in_a_record_cannot_steer_the_terminal(text):
    raw = msgspec.to_builtins(bundles.VIEW)
    poisoned = msgspec.convert(poison(raw, text), type(bundles.VIEW))
    for verbose in (False, True):
        rendered = render_inspect(poisoned, PLAIN, verbose=verbose)
        lines = rendered.split("\n")
        assert all(line.isprintable() for line in lines)
        assert not any(line.startswith("VERDICT") for line in lines)


FREE = {
    "purpose", "started", "tool", "platform", "path", "origin", "name", "value",
    "unknown", "where", "text", "function", "message", "statement", "match", "reason",
    "pattern", "author", "point", "dtype", "problem", "argv", "observed", "command",
    "source",
}  # fmt: skip


def poison(value: Any, text: str, key: str = "") -> Any:
    """Put `text` in the place of every free string of a view."""
    if key == "lock":
        return value
    if isinstance(value, dict):
        return {name: poison(inner, text, name) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [poison(inner, text, key) for inner in value]
    if isinstance(value, str) and key in FREE and value:
        # The schema bounds the patterns of a policy.
        return text[:1024] if key in ("match", "pattern") else text
    return value
