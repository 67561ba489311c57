"""Collect what one Python file asks of CUDA, with the guards that hold there."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

import msgspec

from reprobundle.format.scan_report import Level, ScanFinding, Standing
from reprobundle.port.scan.callers import MODULE, Callers
from reprobundle.port.scan.dependencies import requirement_findings
from reprobundle.port.scan.packages import imported
from reprobundle.port.scan.sources import Source
from reprobundle.port.scan.torch_names import DEVICE_REMEDY, Known, known

# Rules of what may well stand in a function that this program never calls.
_LAZY = frozenset({"cuda-package", "distributed", "distributed-api", "cuda-demanded"})
_CUDA_DEVICE = re.compile(r"^cuda(:\d*)?$")
_JOBS = re.compile(r"distribut|ddp|fsdp|nccl|multi_?gpu|process_group", re.IGNORECASE)

_STARTS_COMMANDS = frozenset(
    {
        "os.popen",
        "os.system",
        "subprocess.Popen",
        "subprocess.call",
        "subprocess.check_call",
        "subprocess.check_output",
        "subprocess.getoutput",
        "subprocess.getstatusoutput",
        "subprocess.run",
    }
)
_LAUNCHER = re.compile(
    r"\s*(torchrun|mpirun|mpiexec|horovodrun|srun|deepspeed)(?![\w-])"
)
_NVIDIA_TOOL = re.compile(r"\s*(?:\S*/)?(nvidia-smi|nsys|ncu|nvprof|nvcc)(?![\w-])")


class Import(NamedTuple):
    """One import of a module that may be the project's own.

    Attributes:
        module: Dotted name; a relative one starts with its dots.
        place: ``file:line``.
        always: Whether it happens whenever the file is imported.
    """

    module: str
    place: str
    always: bool


class Waiting(NamedTuple):
    """A blocker inside a function that the file itself never calls in any case.

    Attributes:
        function: Its name.
        reaching: Functions and classes whose call leads to it, itself included.
        found: The blocker.
    """

    function: str
    reaching: frozenset[str]
    found: ScanFinding


class PythonFindings:
    """The findings of one file, its names, and the guards at the place being read.

    Args:
        source: The file.
    """

    def __init__(self, source: Source) -> None:
        self.findings: list[ScanFinding] = []
        self.imports: list[Import] = []
        self.waiting: list[Waiting] = []
        self._source = source
        self._names: dict[str, str] = {}
        self._flags: frozenset[str] = frozenset()
        # Names that hold True for good, such as ``USE_CUDA = True``.
        self._set: frozenset[str] = frozenset()
        # Names → whether what they were given last is CUDA's name.
        self._texts: dict[str, bool] = {}
        self._guards: list[str] = []
        self._functions: list[str] = []
        self._callers = Callers()
        self._waiting: list[tuple[str, ScanFinding]] = []
        self._own_methods: set[str] = set()
        self._class = ""
        self._seen: set[tuple[int, str, str]] = set()

    # Names.

    def _remember(self, line: int, module: str) -> None:
        always = not self._guards and not self._functions
        place = f"{self._source.path}:{line}"
        self.imports.append(Import(module, place, always))

    def _import(self, line: int, module: str) -> bool:
        match = imported(module)
        if match is None:
            return False
        name, package = match
        self._put(
            line,
            level=package.level,
            rule="cuda-package" if package.level == "third-party" else "distributed",
            standing=package.standing,
            term=name,
            because=package.because,
            remedy=package.remedy,
        )
        return True

    def _dotted(self, node: ast.expr) -> str:
        """Return the full name of `node` through the file's imports, or nothing."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._names:
            return ""
        return ".".join([self._names[node.id], *reversed(parts)])

    def _dotted_use(self, node: ast.expr, *, called: bool = False) -> bool:
        """Report a known name; return whether it is one."""
        dotted = self._dotted(node.func if isinstance(node, ast.Call) else node)
        entry = known(dotted) if dotted else None
        if entry is None:
            return False
        if entry.rule == "late-import" and not called:
            return False
        if not called and (dotted.startswith("torch.cuda.") or is_jobs(entry)):
            # Types in annotations and isinstance exist without CUDA as well.
            because = "is named here and not called"
            entry = entry._replace(standing="check", because=because)
        self._add(node.lineno, dotted, entry)
        return True

    def _group(self, node: ast.Call, dotted: str) -> bool:
        texts = [text(one) for one in node.args]
        texts += [text(k.value) for k in node.keywords if k.arg == "backend"]
        entry = known(dotted)
        if entry is not None and "gloo" in texts:
            because = "joins processes over the CPU; MPS tensors are not exchanged"
            entry = entry._replace(standing="check", because=because)
        if entry is not None:
            self._add(node.lineno, "nccl" if "nccl" in texts else dotted, entry)
        return True

    def _attention(self, node: ast.expr) -> None:
        self._put(
            node.lineno,
            level="third-party",
            rule="cuda-package",
            standing="blocker",
            term=text(node),
            because="asks for a fused attention that needs CUDA",
            remedy='use attn_implementation="sdpa" on a Mac',
        )

    def _late(self, node: ast.Call) -> None:
        name = folded(node.args[0]) if node.args else ""
        entry = known("importlib.import_module")
        if name and imported(name) is not None:
            entry = entry and entry._replace(
                because=f"loads {name} while the program runs"
            )
        elif name:
            return
        if entry is not None:
            self._add(node.lineno, name or "import_module", entry)

    def _tool(self, node: ast.Call, dotted: str) -> None:
        """Report a command of NVIDIA's, or a launcher, that the program starts."""
        if dotted not in _STARTS_COMMANDS or not node.args:
            return
        command = node.args[0]
        if isinstance(command, (ast.List, ast.Tuple)) and command.elts:
            command = command.elts[0]
        if launcher := _LAUNCHER.match(folded(command)):
            self._put(
                node.lineno,
                level="distributed",
                rule="launcher",
                standing="blocker",
                term=launcher[1],
                because="starts one process for each GPU",
                remedy="keep this job on Linux; give one-device runs a command of "
                "their own",
            )
            return
        found = _NVIDIA_TOOL.match(folded(command))
        if found is None:
            return
        compiles = found[1] == "nvcc"
        self._put(
            node.lineno,
            level="own-kernels" if compiles else "standard-api",
            rule="nvcc" if compiles else "nvidia-tool",
            standing="blocker",
            term=found[1],
            because="compiles CUDA code" if compiles else "calls a tool of NVIDIA's",
            remedy="leave it out on a Mac",
        )

    def _required(self, value: ast.expr, *, extra: str) -> None:
        for node in ast.walk(value):
            wanted = text(node)
            if wanted and isinstance(node, ast.expr):
                one = Source(self._source.path, wanted)
                line = node.lineno
                for found in requirement_findings(one, line, wanted, extra=extra):
                    self._put_finding(found)

    def _demand(self, line: int, because: str) -> None:
        known_name = Known(
            "standard-api", "cuda-demanded", "blocker", because, DEVICE_REMEDY
        )
        self._add(line, "cuda", known_name)

    # Findings.

    def _device(self, node: ast.expr, standing: Standing, because: str) -> None:
        self._put_device(node.lineno, '"cuda"', standing, because)

    def _put_device(
        self,
        line: int,
        term: str,
        standing: Standing,
        because: str,
        *,
        remedy: str = DEVICE_REMEDY,
    ) -> None:
        self._put(
            line,
            level="standard-api",
            rule="device-named" if term != "non_blocking" else "async-copy",
            standing=standing,
            term=term,
            because=because,
            remedy=remedy,
        )

    def _add(self, line: int, term: str, entry: Known) -> None:
        self._put(
            line,
            level=entry.level,
            rule=entry.rule,
            standing=entry.standing,
            term=term,
            because=entry.because,
            remedy=entry.remedy,
        )

    def _put(
        self,
        line: int,
        *,
        level: Level,
        rule: str,
        standing: Standing,
        term: str,
        because: str,
        remedy: str,
    ) -> None:
        self._put_finding(
            ScanFinding(
                path=self._source.path,
                line=line,
                cell=self._source.cell,
                level=level,
                rule=rule,
                standing=standing,
                term=term,
                because=because,
                remedy=remedy,
            )
        )

    def _put_finding(self, found: ScanFinding) -> None:
        key = (found.line, found.rule, found.term)
        if key in self._seen:
            return
        self._seen.add(key)
        if self._guards and found.standing in {"blocker", "late", "check"}:
            guard = self._guards[-1]
            because = guard if len(guard) < 80 else f"{guard[:79]}…"
            found = _replaced(found, standing="guarded", because=because)
        if found.standing == "blocker" and self._is_lazy(found):
            self._waiting.append((self._functions[-1], found))
        else:
            self.findings.append(found)

    def _is_lazy(self, found: ScanFinding) -> bool:
        """Whether it waits for a call of its function, which may never come."""
        if not self._functions:
            return False
        function = self._functions[-1].rpartition(".")[2]
        if found.rule == "device-named" and function == "cuda":
            # A class that has its own form of ``cuda()``.
            return True
        jobs = found.level == "distributed" and _JOBS.search(function)
        return found.rule in _LAZY or bool(jobs)

    def finish(self) -> None:
        """Settle what waits for a call: one of this file that is made in any case."""
        for function, one in self._waiting:
            reached = self._callers.reaching(function)
            if MODULE in reached:
                self.findings.append(one)
            else:
                self.waiting.append(Waiting(function, reached, one))


def is_jobs(entry: Known) -> bool:
    """Tell whether a name of torch is about several GPUs."""
    return entry.rule == "distributed-api"


def _replaced(found: ScanFinding, *, standing: Standing, because: str) -> ScanFinding:
    return msgspec.structs.replace(found, standing=standing, because=because)


def parts(node: ast.expr) -> list[ast.expr]:
    """Return all expressions inside one, itself included."""
    return [one for one in ast.walk(node) if isinstance(one, ast.expr)]


def text(node: ast.AST) -> str:
    """Return the text that a constant is; empty for anything else."""
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return str(node.value) if is_text and isinstance(node, ast.Constant) else ""


def is_true(node: ast.expr) -> bool:
    """Whether an expression is the constant True."""
    return isinstance(node, ast.Constant) and node.value is True


def is_cuda(node: ast.expr) -> bool:
    """Whether an expression is the name of a CUDA device: ``"cuda:0"``, f"cuda:{n}"."""
    if isinstance(node, ast.JoinedStr) and node.values:
        return text(node.values[0]).startswith("cuda")
    return bool(_CUDA_DEVICE.match(text(node)))


def folded(node: ast.expr) -> str:
    """Return a text that is put together from constants; empty if it is not."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = folded(node.left), folded(node.right)
        return left + right if left and right else ""
    return text(node)
