"""Masked messages: equal for one failure, different for two."""

from __future__ import annotations

import pytest

from reprobundle.run.masking import mask

SAME = {
    "address": (
        "<Net object at 0x7f01ab> has no loss",
        "<Net object at 0x55ff00d1> has no loss",
    ),
    "out of memory": (
        "Tried to allocate 2.00 GiB. GPU 0 has 1.25 GiB free. Process 4711 has 138 GiB",
        "Tried to allocate 2.25 GiB. GPU 3 has 512 MiB free. Process 12 has 78 GiB",
    ),
    "MPS out of memory": (
        "MPS backend out of memory (MPS allocated: 8.88 GB, other: 256 bytes)",
        "MPS backend out of memory (MPS allocated: 17.10 GB, other: 1.10 MB)",
    ),
    "worker ids": (
        "DataLoader worker (pid(s) 81, 82) exited unexpectedly",
        "DataLoader worker (pid(s) 9, 10) exited unexpectedly",
    ),
    "worker id": (
        "DataLoader worker (pid 3217) is killed by signal: Killed.",
        "DataLoader worker (pid 5) is killed by signal: Killed.",
    ),
    "device index": (
        "Expected all tensors to be on the same device, found cuda:0 and cpu!",
        "Expected all tensors to be on the same device, found cuda:1 and cpu!",
    ),
    "temporary file": (
        "no such file: '{tmp}/tmpk3_x09ab/model.pt'",
        "no such file: '{tmp}/tmp00aab_cd/model.pt'",
    ),
    "path of the machine": (
        "cannot open /opt/venv/lib/python3.11/site-packages/torch/lib/a.so",
        "cannot open /home/anna/env/lib/python3.12/site-packages/torch/lib/a.so",
    ),
    "home folder": (
        "cannot load ~/.cache/huggingface/hub/x: damaged",
        "cannot load ~/Library/Caches/huggingface/x: damaged",
    ),
    "C++ source": (
        "index 5 is out of bounds (at /pytorch/aten/src/ATen/Indexing.cu:1308)",
        "index 5 is out of bounds (at ../aten/src/ATen/Indexing.cu:1290)",
    ),
    "C++ backtrace": (
        "bad shape\nException raised from check at ../c10/X.cpp:43\nframe #0: c10",
        "bad shape",
    ),
    "line of a library": (
        'File "/usr/lib/python3.11/json/decoder.py", line 355, in raw_decode: bad',
        'File "/usr/lib/python3.12/json/decoder.py", line 338, in raw_decode: bad',
    ),
    "port": (
        "The server socket has failed to listen on 127.0.0.1:29500",
        "The server socket has failed to listen on 127.0.0.1:41233",
    ),
    "time": (
        "timed out after 1800.05 seconds at 2026-01-02 11:22:33,123",
        "timed out after 1800 seconds at 2027-11-12 01:02:03,001",
    ),
    "identity": (
        "job 123e4567-e89b-12d3-a456-426614174000 failed",
        "job 00000000-e89b-12d3-a456-426614174fff failed",
    ),
    "colour": ("\x1b[31mbad\x1b[0m", "bad"),
}

DIFFERENT = {
    "shape": (
        "mat1 and mat2 shapes cannot be multiplied (4x5 and 6x7)",
        "mat1 and mat2 shapes cannot be multiplied (4x5 and 8x7)",
    ),
    "list of sizes": (
        "Expected hidden size (1, 4, 32), got [1, 16, 32]",
        "Expected hidden size (1, 4, 32), got [1, 8, 32]",
    ),
    "index": ("index 5 is out of bounds", "index 6 is out of bounds"),
    "dtype": ("expected Float but found Half", "expected Float but found Double"),
    "device type": ("found cuda:0 and cpu", "found mps:0 and cpu"),
    "operator": (
        "The operator 'aten::_linalg_eigh' is not currently implemented for MPS",
        "The operator 'aten::_linalg_svd' is not currently implemented for MPS",
    ),
    "file of the project": (
        "No such file or directory: '{project}/data/a.csv'",
        "No such file or directory: '{project}/data/b.csv'",
    ),
    "relative path": (
        "No such file or directory: 'data/a.csv'",
        "No such file or directory: 'data/b.csv'",
    ),
    "line of the project": (
        'File "{project}/train.py", line 3',
        'File "{project}/train.py", line 4',
    ),
    "number without unit": ("loss is 3.5", "loss is 4.5"),
    "rank": ("[rank0]: bad", "[rank1]: bad"),
    "dimension": ("dimension out of range: 2", "dimension out of range: 3"),
}


@pytest.mark.parametrize("case", SAME)
def test_two_runs_of_one_failure_agree(case):
    left, right = SAME[case]
    assert left != right
    assert mask(left) == mask(right)


@pytest.mark.parametrize("case", DIFFERENT)
def test_two_failures_stay_apart(case):
    left, right = DIFFERENT[case]
    assert mask(left) != mask(right)


@pytest.mark.parametrize("text", [one for pair in SAME.values() for one in pair])
def test_masking_twice_changes_nothing(text):
    assert mask(mask(text)) == mask(text)


def test_a_long_message_is_masked_in_linear_time():
    text = "/a" * 50_000 + " 1" * 50_000 + "a-" * 50_000 + " " * 50_000 + "x"
    assert mask(text).startswith("#")
