"""Keep the random numbers a run starts from in a file, and read them again.

It is a safetensors file. ``draw.<n>`` is the n-th draw of the main process, and the
file's metadata says under the same name which operator made it with which arguments;
``weights.<n>.<name>`` are the parameters and buffers of the n-th outermost module just
before its first call; ``batch.<n>.<m>`` is the m-th tensor of the n-th batch that a
data loader gave.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from . import tensor_file
from .jsontext import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMAT = "reprobundle/draws/1"


class Kept:
    """Tensors kept within a budget, in the order in which the run made them.

    Args:
        torch: The module.
        limit_bytes: Budget for their content.

    Attributes:
        full: Whether something did not fit; nothing is kept from then on, for the
            draws of a replay have to follow each other without a gap.
    """

    def __init__(self, torch: Any, limit_bytes: int) -> None:
        self._torch = torch
        self._left_bytes = limit_bytes
        self.tensors: dict[str, tensor_file.Plain] = {}
        self.labels: dict[str, str] = {}
        self.full = False

    def add(self, name: str, tensor: Any, label: str = "") -> None:
        """Keep a copy of `tensor` under `name`, if it fits."""
        size_bytes = tensor.numel() * tensor.element_size()
        if self.full or size_bytes > self._left_bytes:
            self.full = True
            return
        with self._torch.no_grad():
            copy = tensor.detach().to("cpu", copy=True)
            self.tensors[name] = tensor_file.plain_torch(self._torch, copy)
        self._left_bytes -= size_bytes
        if label:
            self.labels[name] = label

    def write(self, path: str) -> None:
        """Write all that was kept to `path`."""
        texts = {"format": FORMAT, "complete": str(not self.full).lower()}
        tensor_file.write(path, self.tensors, {**texts, **self.labels})


class Reference:
    """The kept tensors of the reference run.

    Args:
        torch: The module.
        path: The file.

    Attributes:
        tensors: By name.
        labels: What made each draw.
        complete: Whether the reference kept everything it drew.
    """

    def __init__(self, torch: Any, path: str) -> None:
        with open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header: dict[str, Any] = decode(file.read(size).decode("utf-8"))
            data = bytearray(file.read())
        self.labels: dict[str, str] = header.pop("__metadata__", {})
        if self.labels.get("format") != FORMAT:
            message = f"{path} does not hold draws of the form {FORMAT}"
            raise ValueError(message)
        self.complete = self.labels.get("complete") == "true"
        kinds = {code: name for name, code in tensor_file.DTYPES.items()}
        self.tensors = {
            name: _tensor(torch, entry, kinds[entry["dtype"]], data)
            for name, entry in header.items()
        }


def _tensor(torch: Any, entry: dict[str, Any], dtype: str, data: bytearray) -> Any:
    start, end = entry["data_offsets"]
    kind = getattr(torch, dtype)
    if start == end:
        return torch.empty(entry["shape"], dtype=kind, device="cpu")
    count = (end - start) // torch.empty((), dtype=kind, device="cpu").element_size()
    flat = torch.frombuffer(data, dtype=kind, count=count, offset=start)
    return flat.reshape(entry["shape"])
