"""Reading checkpoints in an interpreter that has torch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import RECORDER, plain_environment

pytestmark = pytest.mark.torch

MAKE = """
import pickle, torch
from torch import nn
model = nn.Linear(3, 2)
optimizer = torch.optim.AdamW(model.parameters())
model(torch.ones(1, 3)).sum().backward()
optimizer.step()
torch.save(
    {
        'model': model.state_dict(),
        'optimizer': optimizer.state_dict(),
        'epoch': 3, 'lr': 0.1, 'best': True, 'name': 'größe', 'none': None,
        'big': 2**70,
        'half': torch.full((2,), 1.5, dtype=torch.bfloat16),
        'complex': torch.ones(1, dtype=torch.complex128),
        'sparse': torch.eye(2).to_sparse(),
        'view': torch.arange(10)[::4],
        'empty': {}, 'a.b': 1, 'a': {'b': 2},
    },
    'full.pt',
)
torch.save(model.state_dict(), 'legacy.pth', _use_new_zipfile_serialization=False)
torch.save(torch.ones(2), 'bare.pt')
torch.save(model, 'model.pt')

class Evil:
    def __reduce__(self):
        return open, ('/tmp/should-not-exist-' + 'x' * 8, 'w')
with open('evil.pt', 'wb') as file:
    pickle.dump(Evil(), file)
torch.jit.script(model).save('scripted.pt')
"""


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MAKE],
        cwd=folder,
        check=True,
        env=plain_environment(),
    )
    (folder / "broken.pt").write_bytes(b"hello")
    files = [
        "full.pt",
        "legacy.pth",
        "bare.pt",
        "model.pt",
        "evil.pt",
        "scripted.pt",
        "broken.pt",
        "absent.pt",
    ]
    done = subprocess.run(
        [sys.executable, RECORDER / "checkpoint.py", "out", *files],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        env=plain_environment(),
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["file"] for line in lines] == files
    return folder, {line["file"]: line for line in lines}


@pytest.fixture(scope="module")
def full(lines):
    from safetensors import deserialize, safe_open

    path = lines[0] / "out" / "0.safetensors"
    with safe_open(path, "numpy") as file:
        metadata = file.metadata()
    entries = dict(deserialize(path.read_bytes()))
    return entries, metadata


def test_tensors_get_dotted_names(lines, full):
    entries, _ = full
    line = lines[1]["full.pt"]
    assert line == {"file": "full.pt", "ok": True, "arrays": len(entries)}
    assert entries["model.weight"]["shape"] == [2, 3]
    assert entries["optimizer.state.0.exp_avg"]["dtype"] == "F32"
    assert entries["half"]["dtype"] == "BF16"
    assert bytes(entries["half"]["data"]) == b"\xc0\x3f" * 2
    assert list(memoryview(bytes(entries["view"]["data"])).cast("q")) == [0, 4, 8]
    assert entries["sparse"]["shape"] == [2, 2]


def test_numbers_become_tensors_without_axes(full):
    entries, _ = full
    assert (entries["epoch"]["dtype"], entries["epoch"]["shape"]) == ("I64", [])
    assert (entries["lr"]["dtype"], entries["best"]["dtype"]) == ("F64", "BOOL")
    assert entries["optimizer.param_groups.0.betas.1"]["dtype"] == "F64"


def test_texts_and_changes_go_into_the_metadata(full):
    _, metadata = full
    assert metadata["name"] == "größe"
    assert metadata["none"] == "None"
    assert metadata["big"] == str(2**70)
    assert metadata["changed.complex"] == "complex128 as real and imaginary parts"
    assert "sparse" in metadata["changed.sparse"]


def test_names_that_collide_stay_apart(full):
    entries, _ = full
    numbers = {name: bytes(entries[name]["data"])[0] for name in ("a.b", "a.b#2")}
    assert numbers == {"a.b": 1, "a.b#2": 2}


def test_old_and_bare_files_are_read(lines):
    assert lines[1]["legacy.pth"]["arrays"] == 2
    assert lines[1]["bare.pt"]["arrays"] == 1


@pytest.mark.parametrize("file", ["model.pt", "evil.pt", "scripted.pt"])
def test_code_in_a_checkpoint_is_never_run(lines, file):
    line = lines[1][file]
    assert line["ok"] is False
    assert line["reason"].startswith("it holds more than tensors and plain values")
    assert not Path("/tmp/should-not-exist-xxxxxxxx").exists()


def test_the_refused_class_is_named(lines):
    assert lines[1]["model.pt"]["reason"].endswith(": torch.nn.modules.linear.Linear")


def test_what_is_no_checkpoint_has_a_reason_of_one_line(lines):
    for file in ("broken.pt", "absent.pt"):
        line = lines[1][file]
        assert line["ok"] is False
        assert line["reason"]
        assert "\n" not in line["reason"]
    assert "FileNotFoundError" in lines[1]["absent.pt"]["reason"]


def test_refused_files_leave_nothing_behind(lines):
    names = sorted(path.name for path in (lines[0] / "out").iterdir())
    assert names == ["0.safetensors", "1.safetensors", "2.safetensors"]


def test_a_bad_call_says_how_to_call():
    done = subprocess.run(
        [sys.executable, RECORDER / "checkpoint.py"],
        check=False,
        capture_output=True,
        text=True,
        env=plain_environment(),
    )
    assert done.returncode == 20
    assert done.stderr == "usage: checkpoint.py OUT_DIR FILE...\n"
