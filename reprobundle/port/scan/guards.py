"""Which conditions leave a path without CUDA, read from the syntax alone."""

from __future__ import annotations

import ast
import re

from reprobundle.port.scan.packages import imported

# A flag by its name: use_cuda, HAS_TRITON, is_flash_attn_2_available, args.distributed.
_FLAG = re.compile(
    r"(^|_)(no_)?(cuda|gpu|gpus|nccl|triton|flash|flash_attn|xformers|apex|deepspeed|horovod|"
    r"bnb|bitsandbytes|fused|distributed|ddp|world_size|n_gpu|local_rank|tensorrt|nvml|"
    r"nvtx|multi_gpu|multi_device|torch_scatter|is_available|is_initialized|fsdp|megatron)(_|$)",
    re.IGNORECASE,
)
# is_megatron_lm_available, HAS_APEX: a question about a package.
_HAS_PACKAGE = re.compile(
    r"^_?(?:(?:is_)?(?P<one>\w+?)_(?:is_)?(?:available|installed)"
    r"|(?:has|have|with)_(?P<other>\w+))$",
    re.IGNORECASE,
)
_RANK = re.compile(r"(^|_)RANK$|^WORLD_SIZE$")
_NONE_OF_THEM = frozenset({"NO", "NONE", "SINGLE", "CPU"})
_NEGATIVE = re.compile(r"(^|_)(no|without|disable|skip)_|cpu_only|on_cpu|is_mac|mps")
_NAMES_CUDA = re.compile(
    r"^(cuda|nccl|gpu|linux|triton|flash\w*)(:\d*)?$", re.IGNORECASE
)
_NOT_CUDA = re.compile(r"^(cpu|mps|darwin|auto|gloo)$", re.IGNORECASE)
_EXITS = frozenset({"sys.exit", "exit", "quit"})
_IMPORT_ERRORS = frozenset(
    {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
)


def needs_cuda(test: ast.expr, flags: frozenset[str]) -> bool | None:
    """Return what `test` says of CUDA.

    Args:
        test: A condition.
        flags: Names known to hold such an answer.

    Returns:
        True where it holds only with CUDA (or the package it is about), False where
        it holds only without, None where it says neither.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _negated(test.operand, flags)
    if isinstance(test, ast.BoolOp):
        return _joined(test, flags)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(test, flags)
    if isinstance(test, ast.Call):
        return _called(test, flags)
    return _named(test, flags)


def without(test: ast.expr) -> ast.expr:
    """Return the condition under which `test` does not hold."""
    return ast.UnaryOp(ast.Not(), test)


def _negated(inner: ast.expr, flags: frozenset[str]) -> bool | None:
    if isinstance(inner, ast.BoolOp):
        other = ast.Or() if isinstance(inner.op, ast.And) else ast.And()
        return _joined(ast.BoolOp(other, [without(v) for v in inner.values]), flags)
    found = needs_cuda(inner, flags)
    return None if found is None else not found


def _joined(test: ast.BoolOp, flags: frozenset[str]) -> bool | None:
    found = [needs_cuda(value, flags) for value in test.values]
    # "a and b" implies both; "a or b" implies what each of them does.
    if isinstance(test.op, ast.And):
        return True if True in found else False if False in found else None
    return found[0] if len(set(found)) == 1 else None


def _compared(test: ast.Compare, flags: frozenset[str]) -> bool | None:
    operator, right = test.ops[0], test.comparators[0]
    if isinstance(right, ast.Constant) and right.value is None:
        found = _named(test.left, flags)
        negated = isinstance(operator, (ast.Is, ast.Eq))
        return None if found is None else found is not negated
    texts = [
        side.value
        for side in (test.left, right)
        if isinstance(side, ast.Constant) and isinstance(side.value, str)
    ]
    equal = isinstance(operator, (ast.Eq, ast.Is, ast.In))
    left = ast.unparse(test.left).lower()
    if texts and "env" in left and "cuda" in left:
        return equal
    if _asks_launcher(test.left):
        # != -1, > 1, == "true": what a launcher of several processes sets.
        is_more = isinstance(operator, (ast.Gt, ast.GtE, ast.NotEq, ast.NotIn))
        return True if is_more or (equal and texts and texts[0] != "0") else None
    if texts and isinstance(operator, (ast.Eq, ast.In, ast.NotEq, ast.NotIn, ast.Is)):
        option = isinstance(operator, ast.In) and "cuda" in texts[0].lower()
        if option or _NAMES_CUDA.match(texts[0]):
            return equal
        # "not the CPU" may be MPS; "is the CPU" is no CUDA for certain.
        return False if _NOT_CUDA.match(texts[0]) and equal else None
    chosen = _chosen(test.left, right)
    if chosen is not None and isinstance(operator, (ast.NotEq, ast.NotIn, ast.IsNot)):
        return not chosen
    if chosen is not None and equal:
        return chosen
    if isinstance(operator, (ast.Gt, ast.GtE, ast.NotEq)):
        return needs_cuda(test.left, flags)
    if _holds_at_none(operator, right) and "device_count" in left:
        found = needs_cuda(test.left, flags)
        return None if found is None else not found
    return None


def _holds_at_none(operator: ast.cmpop, right: ast.expr) -> bool:
    """Tell whether a comparison holds for no GPU: ``== 0``, ``< 2``."""
    number = right.value if isinstance(right, ast.Constant) else None
    if not isinstance(number, int):
        return False
    return (
        (isinstance(operator, ast.Eq) and number == 0)
        or (isinstance(operator, ast.Lt) and number > 0)
        or isinstance(operator, ast.LtE)
    )


def _asks_launcher(node: ast.expr) -> bool:
    """Tell whether it reads a variable of a launcher, such as ``LOCAL_RANK``."""
    if "env" not in ast.unparse(node).lower():
        return False
    names = [
        one.value
        for one in ast.walk(node)
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    ]
    return any(_FLAG.search(name) or _RANK.search(name) for name in names)


def _chosen(left: ast.expr, right: ast.expr) -> bool | None:
    """Return what it says of CUDA that `left` is, or is among, members of an enum.

    Such as ``self.distributed_type == DistributedType.MULTI_GPU``.
    """
    members = (
        right.elts if isinstance(right, (ast.Tuple, ast.List, ast.Set)) else [right]
    )
    names = [one.attr for one in members if isinstance(one, ast.Attribute)]
    if not names or len(names) < len(members):
        return None
    is_about = _named(left, frozenset()) is True
    if is_about and _NONE_OF_THEM.issuperset(names):
        return False
    all_flags = all(_FLAG.search(name) for name in names)
    return True if is_about or all_flags else None


def _called(test: ast.Call, flags: frozenset[str]) -> bool | None:
    name = ast.unparse(test.func)
    if name.endswith(("find_spec", "which")) and test.args:
        return True
    if name.endswith(".startswith") and test.args:
        first = test.args[0]
        text = str(first.value).rstrip(".") if isinstance(first, ast.Constant) else ""
        if _NAMES_CUDA.match(text) or _FLAG.search(text):
            return True
    if name in {"bool", "int", "any", "all"} and test.args:
        return needs_cuda(test.args[0], flags)
    return _named(test.func, flags)


def _named(test: ast.expr, flags: frozenset[str]) -> bool | None:
    if not isinstance(test, (ast.Name, ast.Attribute)):
        return None
    whole = ast.unparse(test)
    last = whole.rpartition(".")[2]
    if last == "TYPE_CHECKING":
        # Never true in a run: what stands behind it is kept away anywhere.
        return True
    if whole in flags:
        return True
    if "mps" in whole:
        return False if last == "is_available" else None
    if last in {"is_available", "is_initialized", "device_count"}:
        asked = ("cuda", "distributed", "dist", "nccl", "flash", "triton")
        return True if any(part in whole for part in asked) else None
    if _FLAG.search(last) or _asks_for_package(last):
        return not _NEGATIVE.search(last)
    return None


def _asks_for_package(name: str) -> bool:
    """Tell whether a name asks for a package that `scan` knows, by its first words."""
    found = _HAS_PACKAGE.match(name)
    if found is None:
        return False
    words = (found["one"] or found["other"]).lower().split("_")
    starts = ("_".join(words[:end]) for end in range(len(words), 0, -1))
    return any(imported(one) is not None for one in starts)


def names_cuda(test: ast.expr) -> bool:
    """Whether a condition has the word in it."""
    return "cuda" in ast.unparse(test)


def catches_import(node: ast.Try) -> bool:
    """Whether a missing module is survived: caught, and not raised again."""
    for handler in node.handlers:
        names = _caught(handler)
        if names & _IMPORT_ERRORS or not names:
            return not leaves(handler.body, raising=True)
    return False


def _caught(handler: ast.ExceptHandler) -> set[str]:
    if handler.type is None:
        return set()
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {ast.unparse(kind).rpartition(".")[2] for kind in kinds}


def leaves(body: list[ast.stmt], *, raising: bool) -> bool:
    """Whether a block always ends the program (or, not `raising`, the block around)."""
    for statement in body:
        if isinstance(statement, ast.Raise):
            return raising
        called = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(called, ast.Call) and ast.unparse(called.func) in _EXITS:
            return raising
        if isinstance(statement, (ast.Return, ast.Continue, ast.Break)):
            return not raising
    return False
