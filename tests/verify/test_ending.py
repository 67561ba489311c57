"""Where an error happened: exact inside the project, by file outside of it."""

from __future__ import annotations

import msgspec
import pytest

from reprobundle.format.record import Outcome
from reprobundle.verify.ending import check_ending
from tests.verify.builder import ERROR, Run


@pytest.fixture(scope="module")
def outcome_of(tmp_path_factory):
    record, _ = Run({}).build(tmp_path_factory.mktemp("ending"))

    def same(left, right):
        sides = [
            msgspec.structs.replace(
                record,
                outcome=Outcome(
                    exit_status=1,
                    expected_failure=True,
                    error=msgspec.structs.replace(ERROR, where=where),
                ),
            )
            for where in (left, right)
        ]
        (found,) = [f for f in check_ending(*sides) if f.id == "same-failure"]
        return found.outcome

    return same


@pytest.mark.parametrize(
    ("left", "right", "outcome"),
    [
        ("{project}/a.py:3", "{project}/a.py:3", "pass"),
        ("{project}/a.py:3", "{project}/a.py:4", "fail"),
        ("{project}/a.py:3", "{project}/b.py:3", "fail"),
        ("/usr/lib/python3.11/json/decoder.py:355", "~/py/json/decoder.py:338", "pass"),
        ("/usr/lib/python3.11/json/decoder.py:355", "/usr/lib/ssl.py:355", "fail"),
        ("/usr/lib/python3.11/json/decoder.py:3", "{project}/decoder.py:3", "fail"),
    ],
)
def test_a_place_counts_as_far_as_two_machines_can_agree(
    outcome_of, left, right, outcome
):
    assert outcome_of(left, right) == outcome
