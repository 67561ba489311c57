"""Files are seen in data loader workers, in children, and behind native code."""

import warnings

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

SCRIPT = """
import subprocess, sys
import numpy, torch
from torch.utils.data import DataLoader, Dataset

class Files(Dataset):
    def __init__(self, method):
        self.method = method
    def __len__(self):
        return 2
    def __getitem__(self, index):
        with open(f'data/{self.method}-{index}.txt') as file:
            return float(file.read())

class Double(torch.nn.Module):
    def forward(self, x):
        return 2 * x

if __name__ == '__main__':
    for method in ('fork', 'spawn', 'forkserver'):
        loader = DataLoader(
            Files(method), num_workers=1, multiprocessing_context=method
        )
        print(method, sum(batch.item() for batch in loader))
    subprocess.run([sys.executable, '-c', "open('data/child.txt').read()"])
    torch.UntypedStorage.from_file('data/storage.bin', nbytes=8)
    torch.from_file('data/raw.bin', size=2)
    numpy.fromfile('data/plain.bin')
    numpy.memmap('data/mapped.bin', mode='r')
    torch.save({'w': torch.ones(3)}, 'saved.pt')
    print(torch.load('saved.pt', mmap=True, weights_only=True)['w'].sum().item())
    scripted = torch.jit.script(Double())
    scripted.save('method.pt')
    torch.jit.save(scripted, 'function.pt')
    print(torch.jit.load('data/given.pt')(torch.ones(1)).item())
"""

METHODS = ("fork", "spawn", "forkserver")


@pytest.fixture(scope="module")
def run(launch):
    import torch

    files = {"run.py": SCRIPT, "data/child.txt": "child"}
    for method in METHODS:
        files |= {f"data/{method}-{index}.txt": str(index + 1) for index in (0, 1)}
    for name in ("storage", "raw", "plain", "mapped"):
        files[f"data/{name}.bin"] = "12345678"
    project = launch.project(files)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        traced = torch.jit.trace(torch.nn.Identity(), torch.ones(1))
        torch.jit.save(traced, project / "data/given.pt")
    return launch(["python", "run.py"], project=project)


def test_the_run_is_as_without_the_recorder(run):
    assert run.status == 0, run.stderr
    assert run.stdout.splitlines() == [
        "fork 3.0",
        "spawn 3.0",
        "forkserver 3.0",
        "3.0",
        "1.0",
    ]
    assert run.troubles() == []


@pytest.mark.parametrize("method", METHODS)
def test_reads_in_workers_are_seen(run, method):
    assert {f"data/{method}-0.txt", f"data/{method}-1.txt"} <= run.opened("read")


@pytest.mark.parametrize(
    "name",
    ["child.txt", "storage.bin", "raw.bin", "plain.bin", "mapped.bin", "given.pt"],
)
def test_reads_of_children_and_of_native_code_are_seen(run, name):
    assert f"data/{name}" in run.opened("read")


@pytest.mark.parametrize("name", ["saved.pt", "method.pt", "function.pt"])
def test_writes_of_native_code_are_seen(run, name):
    assert name in run.opened("write")
