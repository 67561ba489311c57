"""`forecast` tells what MPS would refuse, and never calls a plain program refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import jsonschema
import msgspec
import pytest

from reprobundle.cli.group import run as call
from reprobundle.format.forecast_report import MemoryFit
from reprobundle.format.schema import schema_of
from reprobundle.port.forecast.forecast import ForecastOptions, forecast
from reprobundle.port.forecast.judged import judge_operators, memory_fits
from reprobundle.port.forecast.judging import judge, with_status
from reprobundle.port.forecast.subject import typed
from reprobundle.port.forecast.watching import watch
from reprobundle.report.forecasted import render_forecast
from reprobundle.run.events import SteeredEndEvent, SteeredOperatorEvent
from reprobundle.verify.mps_operators import table_of, table_versions

PROGRAMS = Path(__file__).parent / "programs"
pytest.importorskip("torch")


def variables():
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return {**os.environ, "OMP_NUM_THREADS": "1", "PATH": path}


def row(operator):
    return SteeredOperatorEvent(
        t_ns=0,
        operator=operator,
        phase="",
        steered=True,
        count=1,
        steps=1,
        where="a.py:1",
    )


def project(folder, name):
    (folder / name).write_text((PROGRAMS / name).read_text())
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = project(tmp_path_factory.mktemp("plain"), "plain.py")
    return watch(typed(("python", "plain.py", "{device}"), folder, variables()))


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    folder = project(tmp_path_factory.mktemp("faulty"), "faulty.py")
    argv = ("python", "faulty.py", "{device}")
    subject = typed(argv, folder, variables())
    report = forecast(subject, ForecastOptions(torch="2.13", memory_bytes=8 << 30))
    return folder, report


def test_the_losses_are_those_of_a_run_that_nobody_watches(plain, tmp_path):
    done = subprocess.run(
        [sys.executable, PROGRAMS / "plain.py", "cpu"],
        env=variables(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert plain.exit_status == 0
    assert plain.printed == done.stdout
    assert plain.printed.count("\n") == 8


def test_a_form_that_is_likely_wrong_is_in_the_last_line(plain):
    said = "NOTHING FOUND THAT BLOCKS"
    for version, besides in (("2.13", True), ("2.15", False)):
        report = judge(plain.processes, (), torch=version)
        (line,) = [
            words
            for words in render_forecast(report).split("FORECAST ")
            if said in words
        ]
        assert ("in a form that is likely wrong" in " ".join(line.split())) is besides


@pytest.mark.parametrize("version", table_versions())
def test_no_operator_of_a_plain_program_is_called_missing(plain, version):
    report = judge(plain.processes, (), torch=version)
    bad = {"missing", "always-cpu", "unknown"}
    assert [one.operator for one in report.operators if one.place in bad] == []
    assert len(report.operators) > 60
    assert report.steered
    assert report.steps == 14
    assert report.exit_status == 0


def test_reads_of_values_are_counted_on_the_device_alone(plain):
    # Eight printed values. The optimizers read their count of steps on the CPU.
    assert judge(plain.processes, ()).scalar_reads == 8


def test_a_choice_of_the_cpu_is_likely_and_names_what_mps_is_asked_for(plain):
    report = judge(plain.processes, (), torch="2.13")
    (found,) = [o for o in report.operators if "mkldnn_rnn_layer.default" in o.operator]
    assert (found.on_mps, found.certainty) == ("_lstm_mps", "likely")


def products(report):
    names = ("aten.mm.", "aten.addmm.")
    return [one for one in report.operators if one.operator.startswith(names)]


def test_products_of_a_linear_layer_are_told_as_the_layer_that_mps_is_asked_for(plain):
    found = products(judge(plain.processes, (), torch="2.13"))
    # Those of layers, attention, recurrent cells, and of their backward passes.
    assert {one.on_mps for one in found} == {"linear", "linear_backward"}
    assert {(one.place, one.certainty) for one in found} == {("native", "likely")}
    assert sum(one.count for one in found) > 60


def test_a_form_that_mps_is_not_asked_for_gives_no_alarm(plain):
    kernels = judge(plain.processes, (), torch="2.13").kernels
    assert {one.operator for one in kernels} == {"aten.bmm.default"}


def test_a_product_of_the_scripts_own_is_certain_and_may_be_misread(faulty):
    _, report = faulty
    (found,) = [one for one in products(report) if not one.on_mps]
    assert found.certainty == "certain"
    assert found.where == "faulty.py:15"
    (kernel,) = report.kernels
    assert (kernel.operator, kernel.where) == ("aten.mm.default", "faulty.py:15")
    assert kernel.source.endswith("/193487")


def test_what_a_checkpoint_runs_again_is_no_part_of_a_backward(faulty):
    _, report = faulty
    counts = {one.on_mps: one.count for one in products(report)}
    # One alone; one that runs twice, with its backward; and a layer, which is last and
    # not run again, for its tensors are there before it runs.
    assert counts == {"": 1 + 2 + 2, "linear": 1, "linear_backward": 2}


def test_operators_without_a_kernel_are_named_with_their_line(faulty):
    _, report = faulty
    bad = {one.operator: one for one in report.operators if one.place == "missing"}
    assert set(bad) == {
        "aten.mode.default",
        "aten.multi_margin_loss.default",
        "aten.multi_margin_loss_backward.default",
    }
    mode = bad["aten.mode.default"]
    assert (mode.count, mode.where, mode.certainty) == (3, "faulty.py:12", "certain")
    assert report.exit_status == 10


def test_what_always_goes_to_the_cpu_is_told_apart(faulty):
    _, report = faulty
    (svd,) = [one for one in report.operators if one.place == "always-cpu"]
    assert (svd.operator, svd.where) == ("aten._linalg_svd.default", "faulty.py:14")


def test_what_runs_on_the_cpu_blocks_nothing_and_is_no_success(faulty):
    _, report = faulty
    alone = msgspec.structs.replace(
        report,
        operators=tuple(o for o in report.operators if o.place != "missing"),
        float64=(),
        exit_status=0,
    )
    report = with_status(alone, asked_memory=False)
    assert report.exit_status == 11
    shown = " ".join(render_forecast(report).split())
    assert "NO RUN ON MPS ALONE" in shown
    assert "1 operator runs on the CPU" in shown
    unasked = msgspec.structs.replace(report, steered=False)
    assert "blocked by nothing that was seen, and 1 operator runs on the CPU" in (
        " ".join(render_forecast(unasked).split())
    )
    plain = tuple(o for o in report.operators if o.place != "always-cpu")
    none = msgspec.structs.replace(report, operators=plain, exit_status=0)
    assert with_status(none, asked_memory=False).exit_status == 0
    detour = msgspec.structs.replace(
        report.kernels[0], kind="detour", certainty="certain"
    )
    left = msgspec.structs.replace(none, kernels=(detour,))
    assert with_status(left, asked_memory=False).exit_status == 11


def test_a_backward_whose_forward_is_refused_is_the_same_cause(faulty):
    _, report = faulty
    follows = {one.operator: one.follows for one in report.operators if one.follows}
    assert follows == {
        "aten.multi_margin_loss_backward.default": "aten.multi_margin_loss.default"
    }
    assert "the backward of multi_margin_loss, which is refused first" in " ".join(
        render_forecast(report).split()
    )


@pytest.mark.parametrize(
    ("names", "version", "follows"),
    [
        (("_ctc_loss.Tensor", "_ctc_loss_backward.Tensor"), "2.13", 0),
        (("_embedding_bag.default", "_embedding_bag_dense_backward.default"), "2.9", 0),
        (("_pdist_forward.default", "_pdist_backward.default"), "2.15", 0),
        # Its forward has a kernel: the backward is a cause of its own.
        (("_cdist_forward.default", "_cdist_backward.default"), "2.12", None),
        # Another operator of a similar name.
        (("mode.default", "_ctc_loss_backward.default"), "2.13", None),
    ],
)
def test_a_backward_is_a_cause_of_its_own_where_its_forward_is_not(
    names, version, follows
):
    table = table_of(version)
    assert table is not None
    full = [f"aten.{name}" for name in names]
    found = judge_operators([row(name) for name in full], table, steered=True)
    (backward,) = [one for one in found if one.operator == full[1]]
    assert backward.place == "missing"
    assert backward.follows == ("" if follows is None else full[follows])


def test_float64_is_found_with_its_line(faulty):
    _, report = faulty
    assert [(one.where, one.dtype) for one in report.float64] == [
        ("faulty.py:13", "float64")
    ]


def test_the_project_is_not_touched(faulty):
    folder, _ = faulty
    assert [path.name for path in folder.iterdir()] == ["faulty.py"]


def test_the_terminal_labels_each_line_and_says_what_was_not_covered(faulty):
    _, report = faulty
    shown = render_forecast(report)
    for words in ("certain", "faulty.py:12", "NOT COVERED"):
        assert words in shown
    assert "certain: float64 computed at faulty.py:13, 1 time" in shown
    assert "(lower bound): 8 GB not excluded (unknown)" in " ".join(shown.split())
    assert "BLOCKED BY 2 operators without a kernel, 1 place with float64" in shown
    assert "; 1 operator runs on the CPU" in " ".join(shown.split())
    # No place is shown, so what is not shown has a label of its own.
    assert "crossings     2 places outside the loop, not shown" in shown


def test_a_mac_that_is_too_small_blocks_beside_other_things(faulty):
    _, report = faulty
    small = MemoryFit(mac_bytes=8 << 30, fit="cannot", certainty="certain")
    shown = render_forecast(msgspec.structs.replace(report, memory=(small,)))
    assert "1 place with float64, memory, " in " ".join(shown.split())


def test_json_follows_its_schema(faulty):
    from reprobundle.format.canonical import encode

    document = json.loads(encode(faulty[1]))
    jsonschema.Draft202012Validator(schema_of("forecast")).validate(document)


@pytest.mark.parametrize(
    ("operator", "version", "place"),
    [
        ("aten._linalg_eigh.default", "2.13", "missing"),
        ("aten._linalg_eigh.default", "2.14", "detour"),
        ("aten._ctc_loss.Tensor", "2.13", "missing"),
        ("aten._ctc_loss.Tensor", "2.14", "native"),
        ("aten.take.default", "2.14", "missing"),
        ("aten.take.default", "2.15", "native"),
        ("mine.f.default", "2.15", "unknown"),
    ],
)
def test_the_table_of_the_target_decides(operator, version, place):
    table = table_of(version)
    assert table is not None
    (found,) = judge_operators([row(operator)], table, steered=True)
    assert found.place == place
    assert (found.certainty == "unknown") == (place == "unknown")


def test_what_nobody_could_judge_or_see_is_no_success(plain):
    (process, *others) = plain.processes
    own = row("mine.f.default")
    lost = [
        msgspec.structs.replace(one, reason="3 operators were not counted")
        if isinstance(one, SteeredEndEvent)
        else one
        for one in process.events
    ]
    for events in ((*process.events, own), tuple(lost)):
        seen = msgspec.structs.replace(process, events=events)
        report = judge((seen, *others), (), torch="2.13")
        assert report.exit_status == 11
        assert "FORECAST      NOT WHOLE" in render_forecast(report)


def test_memory_is_that_of_the_tensors_that_live_at_one_time(tmp_path):
    project(tmp_path, "sized.py")
    argv = ("python", "sized.py", "{device}")
    report = forecast(typed(argv, tmp_path, variables()))
    assert report.peak_bytes == 12 << 20
    assert [one.fit for one in report.memory] == ["not-excluded"] * 5


OTHER_TENSORS = """import sys, torch
device = sys.argv[1]
graph = torch.eye(4).to_sparse().to(device)
layer = torch.nn.Linear(4, 2).to(device)
torch.sparse.mm(graph, layer(torch.ones(4, 4).to(device))).sum().backward()
(torch.eye(4).to_sparse_csr().to(device) @ torch.ones(4, 1).to(device)).sum()
torch.sparse.mm(graph, graph)
torch.ones(4).to(device).to(torch.float8_e4m3fn).float()
"""


def test_what_the_table_is_not_about_is_unknown_and_no_success(tmp_path):
    (tmp_path / "a.py").write_text(OTHER_TENSORS)
    argv = ("python", "a.py", "{device}")
    report = forecast(typed(argv, tmp_path, variables()), ForecastOptions(torch="2.13"))
    unlike = [one for one in report.operators if one.place == "unknown"]
    assert {one.note.rpartition(" of ")[2] for one in unlike} == {
        "layout sparse_coo",
        "layout sparse_csr",
        "dtype float8_e4m3fn",
    }
    assert {one.certainty for one in unlike} == {"unknown"}
    assert "aten._sparse_sparse_matmul.default" in {o.operator for o in unlike}
    assert report.exit_status == 11


MIXED = """import sys, torch
device = torch.device(sys.argv[1])
model = torch.compile(torch.nn.Linear(4, 2).to(device))
optimizer = torch.optim.AdamW(model._orig_mod.parameters())
scaler = torch.amp.GradScaler(device.type)
for _ in range(2):
    with torch.autocast(device.type, dtype=torch.bfloat16):
        loss = model(torch.ones(4, 4).to(device)).sum()
    with torch.autocast(device.type, enabled=False):
        rank = torch.linalg.matrix_rank(torch.eye(3).to(device))
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
print(torch.linalg.pinv(torch.ones(3, 2).to(device)))
"""


def test_compiled_code_is_seen_and_what_torch_does_for_mps_is_no_float64(tmp_path):
    (tmp_path / "a.py").write_text(MIXED)
    argv = ("python", "a.py", "{device}")
    report = forecast(typed(argv, tmp_path, variables()), ForecastOptions(torch="2.14"))
    assert report.float64 == ()
    assert [o for o in report.crossings if o.kind == "mixed-devices"] == []
    assert any("_backward" in one.on_mps for one in report.operators)
    told = [one for one in report.not_covered if " a.py:" in one]
    assert told == [
        "what is compiled at a.py:3: it ran as it stands",
        "what autocast casts at a.py:7: it cast as on the CPU",
    ]
    assert report.exit_status == 11


LOADED = """import sys, torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
device = sys.argv[1]
x = torch.ones(2, 4).to(device)
layer = torch.nn.Linear(4, 4).to(device)
torch.save(layer, "layer.pt")
torch.save(layer.state_dict(), "state.pt")
torch.jit.script(layer).save("script.pt")
torch.load("layer.pt", map_location=device, weights_only=False)(x)
x @ torch.load("state.pt", map_location=device)["weight"]
torch.load("state.pt", map_location="cpu")["weight"].numpy()
torch.jit.load("script.pt", map_location=device)(x)
x * torch.ones(4).type_as(x)
torch.func.vmap(lambda row: layer(row))(x)
lstm = torch.nn.LSTM(4, 4, batch_first=True).to(device)
padded = torch.ones(2, 3, 4).to(device)
packed = pack_padded_sequence(
    padded, torch.tensor([2, 3]), batch_first=True, enforce_sorted=False
)
pad_packed_sequence(lstm(packed)[0], batch_first=True)[0].sum().backward()
"""


@pytest.mark.parametrize("device", ["{device}", "mps"])
def test_what_is_loaded_or_packed_on_the_device_is_there(device, tmp_path):
    (tmp_path / "a.py").write_text(LOADED)
    argv = ("python", "a.py", device)
    report = forecast(typed(argv, tmp_path, variables()), ForecastOptions(torch="2.13"))
    assert [o for o in report.crossings if o.kind == "mixed-devices"] == []
    copied = [o.where for o in report.crossings if o.note == "copy_"]
    assert copied == []
    # There is no kernel for all of a recurrent layer over packed sequences.
    asked = {one.on_mps for one in report.operators}
    assert "linear_backward" in asked
    assert not {"_lstm_mps", "lstm_mps_backward"} & asked
    assert report.exit_status == 0


POOLED = """import sys, torch
device = sys.argv[1]
x = torch.ones(1, 3, 14, 14).to(device)
for size in (1, 7, (2, 14), 28):
    torch.nn.AdaptiveAvgPool2d(size)(x)
torch.nn.AdaptiveMaxPool1d(5)(x[0])
"""


def test_an_adaptive_pool_that_does_not_divide_evenly_is_refused(tmp_path):
    (tmp_path / "a.py").write_text(POOLED)
    argv = ("python", "a.py", "{device}")
    seen = watch(typed(argv, tmp_path, variables()))
    for version, certainty, status in (("2.13", "certain", 10), ("2.15", "likely", 11)):
        report = judge(seen.processes, argv, torch=version)
        (found,) = report.kernels
        assert (found.kind, found.certainty) == ("refused", certainty)
        assert found.operator == "aten.adaptive_max_pool2d.default"
        assert report.exit_status == status
        shown = " ".join(render_forecast(report).split())
        assert f"{certainty}, RAISES on MPS: adaptive_max_pool2d at " in shown
        assert ("1 operator in a form that MPS refuses" in shown) == (status == 10)


def test_a_mac_of_any_size_is_named_as_it_was_asked_for(faulty):
    _, report = faulty
    sizes = {16 << 30: "16 GB", 12 << 10: "12.0 KiB", 3 << 29: "1.50 GiB"}
    for asked, shown in sizes.items():
        fit = MemoryFit(mac_bytes=asked, fit="cannot", certainty="certain")
        one = msgspec.structs.replace(report, memory=(fit,))
        text = " ".join(render_forecast(one).split())
        assert f"(lower bound): {shown} cannot fit" in text


@pytest.mark.parametrize("how", [[], ["--strict"]])
def test_an_interpreter_without_torch_is_named(how, tmp_path, monkeypatch, capsys):
    plain = tmp_path / "plain"
    venv.create(plain, symlinks=True)
    python = plain / "bin/python"
    monkeypatch.chdir(project(tmp_path, "faulty.py"))
    asked = ["forecast", *how, "--", str(python), "faulty.py", "{device}"]
    assert call(asked) == 20
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"{python} has no torch" in error
    assert "install torch there" in error


def test_a_lower_bound_never_says_that_a_run_fits():
    gib = 1 << 30
    fits = [memory_fits(n * gib, 8 * gib)[0].fit for n in (4, 5, 9)]
    assert fits == ["not-excluded", "tight", "cannot"]
    sure = [memory_fits(n * gib, 8 * gib)[0].certainty for n in (4, 5, 9)]
    assert sure == ["unknown", "likely", "certain"]
    assert len(memory_fits(1, None)) == 5


CUDA_OR_CPU = """import torch
device = "cuda" if torch.cuda.is_available() else "cpu"
"""
DEFAULT_CPU = """import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")
device = parser.parse_args().device
"""
# One operator without a kernel, and float64; both are in order on a CPU.
WORK = """model = torch.nn.Linear(4, 2, device=device).to(device)
x = torch.randn(3, 4, device=device)
model(x).sum().backward()
torch.mode(x.double())
"""


@pytest.mark.parametrize(
    "text",
    [
        "import torch\ntorch.mode(torch.ones(3))\n",
        CUDA_OR_CPU + WORK,
        "# runs on mps some day\n" + CUDA_OR_CPU + WORK,
        DEFAULT_CPU + WORK,
        DEFAULT_CPU + "choices = ['cpu', 'cuda', 'mps']\n" + WORK,
    ],
)
def test_a_run_that_never_asks_for_mps_is_told_as_that(text, tmp_path):
    (tmp_path / "a.py").write_text(text)
    argv = ("python", "a.py")
    report = forecast(typed(argv, tmp_path, variables()), ForecastOptions(torch="2.13"))
    assert not report.steered
    assert {one.certainty for one in report.operators} == {"unknown"}
    assert report.float64 == ()
    assert report.exit_status == 11
    assert "whether MPS is asked for at all" in report.not_covered[0]
    shown = " ".join(render_forecast(report).split())
    assert "FORECAST UNKNOWN: this run asked for no MPS" in shown
    assert "it would be blocked by 1 operator without a kernel" in shown
    assert "certain" not in shown.replace("inputs certain", "")


def test_the_same_script_that_is_told_its_device_asks_for_it(tmp_path):
    (tmp_path / "a.py").write_text(DEFAULT_CPU + WORK)
    argv = ("python", "a.py", "--device", "{device}")
    report = forecast(typed(argv, tmp_path, variables()), ForecastOptions(torch="2.13"))
    assert (report.steered, report.exit_status) == (True, 10)
    assert [one.certainty for one in report.float64] == ["certain"]


def test_a_library_that_looks_for_mps_by_itself_finds_it(tmp_path):
    """As accelerate does; the command and the project name nothing."""
    (tmp_path / "a.py").write_text(
        "import torch\nhere = torch.accelerator.current_accelerator()\n"
        "torch.mode(torch.ones(3).to(here))\n"
    )
    report = forecast(typed(("python", "a.py"), tmp_path, variables()))
    assert (report.steered, report.exit_status) == (True, 10)


def test_the_command_of_a_bundle_is_run_after_consent_alone(packed, capsys):
    assert call(["forecast", str(packed)]) == 20
    refused = capsys.readouterr()
    assert "add --yes" in refused.err
    assert refused.out == ""
    assert call(["forecast", "--json", "--yes", str(packed)]) == 0
    seen = capsys.readouterr()
    report = json.loads(seen.out)
    assert "will run      python train.py '{device}'" in seen.err
    assert report["command"] == ["python", "train.py", "{device}"]
    assert report["bundle"] in seen.err
    assert len(report["bundle"]) == 64
    assert report["steps"] == 3
    assert not Path("loss.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["no-such.rpb.zip"], 20, "no such file"),
        (["--yes", str(PROGRAMS / "plain.py")], 20, "cannot be started"),
    ],
)
def test_a_bundle_that_cannot_be_read_is_one_line(arguments, status, words, capsys):
    assert call(["forecast", *arguments]) == status
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert words in error


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--", "python", "-c", "raise SystemExit(3)"], 22, "status 3"),
        (["--", "python", "-c", "x = 1"], 20, "no torch"),
        (["--torch", "1.0", "--", "python", "-c", "x = 1"], 20, "2.9 to 2.15"),
        (["--", "no-such-program"], 20, "cannot be started"),
        (["--memory", "0GB", "--", "python", "-c", "x = 1"], 20, "is no memory"),
    ],
)
def test_what_cannot_be_forecast_is_one_line(
    arguments, status, words, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert call(["forecast", *arguments]) == status
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert words in error
