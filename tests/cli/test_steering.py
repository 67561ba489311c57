"""``--device``: in the command, in the environment, one after the other."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

from reprobundle.format.canonical import decode
from reprobundle.format.reader import open_bundle
from reprobundle.format.record import Record
from tests.cli.conftest import reprobundle


def decode_replay(bundle, name):
    where = f"replays/{name}/record.json"
    return decode(bundle.read_unsealed(where), Record, where=where, rule="R-7.2")


SCRIPT = """\
import os, pathlib, sys
device = os.environ["REPROBUNDLE_DEVICE"]
hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
pathlib.Path("device.json").write_text(f'["{sys.argv[1]}", "{device}", "{hidden}"]')
"""


@pytest.fixture(scope="module")
def steered(tmp_path_factory):
    folder = tmp_path_factory.mktemp("steered")
    project = folder / "project"
    project.mkdir()
    (project / "run.py").write_text(SCRIPT)
    target = folder / "x.rpb.zip"
    done = reprobundle(
        *("pack", "-q", "-o", target, "--device", "cpu", "--"),
        *(sys.executable, "run.py", "{device}"),
        cwd=project,
    )
    assert done.status == 0, done.err
    return target


def test_the_device_reaches_the_command_and_hides_the_others(steered):
    done = reprobundle("cat", steered, "runs/1/outputs/device.json")
    assert json.loads(done.out) == ["cpu", "cpu", ""]


def test_a_command_that_names_no_device_for_its_place_is_refused(tmp_path):
    done = reprobundle(
        *("pack", "-o", tmp_path / "x.rpb.zip", "--", "python", "a.py", "{device}"),
        cwd=tmp_path,
    )
    assert done.status == 20
    assert "no device is named" in done.err


@pytest.mark.torch
def test_each_device_is_tried_and_a_missing_one_is_not_run_here(steered):
    done = reprobundle(
        *("replay", steered, "--yes", "-q", "--json", "--passes", "measured"),
        *("--device", "cpu,cuda"),
        env={"CUDA_VISIBLE_DEVICES": ""},
    )
    report = json.loads(done.out)
    assert (done.status, report["verdict"]) == (11, "NOT RUN HERE")
    verdicts = [one["verdict"] for one in report["judgements"]]
    assert verdicts == ["REPRODUCED, bit-identical", "NOT RUN HERE"]
    (reason,) = [text for text in report["reasons"] if text.startswith("stopped")]
    assert "platform: cuda was asked for" in reason
    causes = {one["id"] for two in report["judgements"] for one in two["causes"]}
    assert "needs-cuda" not in causes
    with open_bundle(steered) as bundle:
        records = [decode_replay(bundle, name) for name in bundle.replay_ids]
    (stopped,) = (one for one in records if one.outcome.stop)
    key = stopped.environment["torch.cuda.missing"].value
    assert key in ("build-without-cuda", "cuda-hidden")
    assert stopped.environment["torch.cuda.missing_remedy"].value in reason


_NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}
_LEAVE = "; or leave cuda out of --device"


def _way_to_cuda() -> str:
    """Return the cause and the remedy for the torch of the tests."""
    import torch

    if torch.version.cuda is None:
        return (
            f"this build of torch ({torch.__version__}) has neither CUDA nor ROCm: "
            "install a build of torch with CUDA, on a machine with a GPU"
        )
    return ": "


def _packed_on(folder, *options, device="cuda", mapped=""):
    (folder / "run.py").write_text(
        "import sys, torch\n"
        "torch.save(torch.ones(1, device=sys.argv[1]), 'x.pt')\n"
        "if len(sys.argv) > 2:\n    torch.cuda.Stream()\n"
    )
    return reprobundle(
        *("pack", "-q", "-o", folder / "x.rpb.zip", "--passes", "measured"),
        *(*options, "--", sys.executable, "run.py", device, *mapped),
        cwd=folder,
        env=_NO_GPU,
    )


@pytest.mark.torch
@pytest.mark.parametrize(
    ("options", "device", "mapped", "way_on"),
    [
        ((), "cuda", "", "; or have its calls mapped: --map-device cuda=cpu"),
        (
            ("--device", "cuda,cpu"),
            "{device}",
            "",
            _LEAVE,
        ),
        (
            ("--device", "cpu,cuda"),
            "{device}",
            "",
            _LEAVE,
        ),
        (
            ("--map-device", "cuda=cpu"),
            "cuda",
            "s",
            "",
        ),
    ],
)
def test_pack_without_cuda_says_why_and_how_to_go_on(
    tmp_path, options, device, mapped, way_on
):
    done = _packed_on(tmp_path, *options, device=device, mapped=mapped)
    assert done.status == 22, done.err
    said = " ".join(done.err.split())
    assert f"{_way_to_cuda()}{way_on}" in said
    assert ("what only CUDA can do is not mapped; " in said) == bool(mapped)
    assert not (tmp_path / "x.rpb.zip").exists()


@pytest.mark.torch
@pytest.mark.skipif(sys.platform == "darwin", reason="a Mac may have MPS")
def test_a_bundle_from_a_machine_without_mps_says_why(steered, tmp_path):
    script = tmp_path / "run.py"
    script.write_text("import torch\nopen('x.txt', 'w').write('1')\n")
    target = tmp_path / "y.rpb.zip"
    done = reprobundle(
        *("pack", "-q", "-o", target, "--passes", "measured", "--"),
        *(sys.executable, "run.py"),
        cwd=tmp_path,
    )
    assert done.status == 0, done.err
    shown = " ".join(reprobundle("inspect", target).out.split())
    assert f"no MPS: MPS exists on macOS only, this is {sys.platform}" in shown
    assert "(replay on a Mac)" in shown


def test_an_unknown_device_is_a_bad_call(steered):
    done = reprobundle("replay", steered, "--yes", "--device", "cpu,tpu")
    assert done.status == 20
    assert "unknown device 'tpu'" in done.err


def test_a_device_that_is_mapped_to_is_the_one_that_is_used(steered):
    done = reprobundle(
        *("replay", steered, "--yes", "-q", "--json", "--passes", "measured"),
        *("--map-device", "cuda=cpu"),
    )
    judged = json.loads(done.out)["judgements"][-1]
    (found,) = [one for one in judged["findings"] if one["id"] == "device-mapped"]
    assert found["outcome"] == "warn"
    assert found["reason"].endswith("--map-device cuda=cpu: no call named CUDA")


def test_a_mapping_to_a_device_that_is_not_used_is_a_bad_call(steered):
    done = reprobundle(
        *("replay", steered, "--yes", "--device", "cpu", "--map-device", "cuda=mps"),
    )
    assert done.status == 20
    assert "maps to mps, and --device names cpu" in done.err


def test_pack_does_not_write_over_the_replays_of_others(steered, tmp_path):
    target = tmp_path / "mine.rpb.zip"
    shutil.copy(steered, target)
    project = steered.parent / "project"
    pack = ("pack", "-q", "--offline", "--passes", "measured", "-o", target)
    command = ("--device", "cpu", "--", sys.executable, "run.py", "{device}")
    done = reprobundle("replay", target, "--yes", "-q", "--passes", "measured")
    assert done.status in (0, 12), done.err
    before = target.read_bytes()
    refused = reprobundle(*pack, *command, cwd=project)
    assert refused.status == 20
    assert "mine.rpb.zip is there and holds " in refused.err
    assert "which would be lost" in refused.err
    assert target.read_bytes() == before
    forced = reprobundle(*pack, "--force", *command, cwd=project)
    assert forced.status == 0, forced.err


def test_pack_does_not_write_over_what_it_cannot_read(tmp_path):
    target = tmp_path / "x.rpb.zip"
    target.write_bytes(b"not a bundle")
    done = reprobundle(
        *("pack", "-o", target, "--", sys.executable, "-c", "1"), cwd=tmp_path
    )
    assert done.status == 20
    assert "cannot be read as a bundle" in done.err
    assert target.read_bytes() == b"not a bundle"
