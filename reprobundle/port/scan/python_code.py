"""What Python code asks of CUDA, by its syntax tree; nothing is imported or run.

A walk in reading order keeps the guards it stands behind. A place behind a guard is
reported as guarded, with the guard's own words; one that runs in any case is a blocker.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from reprobundle.format.scan_report import ScanFinding
from reprobundle.port.scan.callers import bare
from reprobundle.port.scan.calls import Call, calls_in_any_case
from reprobundle.port.scan.guards import (
    catches_import,
    leaves,
    names_cuda,
    needs_cuda,
    without,
)
from reprobundle.port.scan.python_findings import (
    Import,
    PythonFindings,
    Waiting,
    is_cuda,
    is_true,
    parts,
    text,
)
from reprobundle.port.scan.sources import Source

_DEVICE_WORDS = frozenset(
    {"device", "map_location", "device_map", "dev", "accelerator"}
)
_TAKES_DEVICE = frozenset({"to", "device", "tensor", "set_default_device", "Generator"})
_REQUIREMENTS = frozenset({"install_requires", "setup_requires"})
_ATTENTION = frozenset({"flash_attention_2", "flash_attention_3"})
# Look something up, and give the second argument where there is nothing.
_WITH_DEFAULT = frozenset({"get", "getenv", "pop", "setdefault", "getattr"})
_TYPE_CALLS = frozenset({"type", "set_default_tensor_type"})
_STRATEGY = re.compile(r"^(ddp|fsdp|deepspeed)(_\w+)?$")
_GPU_COUNTS = frozenset({"gpus", "n_gpus", "num_gpus", "n_gpu"})


class PythonRead(NamedTuple):
    """What was read in one source.

    Attributes:
        findings: Places that need CUDA.
        imports: What it imports.
        waiting: Blockers inside a function that the file never calls in any case.
        calls: Functions of other files that it calls in any case.
        reason: Why it could not be read; empty if it could.
    """

    findings: list[ScanFinding]
    imports: list[Import]
    waiting: Sequence[Waiting] = ()
    calls: Sequence[Call] = ()
    reason: str = ""


def scan_python(source: Source) -> PythonRead:
    """Return what one source asks of CUDA and what it imports."""
    try:
        tree = ast.parse(source.text)
        walk = _Walk(source)
        walk.visit(tree)
        walk.finish()
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = f"no Python 3 that can be parsed: {type(error).__name__}"
        return PythonRead([], [], reason=reason)
    calls = calls_in_any_case(tree, source.path)
    return PythonRead(walk.findings, walk.imports, walk.waiting, calls)


class _Walk(PythonFindings, ast.NodeVisitor):
    """Collect findings of one file."""

    # Guards.

    @contextmanager
    def _behind(self, guard: str) -> Iterator[None]:
        self._guards.append(guard)
        try:
            yield
        finally:
            self._guards.pop()

    def _block(self, body: list[ast.stmt]) -> None:
        """Walk statements; one that leaves without CUDA guards those after it."""
        pushed = 0
        for statement in body:
            self.visit(statement)
            if isinstance(statement, ast.If) and not statement.orelse:
                rest = needs_cuda(without(statement.test), self._flags)
                if rest is True and leaves(statement.body, raising=False):
                    self._guards.append(f"after line {statement.lineno}")
                    pushed += 1
        del self._guards[len(self._guards) - pushed :]

    def _branch(self, test: ast.expr, body: object, other: object) -> None:
        answer = self._ask(test)
        self.visit(test)
        words = f"if {ast.unparse(test)}"
        opposite = needs_cuda(without(test), self._flags)
        for part, behind in ((body, answer is True), (other, opposite is True)):
            if behind:
                with self._behind(words):
                    self._part(part)
            else:
                self._part(part)

    def _ask(self, test: ast.expr) -> bool | None:
        """Return what a condition says of CUDA; a name that is set says nothing."""
        if isinstance(test, ast.Name) and test.id in self._set:
            return None
        return needs_cuda(test, self._flags)

    def _part(self, part: object) -> None:
        if isinstance(part, list):
            self._block(part)
        elif isinstance(part, ast.AST):
            self.visit(part)

    def visit_Module(self, node: ast.Module) -> None:
        self._block(node.body)

    def visit_If(self, node: ast.If) -> None:
        demanded = needs_cuda(node.test, self._flags) is False
        if demanded and names_cuda(node.test) and leaves(node.body, raising=True):
            self._demand(node.lineno, "ends where there is no CUDA")
        self._branch(node.test, node.body, node.orelse)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._branch(node.test, node.body, node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        first, *rest = node.values
        if isinstance(node.op, ast.Or) and is_cuda(rest[-1]):
            because = "stands where nothing else was said"
            self._device(rest.pop(), "setting", because)
        self.visit(first)
        answer = self._ask(first)
        is_guard = answer is isinstance(node.op, ast.And) and answer is not None
        for value in rest:
            if is_guard:
                with self._behind(ast.unparse(first)):
                    self.visit(value)
            else:
                self.visit(value)

    def visit_Try(self, node: ast.Try) -> None:
        if catches_import(node):
            with self._behind(f"try, line {node.lineno}"):
                self._block(node.body)
        else:
            self._block(node.body)
        for handler in node.handlers:
            self._block(handler.body)
        self._block(node.orelse)
        self._block(node.finalbody)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            self.visit(item.context_expr)
        words = " ".join(ast.unparse(item.context_expr) for item in node.items)
        if "suppress" in words and "Import" in words:
            with self._behind(words):
                self._block(node.body)
        else:
            self._block(node.body)

    def visit_Match(self, node: ast.Match) -> None:
        for case in node.cases:
            words = ast.unparse(case.pattern)
            if re.search(r"['\"](cuda|gpu|nccl)", words):
                with self._behind(f"case {words}"):
                    self._block(case.body)
            else:
                self._block(case.body)

    def visit_Assert(self, node: ast.Assert) -> None:
        if needs_cuda(node.test, self._flags) is True and names_cuda(node.test):
            self._demand(node.lineno, "asserts that there is CUDA")
        else:
            self.visit(node.test)

    # Scopes.

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._defaults(node.args)
        decorators = " ".join(ast.unparse(one) for one in node.decorator_list)
        for decorator in node.decorator_list:
            self._dotted_use(decorator)
            self.visit(decorator)
        owner = f"{self._class}." if self._class else ""
        around, self._class = self._class, ""
        self._functions.append(owner + node.name)
        guards, flags, texts = self._guards, self._flags, self._texts
        mine = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
        self._texts = {name: text for name, text in texts.items() if name not in mine}
        # A guard around the definition is one of its body as well.
        self._guards = list(guards)
        if re.search(r"skip|require_(cuda|gpu)|requires_cuda", decorators):
            self._guards.append("decorator")
        self._block(node.body)
        self._guards, self._flags, self._texts = guards, flags, texts
        self._functions.pop()
        self._class = around

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        own = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
        self._callers.add_class(node)
        around = self._own_methods, self._class
        self._own_methods, self._class = own, node.name
        self._block(node.body)
        self._own_methods, self._class = around

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        self._block([*node.body, *node.orelse])

    def visit_While(self, node: ast.While) -> None:
        self._branch(node.test, node.body, node.orelse)

    def _defaults(self, arguments: ast.arguments) -> None:
        for default in [*arguments.defaults, *arguments.kw_defaults]:
            if default is not None and any(map(is_cuda, parts(default))):
                because = "is a default that a caller can change"
                self._device(default, "setting", because)
            elif default is not None:
                self.visit(default)

    # Names.

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self._names[alias.asname or top] = alias.name if alias.asname else top
            self._remember(node.lineno, alias.name)
            self._import(node.lineno, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = "." * node.level + (node.module or "")
        self._remember(node.lineno, base)
        for alias in node.names:
            joined = base if base.endswith(".") else f"{base}."
            self._remember(node.lineno, joined + alias.name)
        if node.level or not node.module:
            return
        found = self._import(node.lineno, node.module)
        for alias in node.names:
            dotted = f"{node.module}.{alias.name}"
            self._names[alias.asname or alias.name] = dotted
            if not found:
                self._import(node.lineno, dotted)

    def visit_Assign(self, node: ast.Assign) -> None:
        targets = [ast.unparse(target) for target in node.targets]
        answer = needs_cuda(node.value, self._flags)
        self._flags = self._flags - set(targets)
        if answer is True:
            self._flags |= set(targets)
        self._set = self._set - set(targets)
        if is_true(node.value) and not self._guards and not self._functions:
            self._set |= set(targets)
        first, value = node.targets[0], node.value
        if (
            isinstance(first, ast.Tuple)
            and isinstance(value, ast.Tuple)
            and len(first.elts) == len(value.elts)
        ):
            for one, given in zip(first.elts, value.elts, strict=True):
                self._given([ast.unparse(one)], given)
        else:
            self._given(targets, value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        if node.value is None:
            return
        if self._class and is_cuda(node.value):
            because = "is a default that a caller can change"
            self._device(node.value, "setting", because)
        else:
            self._given([ast.unparse(node.target)], node.value)

    def _given(self, targets: list[str], value: ast.expr) -> None:
        """Note what names are given."""
        last = targets[0].rpartition(".")[2].lower()
        cuda = is_cuda(value)
        if cuda and last.strip("_") in _DEVICE_WORDS:
            self._device(value, "blocker", "names CUDA outright")
        elif last == "attn_implementation" and text(value) in _ATTENTION:
            self._attention(value)
        else:
            self.visit(value)
            for target in targets:
                # Told where it is used; a name that is told already is not told twice.
                self._texts[target] = cuda and not self._guards
            return
        for target in targets:
            self._texts[target] = False

    def _names_cuda(self, node: ast.expr) -> bool:
        """Whether it is CUDA's name, or a name that was given it."""
        named = isinstance(node, (ast.Name, ast.Attribute))
        return is_cuda(node) or (named and self._texts.get(ast.unparse(node), False))

    def visit_Dict(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            is_device = key is not None and text(key).lower() in _DEVICE_WORDS
            if is_device and is_cuda(value):
                self._device(value, "blocker", "names CUDA outright")
            elif key is not None:
                self.visit(key)
                self.visit(value)
            else:
                self.visit(value)

    # Calls.

    def visit_Call(self, node: ast.Call) -> None:
        if not self._guards:
            self._callers.add(bare(ast.unparse(node.func)), self._functions)
        dotted = self._dotted(node.func)
        if dotted in {"importlib.import_module", "__import__"} or (
            isinstance(node.func, ast.Name) and node.func.id == "__import__"
        ):
            self._late(node)
            return
        self._tool(node, dotted)
        if not self._call(node, dotted):
            self.visit(node.func)
        last = node.func.attr if isinstance(node.func, ast.Attribute) else dotted
        last = last.rpartition(".")[2]
        for argument in node.args:
            if is_cuda(argument) and last == "autocast":
                because = "autocast for CUDA is switched off where there is none"
                self._device(argument, "check", because)
            elif self._names_cuda(argument) and last in _TAKES_DEVICE:
                self._device(argument, "blocker", "names CUDA outright")
            elif is_cuda(argument) and last in _WITH_DEFAULT:
                self._device(argument, "setting", "is a default of a look-up")
            elif last in _TYPE_CALLS and self._is_cuda_type(argument):
                self._device(argument, "blocker", "names a tensor of CUDA outright")
            else:
                self.visit(argument)
        for keyword in node.keywords:
            self._keyword(keyword, last)

    def _call(self, node: ast.Call, dotted: str) -> bool:
        """Report what is called; return whether its name was dealt with."""
        if dotted == "torch.distributed.init_process_group":
            return self._group(node, dotted)
        if dotted and self._dotted_use(node.func, called=True):
            return True
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr == "cuda" and not dotted:
            on_self = isinstance(func.value, ast.Name) and func.value.id == "self"
            if not (on_self and "cuda" in self._own_methods):
                because = "moves to a CUDA device outright"
                self._put_device(node.lineno, ".cuda()", "blocker", because)
            self.visit(func.value)
            return True
        return False

    def _is_cuda_type(self, node: ast.expr) -> bool:
        """Whether it is ``torch.cuda.FloatTensor``, or its name as a text."""
        return (text(node) or self._dotted(node)).startswith("torch.cuda.")

    def _several(self, name: str, value: ast.expr) -> bool:
        """Report a keyword that asks for several GPUs; return whether it does."""
        number = value.value if isinstance(value, ast.Constant) else None
        if name == "strategy" and _STRATEGY.match(text(value)):
            term = text(value)
        elif name in _GPU_COUNTS and type(number) is int and number > 1:
            term = f"{name}={number}"
        else:
            return False
        self._put(
            value.lineno,
            level="distributed",
            rule="distributed-setting",
            standing="blocker",
            term=term,
            because="asks for several GPUs",
            remedy="keep jobs on several GPUs on Linux; give one-device runs a path "
            "without it",
        )
        return True

    def _keyword(self, keyword: ast.keyword, called: str) -> None:
        value, name = keyword.value, keyword.arg or ""
        cuda_inside = any(map(is_cuda, parts(value)))
        if cuda_inside and name == "default" and called == "add_argument":
            self._device(value, "setting", "is a default of the command line")
        elif self._names_cuda(value) and name in _DEVICE_WORDS:
            self._device(value, "blocker", "names CUDA outright")
        elif self._several(name, value):
            return
        elif is_cuda(value) and name == "device_type":
            because = "autocast for CUDA is switched off where there is none"
            self._device(value, "check", because)
        elif name == "attn_implementation" and text(value) in _ATTENTION:
            self._attention(value)
        elif name in _REQUIREMENTS and called == "setup":
            self._required(value, extra="")
        elif name == "extras_require" and called == "setup":
            self._required(value, extra="an extra")
        elif name == "non_blocking" and is_true(value):
            self._put_device(
                value.lineno,
                "non_blocking",
                "check",
                "an asynchronous copy to or from MPS can carry wrong numbers",
                remedy="copy without non_blocking on MPS",
            )
        else:
            self.visit(value)

    # Leaves.

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if not self._dotted_use(node):
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if self._names.get(node.id, "").count("."):
            self._dotted_use(node)
