"""What scripts, job files, container recipes, settings and own kernels need of CUDA."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from reprobundle.format.scan_report import Level, ScanFinding, Standing
from reprobundle.port.scan.dependencies import requirement_findings
from reprobundle.port.scan.sources import Source


class _Sign(NamedTuple):
    pattern: re.Pattern[str]
    level: Level
    rule: str
    standing: Standing
    because: str
    remedy: str


_JOBS = "keep this job on Linux; give one-device runs a command of their own"
_OWN = "write an implementation for MPS, or keep this part on Linux"


def _sign(
    pattern: str,
    level: Level,
    rule: str,
    because: str,
    remedy: str,
    standing: Standing = "blocker",
) -> _Sign:
    return _Sign(re.compile(pattern), level, rule, standing, because, remedy)


_SHELL = (
    _sign(
        r"^\s*#SBATCH\s.*?(--gres|--gpus|--nodes|--ntasks|--partition|(?<=\s)-[GNnp]\b)"
        r"|^\s*#(PBS|BSUB)\s",
        "distributed",
        "job-script",
        "is a job of a cluster",
        _JOBS,
    ),
    _sign(
        r"\btorchrun\b|torch\.distributed\.(launch|run)\b|\b(mpirun|mpiexec|horovodrun)\b"
        r"|\bsrun\b"
        r"|accelerate launch .*--(multi_gpu|num_processes)|(^|[;&|]\s*)deepspeed ",
        "distributed",
        "launcher",
        "starts one process for each GPU",
        _JOBS,
    ),
    _sign(r"\bnvcc\b", "own-kernels", "nvcc", "compiles CUDA code", _OWN),
    _sign(
        r"TORCH_CUDA_ARCH_LIST|\bsm_\d{2}\b|compute_capability",
        "own-kernels",
        "cuda-architecture",
        "chooses the GPU that own code is compiled for",
        _OWN,
        "check",
    ),
    _sign(
        r"(^|[;&|(]\s*)(nvidia-smi|nsys|ncu|nvprof)\b",
        "standard-api",
        "nvidia-tool",
        "calls a tool of NVIDIA's",
        "leave it out on a Mac",
    ),
    _sign(
        r"(?i)(--)?\bdevice[ =][\"']?cuda\b|--accelerator[ =](gpu|cuda)\b",
        "standard-api",
        "device-named",
        "asks for CUDA on the command line",
        "ask for mps on a Mac",
    ),
    _sign(
        r"(?i)\w*device\w*=[\"']?\$\{\w+:[-=]\s*cuda\b",
        "standard-api",
        "device-named",
        "is a default that a variable changes",
        "set the variable to mps on a Mac",
        "setting",
    ),
    _sign(
        r"\bnvidia-smi\b.*\|\|[^;&|]*[\s{(]exit [1-9]",
        "standard-api",
        "cuda-demanded",
        "ends where there is no CUDA",
        "let the script go on with mps on a Mac",
    ),
    _sign(
        r"\bdocker run\b.*(--gpus|--runtime[ =]nvidia)"
        r"|\b(apptainer|singularity)\b.* --nv\b",
        "third-party",
        "cuda-image",
        "gives a container an NVIDIA GPU",
        "run without the container on a Mac",
        "check",
    ),
)
_CONTAINER = (
    _sign(
        r"(?i)^\s*FROM:?\s+\S*(nvidia/cuda|nvcr\.io|-cuda\d|:.*cu1\d\d)",
        "third-party",
        "cuda-image",
        "builds a Linux image with CUDA; a container on a Mac sees no Apple GPU",
        "build the environment for macOS from requirement files",
        "check",
    ),
    _sign(
        r"driver:\s*nvidia|runtime:\s*nvidia",
        "third-party",
        "cuda-image",
        "gives a container an NVIDIA GPU",
        "run without the container on a Mac",
        "check",
    ),
)
_SETTINGS = (
    _sign(
        r"""(?i)["']?\b(\w+[_.])?(device|dev|accelerator)(_(type|name))?["']?"""
        r"""\s*[:=]\s*["']?cuda(:\d)?\b""",
        "standard-api",
        "device-named",
        "names CUDA in a file of settings",
        "set mps on a Mac, or let the program choose",
    ),
    _sign(
        r"""(?i)\b(device|accelerator)["']?\s*[:=]\s*["']?\$\{[^}]*\bcuda\b""",
        "standard-api",
        "device-named",
        "is a default that a variable changes",
        "set the variable to mps on a Mac",
        "setting",
    ),
    _sign(
        r"""(?i)backend["']?\s*[:=]\s*["']?nccl\b|deepspeed_config"""
        r"""|\bddp\b(?!["']?\s*[:=]\s*["']?(false|no|none|null|off|0|~)\b)"""
        r"""|strategy["']?\s*[:=]\s*["']?(ddp|fsdp|deepspeed)|zero_optimization["']?\s*:"""
        r"""|distributed_type["']?\s*[:=]\s*["']?(multi_gpu|fsdp|deepspeed|megatron)"""
        r"""|\b(n_gpus?|num_gpus|gpus)["']?\s*[:=]\s*["']?([2-9]|\d\d)""",
        "distributed",
        "distributed-setting",
        "asks for several GPUs",
        _JOBS,
    ),
    _sign(
        r"""(?i)compute_capability|cuda_arch\w*["']?\s*[:=]|\bsm_\d{2}\b""",
        "own-kernels",
        "cuda-architecture",
        "requires a CUDA capability",
        _OWN,
    ),
    _sign(
        r"flash_attention_[23]|[:=]\s*[\"']?(paged_)?adamw_(8bit|bnb_8bit)"
        r"""|load_in_[48]bit["']?\s*[:=]\s*["']?[Tt]rue""",
        "third-party",
        "cuda-package",
        "chooses code that needs CUDA",
        "choose the plain form on a Mac",
    ),
)
_GUARD = re.compile(
    r"nvidia-smi|nvcc|cuda|gpu|uname|ostype|darwin|linux|command -v", re.IGNORECASE
)
_JOB_LINE = re.compile(r"\s*#(SBATCH|PBS|BSUB)\b")
_DEMANDED = _sign(
    "",
    "standard-api",
    "cuda-demanded",
    "ends where there is no CUDA",
    "let the script go on with mps on a Mac",
)


class _Guard(NamedTuple):
    """A condition of a script.

    Attributes:
        holds: Whether it may keep a Mac away.
        negated: Whether it holds where there is no CUDA.
    """

    holds: bool
    negated: bool


_NO_GUARD = _Guard(holds=False, negated=False)
_INSTALL = re.compile(r"\b(?:pip3?|uv pip|conda|mamba) install\s+([^&|;]+)")
_INDEX = re.compile(r"(?<!extra-)index-url[ =]\S*/whl/(?:nightly/)?(cu\d+)")
_QUOTED = re.compile(r"\b(echo|printf)\b[^;&|]*")


def shell_script(source: Source) -> Iterator[ScanFinding]:
    """Yield the findings of a shell or job script, a Makefile or a container recipe."""
    signs = (*_CONTAINER, *_SHELL) if is_recipe(source) else _SHELL
    guards: list[_Guard] = []
    for number, line in enumerate(source.text.splitlines(), 1):
        code = line if _JOB_LINE.match(line) else _code(line)
        word = code.strip()
        here = _guard(word) if re.match(r"if\b", word) else _NO_GUARD
        closed = bool(re.search(r";\s*fi\b", word))
        if re.match(r"if\b", word) and not closed:
            guards.append(here)
            continue
        if re.match(r"fi\b", word) and guards:
            guards.pop()
        if re.match(r"else\b", word) and guards:
            guards[-1] = guards[-1]._replace(negated=False)
        behind = [*guards, here]
        demanded = any(one.negated for one in behind)
        if demanded and re.search(r"\bexit [1-9]", code):
            yield _found(source, number, "exit", _DEMANDED, guarded=False)
        guarded = any(one.holds for one in behind)
        guarded = guarded or bool(re.search(r"\|\|\s*(true|:|echo)", code))
        yield from _matches(source, number, code, signs, guarded=guarded)
        yield from _installed(source, number, code, guarded=guarded)


def is_recipe(source: Source) -> bool:
    """Tell whether a file says how a container is built."""
    if source.suffix == ".def":
        return bool(re.search(r"(?im)^\s*bootstrap\s*:", source.text))
    return (
        any(word in source.name for word in ("dockerfile", "containerfile"))
        or source.suffix == ".dockerfile"
    )


def _guard(word: str) -> _Guard:
    holds = bool(_GUARD.search(word))
    condition = word.partition("then")[0]
    asks = re.search(r"nvidia-smi|nvcc|cuda", condition, re.IGNORECASE)
    return _Guard(holds, bool(asks) and bool(re.match(r"if\s+!\s", condition)))


def _code(line: str) -> str:
    return _QUOTED.sub("", re.sub(r"(^|\s)#.*", "", line))


def _installed(
    source: Source, number: int, code: str, *, guarded: bool
) -> Iterator[ScanFinding]:
    match = _INSTALL.search(code)
    if match is None:
        return
    extra = "a guarded step" if guarded else ""
    for word in match[1].split():
        text = word.strip("'\"")
        if not text.startswith("-") and "/" not in text:
            yield from requirement_findings(source, number, text, extra=extra)
    if index := _INDEX.search(code):
        sign = _Sign(
            _INDEX,
            "third-party",
            "cuda-requirement",
            "blocker",
            "installs builds for CUDA",
            "use the plain package index on macOS",
        )
        yield _found(source, number, index[1], sign, guarded=guarded)


def settings_file(source: Source) -> Iterator[ScanFinding]:
    """Yield the findings of a YAML, JSON or TOML file of settings."""
    signs = (*_SETTINGS, *_CONTAINER)
    for number, line in enumerate(source.text.splitlines(), 1):
        code = line if source.suffix == ".json" else re.sub(r"(^|\s)#.*", "", line)
        yield from _matches(source, number, code, signs, guarded=False)


def own_kernel(source: Source) -> Iterator[ScanFinding]:
    """Yield that a file is CUDA code, or C++ that includes CUDA."""
    is_cuda = source.suffix in {".cu", ".cuh", ".ptx"}
    pattern = r"#include\s*[<\"](cuda|cublas|cudnn|nccl|ATen/cuda|c10/cuda|thrust|cub)"
    match = re.search(pattern, source.text)
    if not is_cuda and match is None:
        return
    start = source.text[: match.start()] if match and not is_cuda else ""
    line = 0 if is_cuda else start.count("\n") + 1
    # Included under the condition that the build sets where it finds CUDA.
    opened = re.findall(r"(?m)^\s*#\s*(if\w*|endif)\b([^\n]*)", start)
    depth = sum(-1 if word == "endif" else 1 for word, _ in opened)
    guarded = depth > 0 and any("CUDA" in words.upper() for _, words in opened)
    because = "is CUDA code" if is_cuda else "includes CUDA's headers"
    sign = _Sign(re.compile(""), "own-kernels", "own-kernel", "blocker", because, _OWN)
    term = source.suffix if is_cuda else "cuda headers"
    yield _found(source, line, term, sign, guarded=guarded)


def _matches(
    source: Source,
    number: int,
    code: str,
    signs: tuple[_Sign, ...],
    *,
    guarded: bool,
) -> Iterator[ScanFinding]:
    for sign in signs:
        if match := sign.pattern.search(code):
            yield _found(source, number, match[0].strip(), sign, guarded=guarded)


def _found(
    source: Source, line: int, term: str, sign: _Sign, *, guarded: bool
) -> ScanFinding:
    return ScanFinding(
        path=source.path,
        line=line,
        level=sign.level,
        rule=sign.rule,
        standing="guarded" if guarded else sign.standing,
        term=term[:60],
        because="behind a condition of the script" if guarded else sign.because,
        remedy=sign.remedy,
    )
