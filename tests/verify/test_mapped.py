"""A run whose CUDA was mapped to another device says so, and is no plain success."""

from __future__ import annotations

import msgspec
import pytest

from reprobundle.format.record import Devices, MappedCall, Outcome
from tests.verify.builder import ERROR, found, on

CALL = MappedCall(
    call="Tensor.cuda", asked="cuda", became="cpu", where="{project}/a.py:3", count=7
)
REFUSED = MappedCall(call="torch.cuda.Stream", became="refused", count=1)


def mapped(*calls: MappedCall) -> Devices:
    """Return the devices of a run on the CPU in which these calls were mapped."""
    devices: Devices = on("cpu", "none-possible")
    return msgspec.structs.replace(devices, mapping="cuda=cpu", mapped=calls)


def test_a_mapped_replay_is_reproduced_with_warnings(bench):
    bench.pack().replay(devices=mapped(CALL))
    report = bench.verify()
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    (one,) = found(report, "device-mapped", "warn")
    assert "7 calls at 1 place (Tensor.cuda(cuda) became cpu at" in one.reason
    assert one.where == "{project}/a.py:3"


def test_a_call_that_was_refused_is_named_first(bench):
    bench.pack().replay(devices=mapped(CALL, REFUSED))
    (one,) = found(bench.verify(), "device-mapped", "warn")
    assert "(torch.cuda.Stream became refused, 1 time, " in one.reason


def test_a_mapped_reference_is_named_too(bench):
    bench.reference.changes["devices"] = mapped(CALL)
    bench.pack().replay()
    (one,) = found(bench.verify(), "device-mapped", "warn")
    assert one.reason.startswith("the reference was made with --map-device cuda=cpu")


def test_calls_without_a_mapping_do_not_hide(bench):
    devices = msgspec.structs.replace(mapped(CALL), mapping="")
    bench.pack().replay(devices=devices)
    assert found(bench.verify(), "device-mapped", "warn")


@pytest.mark.parametrize("allow", [(), ("device-mapped",)])
def test_it_can_be_accepted_by_name_and_the_verdict_says_so(bench, allow):
    bench.pack().replay(devices=mapped(CALL))
    report = bench.verify(allow=allow)
    assert report.exit_status == (0 if allow else 12)
    assert any("device-mapped" in reason for reason in report.reasons)


def test_an_interrupted_replay_says_how_to_go_on(bench):
    outcome = Outcome(exit_status=-2, completed=False, stop="interrupted")
    bench.pack().replay(outcome=outcome)
    (one,) = found(bench.verify(), "run-completed", "not-checked")
    assert "a later one decides" in one.advice
    assert "detach" in one.advice


def test_a_run_that_needs_cuda_is_told_of_the_mapping(bench):
    error = msgspec.structs.replace(ERROR, message="Torch not compiled with CUDA")
    stopped = Outcome(
        exit_status=1, error=error, stop="cuda_required", stop_detail="no CUDA here"
    )
    bench.pack().replay(outcome=stopped)
    (one,) = found(bench.verify(), "stopped", "not-checked")
    assert "--map-device cuda=cpu or cuda=mps" in one.advice


def test_a_mapped_run_that_needs_cuda_is_not_sent_in_circles(bench):
    stopped = Outcome(
        exit_status=1, error=ERROR, stop="cuda_required", stop_detail="a stream"
    )
    bench.pack().replay(outcome=stopped, devices=mapped(REFUSED))
    (one,) = found(bench.verify(), "stopped", "not-checked")
    assert not one.advice
