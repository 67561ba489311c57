"""Errors that say what a machine cannot do."""

import pytest

from reprobundle.format.record import ErrorReport
from reprobundle.run.stops import stop_of


def error(message, kind="RuntimeError"):
    return ErrorReport(
        type=kind, message=message, masked=message, where="train.py:7", traceback=""
    )


MISSING_OLD = (
    "The operator 'aten::mode' is not current implemented for the MPS device. If you "
    "want this op to be added in priority …"
)
MISSING = (
    "The operator 'aten::mode' is not currently implemented for the MPS device. If you "
    "want this op to be considered for addition please comment on …"
)
ON_MPS = (
    "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support "
    "float64. Please use float32 instead."
)
TO_MPS = (
    "Cannot convert a float64 Tensor to MPS as the MPS framework doesn't support "
    "float64. Please use float32 instead."
)
COMPLEX = (
    "Cannot convert a MPS Tensor to complex128 dtype as the MPS framework doesn't "
    "support complex128."
)
BFLOAT16 = "MPS bfloat16 type is supported on MacOS 14.0 or newer."
FULL_MPS = (
    "MPS backend out of memory (MPS allocated: 9.57 GiB, other allocations: 17.35 GiB, "
    "max allowed: 27.20 GiB). Tried to allocate 292.50 MiB on private pool."
)
FULL_CUDA = "CUDA out of memory. Tried to allocate 2.00 GiB."


@pytest.mark.parametrize("message", [MISSING_OLD, MISSING])
def test_a_missing_operator_is_named(message):
    stop, detail = stop_of(error(message, "NotImplementedError"))
    assert stop == "operator"
    assert detail.startswith("aten::mode has no kernel for MPS")
    assert "at train.py:7; --fallback diagnose" in detail


@pytest.mark.parametrize("message", [ON_MPS, TO_MPS, COMPLEX, BFLOAT16])
def test_a_dtype_that_mps_lacks_is_a_stop_reason(message):
    assert stop_of(error(message, "TypeError"))[0] == "dtype"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (FULL_MPS, "RuntimeError"),
        ("Invalid buffer size: 25.00 GiB", "RuntimeError"),
        (FULL_CUDA, "torch.OutOfMemoryError"),
    ],
)
def test_too_little_memory_is_a_stop_reason(message, kind):
    stop, detail = stop_of(error(message, kind))
    assert stop == "memory"
    assert detail.endswith("at train.py:7")


@pytest.mark.parametrize(
    "message", ["mat1 and mat2 shapes cannot be multiplied", "float64 is slow on MPS"]
)
def test_another_error_is_no_stop_reason(message):
    assert stop_of(error(message)) == ("", "")


@pytest.mark.parametrize(
    "message",
    [
        (
            "Could not run 'aten::empty.memory_format' with arguments from the 'MPS' "
            "backend. This could be because the operator doesn't exist for this backend"
        ),
        "PyTorch is not linked with support for mps devices",
        "Cannot execute deviceSynchronize() without MPS backend.",
        "torch.UntypedStorage(): Storage device not recognized: mps",
    ],
)
def test_mps_that_is_not_there_is_a_matter_of_the_platform(message):
    stop, detail = stop_of(error(message))
    assert stop == "platform"
    assert detail.startswith("the script names MPS, which is not here: ")
    assert "This could be" not in detail
    assert "train.py:7" in detail


def test_a_sparse_kernel_that_mps_lacks_is_no_matter_of_the_platform():
    text = "Could not run 'aten::x' with arguments from the 'SparseMPS' backend."
    assert stop_of(error(text)) == ("", "")


@pytest.mark.parametrize(
    "message",
    [
        "Torch not compiled with CUDA enabled",
        "Found no NVIDIA driver on your system. Please check that you have one",
        "The NVIDIA driver on your system is too old (found version 12080).",
        "No CUDA GPUs are available",
        "CUDA driver initialization failed, you might not have a CUDA gpu.",
        "CUDA error: no CUDA-capable device is detected",
        "Attempting to deserialize object on a CUDA device but torch.cuda has none",
        "Could not run 'aten::x' with arguments from the 'CUDA' backend.",
        "cuda.Event has no counterpart on mps: the run cannot be mapped from CUDA",
    ],
)
def test_what_only_cuda_has_is_a_stop_reason_with_its_place(message):
    stop, detail = stop_of(error(message))
    assert stop == "cuda_required"
    assert "train.py:7" in detail
