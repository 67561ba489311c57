"""What is said when two runs made their random draws in different ways."""

from types import SimpleNamespace
from typing import Any

import pytest

from reprobundle.format.record import Drawn, Loader, Randomness
from reprobundle.verify.drawn import check_drawn


def outcomes(reference: Drawn, replay: Drawn) -> dict[str, str]:
    records: list[Any] = [
        SimpleNamespace(
            pass_name="measured", randomness=Randomness(drawn=drawn), ranks=()
        )
        for drawn in (reference, replay)
    ]
    return {found.id: found.outcome for found in check_drawn(*records)}


@pytest.mark.parametrize("mode", ["native", "portable"])
@pytest.mark.parametrize("other", ["native", "portable", "recorded"])
def test_another_way_of_drawing_is_named_and_never_passes(mode, other):
    found = outcomes(Drawn(mode=mode), Drawn(mode=other))
    assert found["same-draws"] == ("pass" if mode == other else "warn")


@pytest.mark.parametrize(
    ("got", "outcome"),
    [
        (Drawn(mode="recorded", taken=4, followed=9), "pass"),
        (Drawn(mode="recorded", taken=4, stopped="draw.4 is another"), "warn"),
        (Drawn(mode="recorded", taken=4, missing=1), "warn"),
        (Drawn(mode="recorded"), "not-checked"),
    ],
)
def test_taking_nothing_or_not_everything_is_no_pass(got, outcome):
    assert outcomes(Drawn(mode="recorded"), got)["draws-taken"] == outcome


def test_a_device_that_drew_by_itself_is_named():
    got = Drawn(mode="portable", on_device=("cuda:0",))
    assert outcomes(Drawn(mode="portable"), got)["draws-on-device"] == "warn"
    assert "draws-on-device" not in outcomes(Drawn(), Drawn())


@pytest.mark.parametrize(
    ("workers", "ranks", "named"),
    [(2, 1, "2 workers"), (0, 2, "2 ranks"), (0, 1, "")],
)
def test_draws_of_other_processes_are_said_to_be_their_own(workers, ranks, named):
    drawn = Drawn(mode="recorded", taken=4, followed=9)
    loader = Loader(where="train.py:3", base_seed="1", workers=workers)
    record: Any = SimpleNamespace(
        pass_name="measured",
        randomness=Randomness(drawn=drawn, loaders=(loader,)),
        ranks=(None,) * ranks,
    )
    gaps = [one for one in check_drawn(record, record) if one.outcome == "not-checked"]
    assert [named in one.reason for one in gaps] == ([True] if named else [])
