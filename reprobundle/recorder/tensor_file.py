"""Write tensors in the safetensors format, with what the user's interpreter has.

Source: the format description in the safetensors repository: an 8-byte little-endian
header length, a JSON header padded with blanks, then the data.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os

from .jsontext import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

_ALIGNMENT = 8
# Names that torch and numpy (with ml_dtypes) give to what the format can hold.
DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
}


class UnsupportedTensorError(Exception):
    """A tensor has no form in a tensor file."""


class Plain:
    """One tensor as the file holds it.

    Attributes:
        dtype: Code of the format.
        shape: Extent of each axis.
        data: Its bytes, row-major and little-endian.
        note: What was changed to get there; empty if nothing was.
    """

    def __init__(
        self, dtype: str, shape: tuple[int, ...], data: memoryview, note: str = ""
    ) -> None:
        self.dtype = dtype
        self.shape = shape
        self.data = data
        self.note = note


def write(
    path: str, tensors: Mapping[str, Plain], metadata: Mapping[str, str] | None = None
) -> None:
    """Write `tensors` to `path`; nothing half-written ever has that name.

    Args:
        path: Of the new file.
        tensors: By name, in the order of the file.
        metadata: Further texts; notes of changed tensors are added as
            ``changed.<name>``.
    """
    texts = dict(metadata or {})
    for name, tensor in tensors.items():
        if tensor.note:
            texts[f"changed.{name}"] = tensor.note
    temporary = f"{path}.{os.getpid()}.part"
    try:
        with open(temporary, "wb") as file:
            file.write(_header(tensors, texts))
            for tensor in tensors.values():
                file.write(tensor.data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def _header(tensors: Mapping[str, Plain], metadata: dict[str, str]) -> bytes:
    header: dict[str, object] = {"__metadata__": metadata} if metadata else {}
    offset = 0
    for name, tensor in tensors.items():
        end = offset + tensor.data.nbytes
        header[name] = {
            "dtype": tensor.dtype,
            "shape": tensor.shape,
            "data_offsets": (offset, end),
        }
        offset = end
    text = encode(header).encode("utf-8")
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


def plain_torch(torch: Any, tensor: Any) -> Plain:
    """Return a torch tensor as the file holds it.

    Sparse tensors become dense and quantised ones real numbers; complex128, which the
    format lacks, becomes float64 with a last axis of two.

    Raises:
        UnsupportedTensorError: The format has no such type.
    """
    tensor, note = _settled(torch, tensor)
    name = str(tensor.dtype).removeprefix("torch.")
    if name == "complex128":
        tensor = torch.view_as_real(tensor)
        name, note = "float64", _join(note, "complex128 as real and imaginary parts")
    code = DTYPES.get(name)
    if code is None:
        message = f"a tensor file cannot hold dtype {name}"
        raise UnsupportedTensorError(message)
    return Plain(
        code, tuple(int(n) for n in tensor.shape), _torch_bytes(torch, tensor), note
    )


def _settled(torch: Any, tensor: Any) -> tuple[Any, str]:
    note = ""
    value = tensor.detach()
    if hasattr(value, "full_tensor"):
        # A distributed tensor: gathering would need the other ranks.
        value, note = value.to_local(), "the local part of a distributed tensor"
    if value.layout != torch.strided:
        value, note = value.to_dense(), _join(note, f"dense form of {value.layout}")
    if value.is_quantized:
        value, note = value.dequantize(), _join(note, f"real values of {value.dtype}")
    value = value.to("cpu").resolve_conj().resolve_neg().contiguous()
    return value, note


def _torch_bytes(torch: Any, tensor: Any) -> memoryview:
    """Return the bytes of a contiguous CPU tensor, without numpy."""
    import ctypes

    size = tensor.numel() * tensor.element_size()
    if size == 0:
        return memoryview(b"")
    place = tensor.data_ptr()
    if place == 0:
        message = "the tensor has no memory of its own"
        raise UnsupportedTensorError(message)
    view = (ctypes.c_ubyte * size).from_address(place)
    # The array does not own the memory; the tensor must live as long as it.
    view._tensor = tensor
    return memoryview(view).cast("B")


def plain_numpy(numpy: Any, array: Any) -> Plain:
    """Return a numpy array as the file holds it.

    Raises:
        UnsupportedTensorError: The format has no such type.
    """
    note = ""
    shape = tuple(array.shape)
    if array.dtype.kind in "mM":
        note = f"{array.dtype.str} as int64"
        array = (
            array.view("int64") if array.flags.c_contiguous else array.astype("int64")
        )
    if array.dtype.name == "complex128":
        array = numpy.ascontiguousarray(array).reshape(*shape, 1).view("float64")
        shape, note = (*shape, 2), "complex128 as real and imaginary parts"
    code = DTYPES.get(array.dtype.name)
    if code is None:
        message = f"a tensor file cannot hold dtype {array.dtype}"
        raise UnsupportedTensorError(message)
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    flat = numpy.ascontiguousarray(little).reshape(-1)
    data = memoryview(flat.view("uint8")) if flat.size else memoryview(b"")
    return Plain(code, shape, data, note)


def _join(*notes: str) -> str:
    return "; ".join(note for note in notes if note)


def flat_names(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of nested mappings and sequences with dotted names."""
    items: Iterable[tuple[Any, Any]]
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    else:
        yield prefix or "value", value
        return
    for key, item in items:
        yield from flat_names(item, f"{prefix}.{key}" if prefix else str(key))
