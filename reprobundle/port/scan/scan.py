"""Scan a project: read every text, say what blocks a run on a Mac, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from reprobundle.format.scan_report import (
    STANDINGS,
    Mention,
    NotRead,
    ScanFinding,
    ScanReport,
)
from reprobundle.port.scan import dependencies, other_files
from reprobundle.port.scan.action import choose_action
from reprobundle.port.scan.calls import Call
from reprobundle.port.scan.notebooks import scan_notebook
from reprobundle.port.scan.packages import normalised
from reprobundle.port.scan.python_code import PythonRead, scan_python
from reprobundle.port.scan.python_findings import Import, Waiting
from reprobundle.port.scan.reach import only_where_reached, settled
from reprobundle.port.scan.sources import Source, bundle_id, read_sources

# The words that a search by hand would look for.
WORDS = re.compile(
    r"\b(cuda|cudnn|nccl|nvcc|triton|flash[_-]attn|cpp_extension|nvtx|pynvml|"
    r"bitsandbytes|xformers|deepspeed|apex)\b|\w\.cu\b",
    re.IGNORECASE,
)
MOST_MENTIONS = 2000
EXIT_NOTHING_BLOCKS = 0
EXIT_BLOCKED = 10
_ASIDE = re.compile(
    r"(^|/)(tests?|testing|docs?|benchmarks?|\.github|ci)/"
    r"|(^|/)(test_\w+|conftest)\.py$"
)
# Aside where they lie beside a package: alone they are the project.
_EXAMPLES = re.compile(r"(^|/)(examples?|demos?|tutorials?)/")
_SHEBANG = re.compile(r"#!.*\b(ba|z)?sh\b")
_CONDA = re.compile(r"^dependencies:", re.MULTILINE)
_LOCKS = frozenset({"uv.lock", "poetry.lock", "pylock.toml", "pdm.lock"})
_KERNELS = frozenset({".cu", ".cuh", ".ptx", ".cpp", ".cc", ".h", ".hpp", ".c"})
_SCRIPTS = frozenset({".sh", ".bash", ".slurm", ".sbatch", ".dockerfile", ".mk"})
_SETTINGS = frozenset(
    {".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".conf", ".env"}
)


def scan(target: Path) -> ScanReport:
    """Return what `target` needs of CUDA; nothing in it is imported or run.

    Args:
        target: A folder, a file or a bundle.

    Raises:
        BadCallError: There is nothing to read.
        BundleError: The bundle cannot be read.
    """
    pile = _Pile()
    for source in read_sources(target):
        if isinstance(source, NotRead):
            pile.not_read.append(source)
        else:
            pile.add(source)
    pile.read_notebooks()
    pile.findings += settled(pile.waiting, pile.calls)
    reached = only_where_reached(pile.foreign(), pile.imports)
    beside = pile.has_package() and not bundle_id(target)
    findings = [_placed(one, examples=beside) for one in reached]
    findings.sort(key=_order)
    whole = not any(one.matters for one in pile.not_read)
    action, rule, reason = choose_action(findings, whole=whole)
    blocked = any(one.standing == "blocker" for one in findings)
    return ScanReport(
        target=str(target),
        action=action,
        rule=rule,
        reason=reason,
        findings=tuple(findings),
        mentions=tuple(pile.mentions[:MOST_MENTIONS]),
        not_read=tuple(pile.not_read),
        files=len(pile.names),
        bundle=bundle_id(target),
        exit_status=EXIT_BLOCKED if blocked or not whole else EXIT_NOTHING_BLOCKS,
    )


class _Pile:
    """All that was read so far."""

    def __init__(self) -> None:
        self.findings: list[ScanFinding] = []
        self.imports: list[Import] = []
        self.waiting: list[Waiting] = []
        self.calls: list[Call] = []
        self.mentions: list[Mention] = []
        self.not_read: list[NotRead] = []
        self.names: set[str] = set()
        self._notebooks: dict[str, list[Source]] = {}

    def add(self, source: Source) -> None:
        """Read one source."""
        self.names.add(source.path)
        if source.cell:
            self._notebooks.setdefault(source.path, []).append(source)
            return
        self._read(source)

    def _read(self, source: Source) -> None:
        first = len(self.findings)
        if source.suffix in {".py", ".pyi"}:
            self._python(source)
        else:
            for one in _scan_other(source, source.name, source.suffix):
                if isinstance(one, str):
                    self._unread(source, one, matters=True)
                else:
                    self.findings.append(one)
        lines = {one.line for one in self.findings[first:]}
        self.mentions += _mentions(source, lines)

    def read_notebooks(self) -> None:
        """Read each notebook as one program."""
        for cells in self._notebooks.values():
            first = len(self.findings)
            read = scan_notebook(cells)
            self._keep(read.python)
            self.not_read += read.not_read
            for script in read.scripts:
                found = other_files.shell_script(script)
                self.findings += [_in_cell(one, script.cell) for one in found]
            for file in read.files:
                self._read(file)
            told = {(one.cell, one.line) for one in self.findings[first:]}
            for cell in cells:
                lines = {line for number, line in told if number == cell.cell}
                self.mentions += _mentions(cell, lines)

    def has_package(self) -> bool:
        """Tell whether there is a package besides examples and tests."""
        return any(
            name.endswith("/__init__.py")
            and not _ASIDE.search(name)
            and not _EXAMPLES.search(name)
            for name in self.names
        )

    def foreign(self) -> list[ScanFinding]:
        """Return the findings, without a package that is the project itself."""
        tops = {n.split("/")[-2] for n in self.names if n.endswith("/__init__.py")}
        own = {normalised(name) for name in tops}
        packages = {"cuda-package", "distributed"}
        return [
            one
            for one in self.findings
            if one.rule not in packages or normalised(one.term) not in own
        ]

    def _python(self, source: Source) -> None:
        read = scan_python(source)
        self._keep(read)
        if read.reason:
            self._unread(source, read.reason, matters=source.suffix == ".py")

    def _keep(self, read: PythonRead) -> None:
        self.findings += read.findings
        self.imports += read.imports
        self.waiting += read.waiting
        self.calls += read.calls

    def _unread(self, source: Source, reason: str, *, matters: bool) -> None:
        one = NotRead(path=source.path, reason=reason, matters=matters)
        self.not_read.append(one)


def _in_cell(found: ScanFinding, cell: int) -> ScanFinding:
    return msgspec.structs.replace(found, cell=cell)


def _scan_other(source: Source, name: str, suffix: str) -> Iterator[ScanFinding | str]:
    if dependencies.is_requirements(source):
        yield from dependencies.requirements_file(source)
    elif name == "pyproject.toml":
        yield from dependencies.project_file(source)
    elif name in _LOCKS:
        yield from dependencies.lock_file(source)
    elif name == "setup.cfg":
        yield from _setup_cfg(source)
    elif suffix in _KERNELS:
        yield from other_files.own_kernel(source)
    elif _is_script(source):
        yield from other_files.shell_script(source)
    elif suffix in _SETTINGS or name == ".env":
        if suffix in {".yml", ".yaml"} and _CONDA.search(source.text):
            yield from dependencies.conda_file(source)
        else:
            yield from other_files.settings_file(source)


def _is_script(source: Source) -> bool:
    named = source.name.startswith("makefile") or other_files.is_recipe(source)
    return named or source.suffix in _SCRIPTS or bool(_SHEBANG.match(source.text))


def _setup_cfg(source: Source) -> Iterator[ScanFinding]:
    section = key = ""
    for number, line in enumerate(source.text.splitlines(), 1):
        if line.startswith("["):
            section = line.strip("[] ")
        elif match := re.match(r"(\w[\w.-]*)\s*=\s*(.*)", line):
            key, line = match[1], match[2]
        extra = f"the extra {key}" if section == "options.extras_require" else ""
        if (extra or key == "install_requires") and line.strip():
            text = line.strip()
            yield from dependencies.requirement_findings(
                source, number, text, extra=extra
            )


def _placed(found: ScanFinding, *, examples: bool) -> ScanFinding:
    aside = _ASIDE.search(found.path) or (examples and _EXAMPLES.search(found.path))
    if found.standing in {"blocker", "check"} and aside:
        where = "tests, documents, benchmarks or examples"
        because = f"{found.because}; in {where}"
        return msgspec.structs.replace(found, standing="aside", because=because)
    return found


def _mentions(source: Source, lines: set[int]) -> Iterator[Mention]:
    for number, line in enumerate(source.text.splitlines(), 1):
        if number not in lines and (match := WORDS.search(line)):
            yield Mention(path=source.path, line=number, term=match[0].lower())


def _order(found: ScanFinding) -> tuple[int, str, int, int]:
    return STANDINGS.index(found.standing), found.path, found.cell, found.line
