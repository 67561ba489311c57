"""`forecast` names what passes between the devices, and raises it when it is strict."""

from __future__ import annotations

import json
import sys

import pytest

from reprobundle.cli.group import run as call
from reprobundle.port.forecast.forecast import ForecastOptions, forecast
from reprobundle.port.forecast.judged import refused_names
from reprobundle.port.forecast.subject import typed
from reprobundle.report.forecasted import render_forecast
from reprobundle.verify.mps_operators import table_of, table_versions
from tests.port.test_forecast import project, variables

pytest.importorskip("torch")


def forecast_of(folder, name, **options):
    argv = ("python", name, "{device}")
    subject = typed(argv, project(folder, name), variables())
    return forecast(subject, ForecastOptions(torch="2.13", **options))


@pytest.fixture(scope="module")
def crossed(tmp_path_factory):
    return forecast_of(tmp_path_factory.mktemp("crossed"), "crossing.py")


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    return forecast_of(tmp_path_factory.mktemp("strict"), "refused.py", strict=True)


def words(report, **options):
    return " ".join(render_forecast(report, **options).split())


def at(report, kind):
    return {
        one.where: (one.count, one.steps)
        for one in report.crossings
        if one.kind == kind and one.certainty != "unknown"
    }


def test_copies_reads_and_inputs_are_counted_by_line_and_step(crossed):
    assert crossed.steps == 3
    assert at(crossed, "to-cpu")["crossing.py:22"] == (3, 3)
    assert at(crossed, "scalar-read")["crossing.py:23"] == (3, 3)
    assert at(crossed, "to-device")["crossing.py:17"] == (3, 3)
    (inputs,) = [o for o in crossed.crossings if o.where == "crossing.py:17"]
    assert inputs.size_bytes == 3 * 5 * 8 * 4 * 4


def test_a_list_is_a_copy_and_an_array_of_the_device_raises(crossed):
    assert at(crossed, "to-cpu")["crossing.py:31"] == (1, 1)
    (array,) = [o for o in crossed.crossings if o.where == "crossing.py:30"]
    assert array.kind == "mixed-devices"
    assert "numpy() of a tensor on MPS raises" in array.note


def test_both_devices_in_one_operator_are_found_and_nothing_else_is(crossed):
    # No hidden state of the LSTM, no range inside one_hot, no index on the CPU, and
    # nothing that was made like a tensor of the CPU.
    assert sorted(at(crossed, "mixed-devices")) == ["crossing.py:29", "crossing.py:30"]


def test_what_an_operator_of_the_cpu_reads_for_itself_is_only_likely(crossed):
    sure = {o.where: o.certainty for o in crossed.crossings if o.kind == "scalar-read"}
    assert sure["crossing.py:23"] == "certain"
    assert sure["crossing.py:25"] == "likely"


def test_a_form_that_is_known_to_be_wrong_blocks(crossed):
    (weight,) = [o for o in crossed.kernels if o.certainty == "certain"]
    assert (weight.operator, weight.where) == (
        "aten.convolution.default",
        "crossing.py:33",
    )
    assert weight.kind == "wrong"
    assert "192212" in weight.source
    assert "float32[4, 3, 3, 3] strides [54, 18, 3, 1]" in weight.form
    assert crossed.exit_status == 10


def test_the_terminal_shows_what_the_loop_pays(crossed):
    shown = words(crossed)
    assert "reads a value certain crossing.py:23" in shown
    assert "CPU input certain crossing.py:17" in shown
    assert "4.0 times in a step the CPU waits for the device" in shown
    assert "2 places with tensors of both devices, 1 operator in a form" in shown
    assert "further place" in shown
    assert "further place" not in words(crossed, verbose=True)


def test_numpy_draws_are_not_taken_for_drawn_inputs(crossed):
    assert crossed.inputs == "not-seen-drawn"


def test_strict_raises_where_mps_would_and_the_script_may_handle_it(strict):
    first, last = strict.refused
    assert (first.where, first.ended) == ("refused.py:12", False)
    assert first.error.startswith(
        "NotImplementedError: The operator 'aten::mode' is not currently implemented "
        "for the MPS device."
    )
    assert (last.where, last.ended) == ("refused.py:16", True)
    assert last.error.startswith("TypeError: Cannot convert a MPS Tensor to float64")


def test_strict_says_that_it_saw_no_more_and_blocks(strict):
    assert strict.strict
    assert strict.exit_status == 10
    assert strict.not_covered[0].startswith("what comes after the refusal")
    shown = words(strict)
    assert "raised, and the command went on" in shown
    assert "ended the command" in shown
    assert "BLOCKED BY 1 place with float64, 2 refusals" in shown


@pytest.mark.parametrize("version", table_versions())
def test_strict_refuses_what_the_table_calls_missing(version):
    table = table_of(version)
    assert table is not None
    names = set(refused_names(table))
    assert ("aten._ctc_loss.default" in names) == (int(version[2:]) < 14)
    assert "aten.mode.default" in names
    assert not names & {"aten.add.Tensor", "aten._linalg_svd.default"}
    assert not any(name.startswith("aten.mkldnn_rnn_layer") for name in names)


def test_a_reduced_run_is_told_what_it_leaves_out(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(project(tmp_path, "sized.py"))
    (tmp_path / "full.py").write_text(
        "import sys, torch\nd = sys.argv[1]\nx = torch.zeros(1 << 20).to(d)\n"
        "torch.mode(x + 1)[0] * 2\ntorch.nn.Linear(4, 4).to(d)(x[:4])\n"
    )
    assert (
        call(["forecast", "--json", "--", sys.executable, "full.py", "{device}"]) == 10
    )
    (tmp_path / "full.json").write_text(capsys.readouterr().out)
    arguments = ["--against", "full.json", "--", sys.executable, "sized.py", "{device}"]
    assert call(["forecast", "--json", *arguments]) == 11
    compared = json.loads(capsys.readouterr().out)["compared"]
    assert compared["other"] == ["python", "full.py", "{device}"]
    assert "aten.mode.default" in compared["vanished"]
    assert "aten.mul.Tensor" in compared["vanished"]
    assert "aten.add.Tensor" not in compared["vanished"]
    assert compared["added"] == []
    assert "does not call" in compared["warnings"][0]


@pytest.mark.parametrize("content", [None, "{}", '{"schema": "reprobundle/scan/1"}'])
def test_what_is_no_forecast_cannot_be_compared_with(
    content, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "full.json").write_text(content)
    assert call(["forecast", "--against", "full.json", "--", "python", "a.py"]) == 20
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "full.json" in error


def test_a_deep_copy_of_what_is_on_the_device_is_there_too(tmp_path):
    """Buffers and state dicts are copied by their memory, below the dispatcher."""
    (tmp_path / "a.py").write_text(
        "import copy, sys, torch\n"
        "model = torch.nn.BatchNorm1d(3).to(sys.argv[1])\n"
        "average = copy.deepcopy(model)\n"
        "best = copy.deepcopy(model.state_dict())\n"
        "average(torch.randn(4, 3).to(sys.argv[1]))\n"
        "model.load_state_dict(best)\n"
        "kept = copy.deepcopy(torch.ones(3)) + torch.ones(3)\n"
    )
    report = forecast(typed(("python", "a.py", "{device}"), tmp_path, variables()))
    kinds = [(one.kind, one.where) for one in report.crossings]
    assert [one for one in kinds if one[0] != "to-device"] == []
    assert {where for _, where in kinds} == {"a.py:2", "a.py:5"}
