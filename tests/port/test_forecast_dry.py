"""`forecast --dry` sees the operators of a run, computes nothing and says so."""

from __future__ import annotations

import json

import pytest

from reprobundle.cli.group import run as call
from reprobundle.errors import CommandFailedError
from reprobundle.port.forecast.forecast import ForecastOptions, forecast
from reprobundle.port.forecast.subject import typed
from reprobundle.report.forecasted import render_forecast
from tests.port.test_forecast import plain, project, variables  # noqa: F401

pytest.importorskip("torch")

# foreach kernels refuse tensors without memory, so clipping goes one by one.
FOREACH = {"aten._foreach_norm.Scalar", "aten._foreach_mul_.Tensor"}
MOVES = {"aten.new_empty_strided.default", "aten.copy_.default"}


def dry_forecast(folder, name):
    argv = ("python", name, "{device}")
    subject = typed(argv, project(folder, name), variables())
    return forecast(subject, ForecastOptions(torch="2.13", dry=True))


@pytest.fixture(scope="module")
def dry_plain(tmp_path_factory):
    return dry_forecast(tmp_path_factory.mktemp("dry"), "plain.py")


@pytest.fixture(scope="module")
def invented(tmp_path_factory):
    return dry_forecast(tmp_path_factory.mktemp("invented"), "invented.py")


def test_a_dry_run_calls_the_operators_of_a_run(plain, dry_plain):  # noqa: F811
    from reprobundle.port.forecast.judging import judge

    run = {one.operator for one in judge(plain.processes, ()).operators}
    dry = {one.operator for one in dry_plain.operators}
    assert run - dry <= FOREACH
    assert dry - run <= MOVES
    assert dry_plain.steps == 14


def test_a_dry_run_is_never_whole(dry_plain):
    assert dry_plain.mode == "dry"
    assert dry_plain.exit_status == 11
    assert "nothing was computed" in dry_plain.not_covered[0]
    assert "without values" in render_forecast(dry_plain)


def test_no_place_of_a_plain_program_mixes_devices_or_float64(dry_plain):
    assert [o for o in dry_plain.crossings if o.kind == "mixed-devices"] == []
    assert dry_plain.float64 == ()


def test_memory_is_that_of_the_run(tmp_path):
    assert dry_forecast(tmp_path, "sized.py").peak_bytes == 12 << 20


def test_values_that_were_invented_are_named_with_their_line(invented):
    told = {(one.where, one.how): one.count for one in invented.invented}
    assert told["invented.py:20", "value"] == 4
    assert told["invented.py:23", "size"] == 1
    assert told["invented.py:25", "array"] == 1
    assert told["invented.py:25", "size"] == 1
    (said,) = [gap for gap in invented.not_covered if "invented" in gap]
    assert "invented.py:20" in said


def test_the_branch_of_an_invented_value_is_not_called_certain(invented):
    assert invented.exit_status == 11
    assert not any("mode" in one.operator for one in invented.operators)


def test_an_optimizers_own_numbers_are_no_place(invented):
    assert not any(one.where == "invented.py:19" for one in invented.invented)


def test_a_command_that_cannot_go_on_without_values_is_told_as_far_as_it_went(
    tmp_path,
):
    (tmp_path / "a.py").write_text(
        "import sys, torch\nx = torch.ones(3).to(sys.argv[1])\n"
        "y = x * 2\nif (y > 1).sum().item() == 0:\n    raise SystemExit('no hits')\n"
    )
    subject = typed(("python", "a.py", "{device}"), tmp_path, variables())
    report = forecast(subject, ForecastOptions(torch="2.13", dry=True))
    assert report.exit_status == 11
    assert "perhaps for want of values): no hits" in report.not_covered[0]
    assert any("mul" in one.operator for one in report.operators)


def test_a_dry_command_that_does_not_begin_is_no_forecast(tmp_path):
    (tmp_path / "a.py").write_text("import torch\nraise SystemExit('nothing')\n")
    subject = typed(("python", "a.py"), tmp_path, variables())
    with pytest.raises(CommandFailedError, match="nothing"):
        forecast(subject, ForecastOptions(dry=True))


def test_a_model_larger_than_this_machine_is_forecast(tmp_path, monkeypatch, capsys):
    """One tebibyte of weights; nothing of it is ever there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "large.py").write_text(
        "import sys, torch\nfrom torch import nn\nd = sys.argv[1]\n"
        "m = nn.Sequential(*[nn.Linear(1 << 18, 1 << 18, bias=False).to(d)\n"
        "    for _ in range(4)])\n"
        "o = torch.optim.SGD(m.parameters())\n"
        "m(torch.ones(2, 1 << 18).to(d)).sum().backward()\no.step()\n"
    )
    argv = ["--dry", "--memory", "64GB", "--", "python", "large.py", "{device}"]
    monkeypatch.setenv("PATH", variables()["PATH"])
    assert call(["forecast", "--json", *argv]) == 10
    report = json.loads(capsys.readouterr().out)
    assert report["memory"] == [
        {"mac_bytes": 64 << 30, "fit": "cannot", "certainty": "certain"}
    ]
    # Four weights of 256 GiB and their gradients.
    assert report["peak_bytes"] > 8 * (256 << 30)
    assert [path.name for path in tmp_path.iterdir()] == ["large.py"]
