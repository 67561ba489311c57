"""On two real GPUs: the clock waits for each that the run uses, not for one alone."""

from __future__ import annotations

import sys

import pytest

pytestmark = pytest.mark.cuda
torch = pytest.importorskip("torch")
if torch.cuda.device_count() < 2:
    pytest.skip("fewer than two CUDA devices", allow_module_level=True)

from tests.cuda.test_bundles import pack, reference  # noqa: E402 - skips without a GPU

ELSEWHERE = """\
import reprobundle, torch
here, there = torch.ones(1, device="cuda:0"), torch.ones(8192, 8192, device="cuda:1")
for _ in range(30):
    with reprobundle.phase("elsewhere"):
        there @ there
print(torch.cuda.current_device(), here.item())
torch.save({"sum": (there[0] @ there[:, 0]).cpu()}, "sum.pt")
"""


def test_work_on_another_gpu_than_the_current_one_is_waited_for(tmp_path):
    record, _ = reference(pack(tmp_path, "two", ELSEWHERE, "--device", "cuda"))
    (phase,) = (one for one in record.phases if one.name == "elsewhere")
    sys.stderr.write(f"{phase.median_ns} ns, ratio {phase.unwaited_ratio}\n")
    assert phase.synchronizations >= 2 * phase.count - 1
    assert phase.unwaited_ratio is not None
    assert phase.unwaited_ratio < 0.5
