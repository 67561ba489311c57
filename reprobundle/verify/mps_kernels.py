"""Kernels of MPS that leave for the CPU, are wrong for a layout, or refuse a size.

All depend on dtypes, sizes and strides, which an evidence pass records for the few
operators concerned (`OperatorForm`), and on the version of torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from reprobundle.format.record import OperatorForm, TensorForm

Version = tuple[int, int]
Predicate = Callable[[OperatorForm], bool]

_INT32_ELEMENTS = 2**31
_LARGE_K = 32_767
_QR_LIMIT = 512


class Kernel(NamedTuple):
    """What is known about one kernel in some versions of torch.

    Attributes:
        operators: Names without namespace and overload.
        first, last: Versions it holds for, both included.
        applies: Whether a form is concerned.
        certain: Whether every such call is; else it depends on what is not recorded.
        text: What happens.
        source: Where that is known from.
    """

    operators: tuple[str, ...]
    first: Version
    last: Version
    applies: Predicate
    certain: bool
    text: str
    source: str

    def matching(
        self, forms: Iterable[OperatorForm], version: Version
    ) -> tuple[OperatorForm, ...]:
        """Return the forms that this is about."""
        if not self.first <= version <= self.last:
            return ()
        return tuple(
            form
            for form in forms
            if operator_of(form) in self.operators
            and form.tensors
            and all(map(_is_strided, form.tensors))
            and self.applies(form)
        )


def operator_of(form: OperatorForm) -> str:
    """Return the name of an operator without namespace and overload."""
    return form.operator.removeprefix("aten.").partition(".")[0]


def _is_strided(tensor: TensorForm) -> bool:
    """Tell whether a tensor has strides; a sparse one goes to another kernel."""
    return len(tensor.shape) == len(tensor.stride)


def _always(form: OperatorForm) -> bool:
    return True


def _integer_with_divisor(form: OperatorForm) -> bool:
    return form.tensors[0].dtype == "int64" and "divisor_override" in form.options


def _complex(form: OperatorForm) -> bool:
    return form.tensors[0].dtype.startswith("complex")


def _beyond_qr_limit(form: OperatorForm) -> bool:
    return min(form.tensors[0].shape[-2:]) > _QR_LIMIT


def _is_row_major(tensor: TensorForm) -> bool:
    expected = 1
    for extent, stride in reversed(list(zip(tensor.shape, tensor.stride, strict=True))):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


def _has_gaps(tensor: TensorForm) -> bool:
    """Whether elements of other tensors lie between those of a view."""
    axes = [(s, e) for e, s in zip(tensor.shape, tensor.stride, strict=True) if e != 1]
    expected = 1
    for stride, extent in sorted(axes):
        if stride != expected:
            return True
        expected *= extent
    return False


def _is_expanded(tensor: TensorForm) -> bool:
    """Whether one element stands for several."""
    pairs = zip(tensor.shape, tensor.stride, strict=True)
    return any(extent > 1 and stride == 0 for extent, stride in pairs)


def _weight_with_gaps(form: OperatorForm) -> bool:
    if len(form.tensors) < 2:
        return False
    weight = form.tensors[1]
    return _has_gaps(weight) and not _is_expanded(weight)


def _weight_expanded(form: OperatorForm) -> bool:
    return len(form.tensors) > 1 and _is_expanded(form.tensors[1])


def _channels_slice(form: OperatorForm) -> bool:
    given = form.tensors[0]
    return len(given.shape) == 4 and given.stride[1] == 1 and _has_gaps(given)


def _input_not_row_major(form: OperatorForm) -> bool:
    given = form.tensors[1] if len(form.tensors) > 1 else form.tensors[0]
    return len(given.shape) >= 4 and not _is_row_major(given)


def _indivisible_pool(form: OperatorForm) -> bool:
    """Whether the extents of a pool's input and output do not divide evenly."""
    wanted = form.options.get("output_size", "").split(",")
    given = form.tensors[0].shape[-2:]
    if len(given) != 2 or len(wanted) != 2 or not all(map(str.isdigit, wanted)):
        return False
    pairs = [(extent, int(text)) for extent, text in zip(given, wanted, strict=True)]
    if any(out == 0 or extent == 0 for extent, out in pairs):
        return False
    shrinks = all(extent % out == 0 for extent, out in pairs)
    grows = all(out % extent == 0 for extent, out in pairs)
    return not (shrinks or grows)


def _table_too_large(form: OperatorForm) -> bool:
    elements = 1
    for extent in form.tensors[0].shape:
        elements *= extent
    return elements > _INT32_ELEMENTS


def _factors(form: OperatorForm) -> tuple[TensorForm, TensorForm]:
    """Return the two factors of a product; what is added comes before them."""
    return form.tensors[-2], form.tensors[-1]


def _left_transposed(form: OperatorForm) -> bool:
    if len(form.tensors) < 2:
        return False
    left, _ = _factors(form)
    return left.dtype == "float32" and not _is_row_major(left)


def _large_inner(form: OperatorForm) -> bool:
    if len(form.tensors) < 2:
        return False
    left, right = _factors(form)
    outer = min(left.shape[-2], right.shape[-1])
    return left.shape[-1] >= _LARGE_K and outer >= 16


_BINARIES = "texts in the release binaries of torch for macOS"
_ISSUE = "github.com/pytorch/pytorch/issues/"
_FIRST, _LAST = (2, 9), (2, 15)

DETOURS = (
    Kernel(
        ("avg_pool2d",),
        _FIRST,
        _LAST,
        _integer_with_divisor,
        certain=True,
        text="int64 input with a divisor is pooled on the CPU",
        source=_BINARIES,
    ),
    Kernel(
        ("nonzero",),
        (2, 9),
        (2, 9),
        _complex,
        certain=True,
        text="complex input is searched on the CPU",
        source=_BINARIES,
    ),
    Kernel(
        ("nonzero",),
        (2, 9),
        (2, 9),
        lambda form: not _complex(form),
        certain=False,
        text="on macOS 14 it runs on the CPU",
        source=_BINARIES,
    ),
    Kernel(
        ("linalg_qr",),
        (2, 12),
        (2, 13),
        _beyond_qr_limit,
        certain=True,
        text=f"more than {_QR_LIMIT} rows and columns are factored on the CPU",
        source=_BINARIES,
    ),
    Kernel(
        ("_linalg_svd", "_linalg_eigh"),
        (2, 14),
        (2, 15),
        _always,
        certain=False,
        text="a matrix too large for threadgroup memory is factored on the CPU; the "
        "limit is not known",
        source=_BINARIES,
    ),
)

FAULTS = (
    Kernel(
        ("convolution", "convolution_overrideable"),
        (2, 9),
        (2, 13),
        _weight_with_gaps,
        certain=True,
        text="the weight is a slice, and is read as if it were contiguous (macOS 15 "
        "and later)",
        source=f"{_ISSUE}192212",
    ),
    Kernel(
        ("convolution", "convolution_overrideable"),
        _FIRST,
        (2, 13),
        _weight_expanded,
        certain=False,
        text="the weight is expanded, and one that is a slice is read as if it were "
        "contiguous",
        source=f"{_ISSUE}192212",
    ),
    Kernel(
        ("convolution", "convolution_overrideable"),
        (2, 9),
        (2, 11),
        _channels_slice,
        certain=True,
        text="the input is a slice of channels of a channels_last tensor, and is read "
        "as if it were packed",
        source=f"{_ISSUE}180984",
    ),
    Kernel(
        ("native_batch_norm_backward",),
        (2, 9),
        (2, 13),
        _input_not_row_major,
        certain=True,
        text="the input is channels_last or not contiguous, and gradients are wrong",
        source=f"{_ISSUE}175189",
    ),
    Kernel(
        ("embedding", "index_select"),
        (2, 9),
        (2, 13),
        _table_too_large,
        certain=True,
        text="the table has more than 2**31 elements, and rows are read as zeros",
        source=f"{_ISSUE}188756",
    ),
    Kernel(
        ("mm", "addmm", "bmm", "baddbmm"),
        (2, 9),
        (2, 13),
        _left_transposed,
        certain=False,
        text="a transposed left factor in float32 is misread in some states of the "
        "allocator",
        source=f"{_ISSUE}193487",
    ),
    Kernel(
        ("bmm", "baddbmm"),
        _FIRST,
        _LAST,
        _large_inner,
        certain=False,
        text=f"products over {_LARGE_K:,} and more are wrong on M1 and M2",
        source=f"{_ISSUE}195163",
    ),
)

_POOLS = ("_adaptive_avg_pool2d", "adaptive_max_pool2d")
_REFUSES_POOL = (
    "an adaptive pool whose input size and output size do not divide evenly raises, "
    "also under the fallback variable"
)

REFUSALS = (
    Kernel(
        _POOLS,
        _FIRST,
        (2, 13),
        _indivisible_pool,
        certain=True,
        text=_REFUSES_POOL,
        source=f"{_ISSUE}96056",
    ),
    # Its text was read in binaries up to 2.13.
    Kernel(
        _POOLS,
        (2, 14),
        _LAST,
        _indivisible_pool,
        certain=False,
        text=_REFUSES_POOL,
        source=f"{_ISSUE}96056",
    ),
)


def watched() -> frozenset[str]:
    """Return every operator whose forms are to be recorded."""
    return frozenset(
        f"aten::{name}"
        for one in (*DETOURS, *FAULTS, *REFUSALS)
        for name in one.operators
    )


def version_of(torch_version: object) -> Version | None:
    """Return ``(2, 13)`` for ``2.13.0+cpu``; None for what is no version."""
    parts = str(torch_version).partition("+")[0].split(".")
    if len(parts) < 2 or not (parts[0].isdigit() and parts[1].isdigit()):
        return None
    return int(parts[0]), int(parts[1])
