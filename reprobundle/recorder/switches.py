"""Read the settings of torch that a script may change and that change numbers."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from .environment import flushes_denormal
from .facts import UnknownFactError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .facts import Probe


def switch_probes(torch: Any) -> Iterator[Probe]:
    """Yield the probes about settings of torch that a script may change."""
    backends = torch.backends
    yield "torch.num_threads", "torch", lambda: torch.get_num_threads()
    yield "torch.num_interop_threads", "torch", lambda: torch.get_num_interop_threads()
    yield "torch.default_dtype", "torch", lambda: str(torch.get_default_dtype())
    yield "torch.default_device", "torch", lambda: str(torch.get_default_device())
    yield (
        "torch.deterministic",
        "torch",
        lambda: torch.are_deterministic_algorithms_enabled(),
    )
    yield (
        "torch.deterministic_warn_only",
        "torch",
        lambda: torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    yield (
        "torch.deterministic_fill",
        "torch.utils.deterministic",
        lambda: torch.utils.deterministic.fill_uninitialized_memory,
    )
    yield from _autocast_probes(torch)
    yield "torch.grad_enabled", "torch", lambda: torch.is_grad_enabled()
    yield "torch.anomaly_enabled", "torch", lambda: torch.is_anomaly_enabled()
    yield "torch.flush_denormal", "arithmetic", flushes_denormal
    yield (
        "torch.mha_fastpath",
        "torch.backends.mha",
        lambda: backends.mha.get_fastpath_enabled(),
    )
    yield (
        "torch.mkldnn.deterministic",
        "torch.backends.mkldnn",
        lambda: backends.mkldnn.deterministic,
    )
    yield (
        "torch.cudnn.benchmark_limit",
        "torch.backends.cudnn",
        lambda: _known(backends.cudnn.benchmark_limit, "built without cuDNN"),
    )
    yield (
        "torch.matmul_precision",
        "torch",
        lambda: torch.get_float32_matmul_precision(),
    )
    for setting in ("benchmark", "deterministic", "enabled"):
        yield (
            f"torch.cudnn.{setting}",
            "torch.backends.cudnn",
            _reader(backends.cudnn, setting),
        )
    yield (
        "torch.mkldnn.enabled",
        "torch.backends.mkldnn",
        lambda: backends.mkldnn.enabled,
    )
    yield from _precision_probes(backends)
    for kind in ("flash", "mem_efficient", "math", "cudnn"):
        yield (
            f"torch.sdp.{kind}",
            "torch.backends.cuda",
            _reader(backends.cuda, f"{kind}_sdp_enabled", called=True),
        )
    for setting in ("fp16", "bf16"):
        name = f"allow_{setting}_reduced_precision_reduction"
        yield (
            f"torch.cuda.matmul.{name}",
            "torch.backends.cuda.matmul",
            _reader(backends.cuda.matmul, name),
        )
    yield (
        "torch.cuda.matmul.allow_fp16_accumulation",
        "torch.backends.cuda.matmul",
        _reader(backends.cuda.matmul, "allow_fp16_accumulation"),
    )


def _autocast_probes(torch: Any) -> Iterator[Probe]:
    """Yield the probes about autocast, which has another dtype on each device."""
    for device in ("cpu", "cuda", "mps"):
        yield (
            f"torch.autocast.{device}.dtype",
            "torch.get_autocast_dtype()",
            _asker(torch, "get_autocast_dtype", device),
        )
        yield (
            f"torch.autocast.{device}.enabled",
            "torch.is_autocast_enabled()",
            _asker(torch, "is_autocast_enabled", device),
        )


def _asker(owner: Any, name: str, argument: str) -> Callable[[], Any]:
    def read() -> Any:
        value = getattr(owner, name)(argument)
        return value if isinstance(value, bool) else str(value)

    return read


def _precision_probes(backends: Any) -> Iterator[Probe]:
    """Yield the probes about TF32.

    torch 2.9 gave these settings new names. Reading one by its old name after the
    script used a new one raises, and reading some old names warns; so the old ones
    are read only where there is no new one.
    """
    if not hasattr(backends, "fp32_precision"):
        yield (
            "torch.cuda.matmul.allow_tf32",
            "torch.backends.cuda.matmul",
            _reader(backends.cuda.matmul, "allow_tf32"),
        )
        yield (
            "torch.cudnn.allow_tf32",
            "torch.backends.cudnn",
            _reader(backends.cudnn, "allow_tf32"),
        )
        return
    yield "torch.fp32_precision", "torch.backends", _reader(backends, "fp32_precision")
    for library, operation in (
        ("cuda", "matmul"),
        ("cudnn", "conv"),
        ("cudnn", "rnn"),
        ("mkldnn", "matmul"),
        ("mkldnn", "conv"),
        ("mkldnn", "rnn"),
    ):
        owner = getattr(getattr(backends, library), operation, None)
        yield (
            f"torch.{library}.{operation}.fp32_precision",
            f"torch.backends.{library}.{operation}",
            _reader(owner, "fp32_precision"),
        )


def _known(value: Any, reason: str) -> Any:
    if value is None:
        raise UnknownFactError(reason)
    return value


def _reader(owner: Any, name: str, *, called: bool = False) -> Callable[[], Any]:
    def read() -> Any:
        value = getattr(owner, name)
        return value() if called else value

    return read
