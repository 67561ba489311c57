"""Forms of operators whose kernel on MPS leaves for the CPU or is known to be wrong."""

import msgspec
import pytest

from reprobundle.format.record import Fact, Fallback, OperatorForm, TensorForm
from reprobundle.recorder.operator_forms import WATCHED
from reprobundle.verify.mps_kernels import version_of, watched
from reprobundle.verify.mps_operators import _tables
from tests.verify.builder import ENVIRONMENT, WITNESSES, found, on

F32 = "float32"


def tensor(shape, stride=None, dtype=F32):
    strides: list[int] = []
    size = 1
    for extent in reversed(shape):
        strides.insert(0, size)
        size *= extent
    return TensorForm(dtype=dtype, shape=shape, stride=stride or tuple(strides))


def form(operator, *tensors, **options):
    return OperatorForm(
        operator=f"aten.{operator}.default",
        device="mps",
        tensors=tensors,
        options=options,
        where="{project}/train.py:7",
        count=4,
    )


def judged(bench, torch_version, *forms, **changes):
    bench.pack()
    environment = {**ENVIRONMENT, "torch.version": Fact(value=torch_version)}
    bench.replay(
        devices=on("mps", forms=forms, **changes),
        environment=environment,
        phases=(),
        platform="darwin",
    )
    report = bench.verify()
    return {
        name: found(report, name)[0] for name in ("in-kernel-detour", "known-mps-fault")
    }


@pytest.mark.parametrize(
    ("version", "called", "outcome"),
    [
        ("2.12.0", form("linalg_qr", tensor((600, 513))), "warn"),
        ("2.12.0", form("linalg_qr", tensor((600, 512))), "pass"),
        ("2.14.0", form("linalg_qr", tensor((600, 600))), "pass"),
        (
            "2.13.0",
            form(
                "avg_pool2d", tensor((1, 1, 4, 4), dtype="int64"), divisor_override="3"
            ),
            "warn",
        ),
        (
            "2.13.0",
            form("avg_pool2d", tensor((1, 1, 4, 4)), divisor_override="3"),
            "pass",
        ),
        ("2.9.1", form("nonzero", tensor((4,), dtype="complex64")), "warn"),
        ("2.10.0", form("nonzero", tensor((4,), dtype="complex64")), "pass"),
    ],
)
def test_a_detour_is_decided_by_size_dtype_and_version(bench, version, called, outcome):
    detour = judged(bench, version, called)["in-kernel-detour"]
    assert detour.outcome == outcome
    if outcome == "warn":
        assert "×4 at {project}/train.py:7" in detour.reason


SVD = form("_linalg_svd", tensor((900, 900)))


def test_a_detour_whose_limit_is_unknown_is_decided_by_its_warning(bench):
    detour = judged(bench, "2.14.0", SVD)["in-kernel-detour"]
    assert detour.outcome == "pass"
    assert "such a kernel warns, and none did" in detour.reason


def test_a_detour_that_nobody_could_hear_is_not_known(bench):
    deaf = tuple(
        msgspec.structs.replace(one, looked=one.name != "warnings") for one in WITNESSES
    )
    detour = judged(bench, "2.14.0", SVD, witnesses=deaf)["in-kernel-detour"]
    assert detour.outcome == "not-checked"


def test_a_detour_that_was_heard_is_a_warning(bench):
    text = "linalg.svd: matrix too large; falling back to CPU. (Triggered internally at"
    heard = Fallback(witness="warnings", operator=text, count=1)
    detour = judged(bench, "2.14.0", SVD, fallbacks=(heard,))["in-kernel-detour"]
    assert detour.outcome == "warn"


PACKED = tensor((2, 4, 8, 8))
CHANNELS_LAST = tensor((2, 4, 8, 8), (256, 1, 32, 4))
SLICED = tensor((2, 2, 8, 8), (256, 1, 32, 4))
WEIGHT = tensor((3, 4, 3, 3))
SLICED_WEIGHT = tensor((3, 4, 3, 3), (108, 27, 3, 1))
NORM = "native_batch_norm_backward"
CASES = {
    "weight sliced": ("2.13.0", form("convolution", PACKED, SLICED_WEIGHT), "192212"),
    "input sliced": ("2.11.0", form("convolution", SLICED, WEIGHT), "180984"),
    "norm": ("2.13.0", form(NORM, PACKED, CHANNELS_LAST), "175189"),
    "large table": ("2.13.0", form("embedding", tensor((1 << 20, 4096))), "188756"),
}
FINE = {
    "a sparse factor has no strides": (
        "2.13.0",
        form("mm", TensorForm(dtype=F32, shape=(4, 4), stride=()), tensor((4, 2))),
    ),
    "weight sliced": ("2.14.0", form("convolution", PACKED, SLICED_WEIGHT)),
    "channels_last": ("2.11.0", form("convolution", CHANNELS_LAST, WEIGHT)),
    "norm": ("2.13.0", form(NORM, PACKED, PACKED)),
    "table": ("2.13.0", form("embedding", tensor((1 << 19, 4096)))),
    "right transposed": (
        "2.13.0",
        form("addmm", tensor((2,)), tensor((8, 4)), tensor((4, 2), (1, 4))),
    ),
}
# Wrong only in some states of the allocator, or on some chips.
UNSURE = {
    "left transposed": (
        "2.13.0",
        form("mm", tensor((8, 4), (1, 8)), tensor((4, 2))),
        "193487",
    ),
    "weight expanded": (
        "2.13.0",
        form("convolution", PACKED, tensor((1, 4, 1, 1), (0, 0, 0, 0))),
        "192212",
    ),
    "long products": (
        "2.15.0",
        form("bmm", tensor((1, 16, 32767)), tensor((1, 32767, 16))),
        "195163",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_layout_known_to_be_wrong_is_named_with_its_source(bench, name):
    version, called, source = CASES[name]
    fault = judged(bench, version, called)["known-mps-fault"]
    assert fault.outcome == "warn"
    assert source in fault.reason


@pytest.mark.parametrize("name", FINE)
def test_a_layout_that_is_right_passes(bench, name):
    assert judged(bench, *FINE[name])["known-mps-fault"].outcome == "pass"


@pytest.mark.parametrize("name", UNSURE)
def test_what_depends_on_more_than_the_form_is_not_known(bench, name):
    version, called, source = UNSURE[name]
    fault = judged(bench, version, called)["known-mps-fault"]
    assert fault.outcome == "not-checked"
    assert source in fault.reason


def test_the_recorder_watches_the_operators_that_are_judged():
    assert watched() == WATCHED


def test_versions_are_read_as_they_are_written():
    assert version_of("2.13.0+cpu") == (2, 13)
    assert version_of("unknown") is None


def test_the_table_of_detours_and_the_conditions_name_the_same_operators():
    from reprobundle.verify.mps_kernels import DETOURS

    judged_here = {name for one in DETOURS for name in one.operators}
    assert judged_here == set(_tables()["2.13"].detours)
