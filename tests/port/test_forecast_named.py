"""`forecast` runs scripts that name MPS outright, without a change to them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from reprobundle.port.forecast.forecast import ForecastOptions, forecast
from reprobundle.port.forecast.judging import judge
from reprobundle.port.forecast.naming import names_mps
from reprobundle.port.forecast.subject import typed
from reprobundle.port.forecast.watching import watch
from tests.port.test_forecast import PROGRAMS, project, variables

pytest.importorskip("torch")


def lines_of(printed, first):
    return [line for line in printed.splitlines() if line.startswith(first)]


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    folder = project(tmp_path_factory.mktemp("named"), "named.py")
    return watch(typed(("python", "named.py"), folder, variables()))


@pytest.fixture(scope="module")
def report(named):
    return judge(named.processes, (), torch="2.13")


def test_the_losses_are_those_of_the_script_with_cpu_for_mps(named, tmp_path):
    text = (PROGRAMS / "named.py").read_text()
    (tmp_path / "named.py").write_text(text.replace('"mps"', '"cpu"'))
    done = subprocess.run(
        [sys.executable, "named.py"],
        cwd=tmp_path,
        env=variables(),
        capture_output=True,
        text=True,
        check=True,
    )
    losses = lines_of(done.stdout, "loss")
    assert len(losses) == 3
    assert lines_of(named.printed, "loss") == losses


def test_tensors_say_where_they_would_be(named):
    assert lines_of(named.printed, "places") == ["places mps:0 mps:0 mps:0 cpu True"]
    assert lines_of(named.printed, "same") == ["same True"]
    assert lines_of(named.printed, "there") == ["there True 1"]


def test_what_is_made_or_moved_by_name_counts_as_the_devices(report):
    places = {one.operator: one for one in report.operators}
    mode = places["aten.mode.default"]
    # Those on a CPU that is kept in a variable do not count.
    assert (mode.place, mode.count, mode.certainty) == ("missing", 1, "certain")
    assert mode.where.endswith("named.py:30")
    # clip_grad_norm_ moves norms to ``grads[0].device``, which is the CPU to torch.
    assert "aten.reciprocal.default" in places
    assert report.exit_status == 10
    assert report.steps == 3
    assert [
        (one.kind, one.operator)
        for one in report.crossings
        if one.kind == "mixed-devices"
    ] == []


def test_float64_counts_on_the_device_alone(report):
    (site,) = report.float64
    assert site.where.endswith("named.py:34")


def test_what_was_answered_in_the_place_of_metal_is_not_covered(report):
    asked = [gap for gap in report.not_covered if "0 was answered" in gap]
    assert len(asked) == 1
    assert asked[0].startswith(
        "what depends on torch.mps.current_allocated_memory() at"
    )
    assert asked[0].endswith("named.py:40: 0 was answered")


def test_a_dry_run_of_a_script_that_names_mps(tmp_path, report):
    project(tmp_path, "named.py")
    subject = typed(("python", "named.py"), tmp_path, variables())
    dry = forecast(subject, ForecastOptions(torch="2.13", dry=True))
    assert not any("ended" in gap for gap in dry.not_covered)
    assert dry.steps == 3
    missing = [one.operator for one in dry.operators if one.place == "missing"]
    assert missing == ["aten.mode.default"]
    assert [one.where for one in dry.float64] == ["named.py:34"]


def test_the_device_of_the_command_is_mps_where_the_project_names_it(tmp_path):
    (tmp_path / "a.py").write_text(
        "import sys, torch\n"
        "device = sys.argv[1]\n"
        "assert device == 'mps'\n"
        "torch.set_default_device(device)\n"
        "assert str(torch.get_default_device()) == 'mps:0'\n"
        "x = torch.ones(3)\n"
        "assert (x + torch.tensor([1.0, 2.0, 3.0])).is_mps\n"
        "torch.mode(x)\n"
        "@torch.compile\n"
        "def twice(x):\n"
        "    return x * 2\n"
        "with torch.autocast('mps'):\n"
        "    twice(x) @ x\n"
    )
    subject = typed(("python", "a.py", "{device}"), tmp_path, variables())
    report = forecast(subject, ForecastOptions(torch="2.13"))
    (mode,) = [one for one in report.operators if one.place == "missing"]
    assert (mode.operator, mode.certainty) == ("aten.mode.default", "certain")
    assert "what is compiled at a.py:9: it ran as it stands" in report.not_covered
    assert "what autocast casts at a.py:12: it cast as on the CPU" in report.not_covered


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.py", 'x.to("mps")', True),
        ("a.py", "x.to('mps:0')", True),
        ("a.py", "torch.mps.synchronize()", True),
        ("conf/run.yaml", "accelerator: mps", True),
        ("a.ipynb", '"source": ["d = \\"mps\\""]', True),
        ("a.py", "lamps = mps_of = _mps = mps2 = 1", False),
        ("start.sh", "nvidia-cuda-mps-control -d", False),
        ("notes.md", "runs on mps", False),
    ],
)
def test_a_word_of_code_or_settings_names_mps(name, text, found, tmp_path):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert names_mps(tmp_path, ("python", "a.py"), {}) == found


def test_a_word_of_the_command_or_its_variables_names_mps(tmp_path):
    assert names_mps(tmp_path, ("python", "a.py", "--device=mps"), {})
    assert names_mps(tmp_path, (), {"DEVICE": "mps"})
    assert not names_mps(tmp_path, ("python",), {"PIPES": "/tmp/nvidia mps"})


def test_a_default_device_is_the_devices_and_one_named_outright_is_not(tmp_path):
    (tmp_path / "a.py").write_text(
        "import sys, torch\n"
        "torch.set_default_device(sys.argv[1])\n"
        "made = torch.tensor([1.0, 2.0]) * torch.ones(2)\n"
        "torch.mode(torch.ones(2, device='cpu'))\n"
        "with torch.device('meta'):\n"
        "    print(torch.tensor([1.0]).device, torch.ones(1).device)\n"
    )
    watched = watch(typed(("python", "a.py", "{device}"), tmp_path, variables()))
    assert watched.printed == "meta meta\n"
    report = judge(watched.processes, (), torch="2.13")
    assert report.exit_status == 0
    assert any(one.operator == "aten.mul.Tensor" for one in report.operators)
    assert not any(one.kind == "mixed-devices" for one in report.crossings)
