"""Find the loops of a Python source, and what in them carries an autograd graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

Loop = ast.For | ast.AsyncFor | ast.While
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_OWN_SCOPE = (*_FUNCTIONS, ast.Lambda, ast.ClassDef)
_GRADIENT_FREE = frozenset({"no_grad", "inference_mode"})
# What has no graph any more: numbers, copies cut off from it, indices.
_CUTTING = frozenset(
    {
        "item",
        "detach",
        "detach_",
        "tolist",
        "numpy",
        "data",
        "argmax",
        "argmin",
        "argsort",
        "nonzero",
        "sign",
        "round",
        "int",
        "long",
        "bool",
        "eq",
        "size",
        "shape",
        "device",
        "dtype",
    }
)
# Functions of these modules pass the graph on; what any other does is not known.
_TORCH_MODULES = frozenset({"torch", "F", "functional"})


class Found(NamedTuple):
    """A loop that is trained or run with gradients, and what is inside it.

    Attributes:
        loop: The innermost loop around `nodes`.
        outer: The loops around that, innermost first.
        nodes: What is in `loop` itself, not in a loop or function inside.
    """

    loop: Loop
    outer: tuple[Loop, ...]
    nodes: tuple[ast.AST, ...]


def loops(tree: ast.AST) -> Iterator[Found]:
    """Yield every loop whose body keeps gradients."""
    yield from _loops(tree, (), gradient_free=False)


def _loops(
    node: ast.AST, outer: tuple[Loop, ...], *, gradient_free: bool
) -> Iterator[Found]:
    for child in ast.iter_child_nodes(node):
        free = gradient_free or _without_gradients(child)
        if isinstance(child, _LOOPS):
            if not free:
                yield Found(child, outer, tuple(_own(child)))
            yield from _loops(child, (child, *outer), gradient_free=free)
        elif isinstance(child, _OWN_SCOPE):
            yield from _loops(child, (), gradient_free=free)
        else:
            yield from _loops(child, outer, gradient_free=free)


def _without_gradients(node: ast.AST) -> bool:
    if isinstance(node, (ast.With, ast.AsyncWith)):
        opened = [item.context_expr for item in node.items]
        return any(last_name(one) in _GRADIENT_FREE for one in opened)
    if isinstance(node, _FUNCTIONS):
        return any(last_name(one) in _GRADIENT_FREE for one in node.decorator_list)
    return False


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes below `node` but those of loops, functions and gradient-free."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (*_LOOPS, *_OWN_SCOPE)) or _without_gradients(child):
            continue
        yield child
        yield from _own(child)


def everything(loop: Loop) -> Iterator[ast.AST]:
    """Yield all nodes of a loop, those of loops inside too, but of no function."""
    for child in ast.iter_child_nodes(loop):
        if not isinstance(child, _OWN_SCOPE):
            yield child
            yield from everything(child)  # type: ignore[arg-type]


def last_name(node: ast.AST) -> str:
    """Return ``backward`` for ``a.b.backward``, for its call, and for the bare name."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def backward_names(nodes: Iterator[ast.AST] | tuple[ast.AST, ...]) -> set[str]:
    """Return the names in all calls of ``backward``: ``(loss / 4).backward()``."""
    return {
        part.id
        for node in nodes
        if isinstance(node, ast.Call) and last_name(node) == "backward"
        for part in ast.walk(node)
        if isinstance(part, ast.Name)
    }


def assigned_names(target: ast.AST) -> set[str]:
    """Return the names that an assignment to `target` binds."""
    return {
        part.id
        for part in ast.walk(target)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }


def carries(node: ast.AST, names: set[str], models: frozenset[str]) -> bool:
    """Tell whether the value of `node` holds on to the graph of one of `names`.

    Args:
        node: An expression.
        names: Variables with a graph.
        models: Texts of the expressions that are models: calling one makes a graph.
    """
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, (ast.Tuple, ast.List)):
        return any(carries(one, names, models) for one in node.elts)
    if isinstance(node, ast.Dict):
        return any(carries(one, names, models) for one in node.values)
    if isinstance(node, ast.BinOp):
        return any(carries(one, names, models) for one in (node.left, node.right))
    if isinstance(node, ast.UnaryOp):
        return carries(node.operand, names, models)
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        cut = isinstance(node, ast.Attribute) and node.attr in _CUTTING
        return not cut and carries(node.value, names, models)
    return isinstance(node, ast.Call) and _call_carries(node, names, models)


def _call_carries(call: ast.Call, names: set[str], models: frozenset[str]) -> bool:
    if last_name(call) in _CUTTING:
        return False
    if ast.unparse(call.func) in models:
        return True
    if isinstance(call.func, ast.Attribute):
        if last_name(call.func.value) in _TORCH_MODULES:
            return any(carries(one, names, models) for one in call.args)
        return carries(call.func.value, names, models)
    return False
