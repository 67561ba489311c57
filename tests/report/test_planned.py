"""What a replay would do is told before anyone consents to it."""

from __future__ import annotations

from functools import partial

import pytest

from reprobundle.format.reader import open_bundle
from reprobundle.format.record import Fact
from reprobundle.replay.plan import make_plan
from reprobundle.report import planned
from reprobundle.run.system_packages import PACKAGES, missing_packages
from tests.verify.builder import ENVIRONMENT, Bench, Run

RECORDED = ("libc6 2.36", "libgomp1 12.2")


@pytest.fixture
def plan(tmp_path):
    packages = Fact(value=RECORDED, source="dpkg-query")
    facts = {**ENVIRONMENT, PACKAGES: packages}
    bench = Bench(tmp_path, reference=Run(changes={"environment": facts})).pack()
    with open_bundle(bench.path) as bundle:
        return make_plan(bundle, passes=("measured",), claims=())


def shown(plan, monkeypatch, installed):
    asked = partial(missing_packages, run=lambda command: installed)
    monkeypatch.setattr(planned, "missing_packages", asked)
    return planned.render_plan(plan)


def test_what_the_system_lacks_is_named_with_a_command_that_is_not_run(
    plan, monkeypatch
):
    text = " ".join(shown(plan, monkeypatch, "libc6\n").split())
    assert (
        "system not installed here: libgomp1; not run: sudo apt-get install libgomp1"
        in text
    )


@pytest.mark.parametrize(
    "installed",
    [
        pytest.param("libc6\nlibgomp1\n", id="all are there"),
        pytest.param(None, id="this system has no such packages"),
    ],
)
def test_nothing_is_said_where_nothing_is_known_to_lack(plan, monkeypatch, installed):
    assert "not installed here" not in shown(plan, monkeypatch, installed)
