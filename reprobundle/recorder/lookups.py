"""Compare the indices that an operator is given with the table they look into.

On the CPU and on CUDA an index out of range raises; on MPS it reads zeros or writes
nowhere (pytorch issues 144824, 123119, 154235), so nothing but its value tells.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Named = dict[str, Any]


class Lookup(NamedTuple):
    """Indices, and the number of rows they may name.

    Attributes:
        indices: Whole numbers.
        size: Rows of the table.
        lowest: Smallest index that is meant: ``-size`` where counting from the end is.
    """

    indices: Any
    size: int
    lowest: int


def lookups(operator: Any, arguments: Any, named: Named) -> Iterator[Lookup]:
    """Yield what an operator looks up; nothing for one that looks nothing up.

    Args:
        operator: A ``torch._ops.OpOverload``.
        arguments: Positional arguments, in the order of its schema.
        named: Those given by name.
    """
    find = _FINDERS.get(operator._schema.name)
    if find is None:
        return
    names = [argument.name for argument in operator._schema.arguments]
    yield from find({**dict(zip(names, arguments, strict=False)), **named})


def _rows(table: Any, dimension: int) -> int:
    return int(table.shape[dimension]) if table.dim() else 1


def _embedding(given: Named) -> Iterator[Lookup]:
    yield Lookup(given["indices"], _rows(given["weight"], 0), 0)


def _along_dimension(given: Named) -> Iterator[Lookup]:
    yield Lookup(given["index"], _rows(given["self"], given["dim"]), 0)


def _taken(given: Named) -> Iterator[Lookup]:
    size = given["self"].numel()
    yield Lookup(given["index"], size, -size)


def _advanced(given: Named) -> Iterator[Lookup]:
    table, dimension = given["self"], 0
    for indices in given["indices"]:
        if indices is None:
            dimension += 1
        elif indices.is_floating_point() or indices.element_size() == 1:
            # A mask takes as many dimensions as it has, and cannot be out of range.
            dimension += indices.dim()
        else:
            size = _rows(table, dimension)
            yield Lookup(indices, size, -size)
            dimension += 1


def _classes(given: Named) -> Iterator[Lookup]:
    scores, target = given["self"], given["target"]
    size = _rows(scores, 1 if scores.dim() > 1 else 0)
    ignored = given.get("ignore_index", -100)
    yield Lookup(target[target != ignored], size, 0)


_FINDERS: dict[str, Callable[[Named], Iterator[Lookup]]] = {
    "aten::embedding": _embedding,
    "aten::_embedding_bag": _embedding,
    "aten::_embedding_bag_forward_only": _embedding,
    "aten::take": _taken,
    "aten::put": _taken,
    "aten::put_": _taken,
    "aten::index": _advanced,
    "aten::index_put": _advanced,
    "aten::index_put_": _advanced,
    "aten::_index_put_impl_": _advanced,
    "aten::nll_loss_forward": _classes,
    "aten::nll_loss2d_forward": _classes,
    **{
        f"aten::{name}{mark}": _along_dimension
        for name in (
            *("gather", "index_select", "scatter", "scatter_add", "scatter_reduce"),
            *("index_add", "index_copy", "index_fill", "index_reduce"),
        )
        for mark in ("", "_")
    },
}
