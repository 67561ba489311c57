"""Read the facts about numpy and torch, and which of them the script changed.

Nothing here may start a device, warn, or raise into the run. Asking whether CUDA is
available starts its driver; asking MPS caches the answer for the whole process. So
facts about a device are read only when the user's code is already using it.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import sys

from .facts import UnknownFactError, measured, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .devices import Devices
    from .facts import Probe
    from .session import Session

# Libraries that open files in native code, where no audit event is raised.
_NATIVE_FILE_READERS = (
    "h5py",
    "netCDF4",
    "tables",
    "pyarrow",
    "cv2",
    "torchaudio",
    "torchcodec",
    "torchvision.io",
    "decord",
    "av",
    "lmdb",
    "tensorflow",
    "jax",
    "polars",
    "duckdb",
    "rasterio",
    "ffcv",
)
_ALWAYS_UNOBSERVED = (
    "seeds: random.Random",
    "seeds: numpy.random.RandomState",
)


class Libraries:
    """Send library facts after the import, at first device use, and at the end."""

    def __init__(self, session: Session, devices: Devices) -> None:
        self._session = session
        self._devices = devices
        self._switches: dict[str, object] = {}

    def on_numpy(self, numpy: Any) -> None:
        """Send what is known about numpy once it is imported."""
        send(self._session, numpy_probes(numpy))

    def on_torch(self, torch: Any) -> None:
        """Send what is known about torch once it is imported."""
        send(self._session, torch_probes(torch))
        self._switches = send(self._session, switch_probes(torch))

    def on_accelerator(self) -> None:
        """Send the facts of the device in use."""
        torch = sys.modules.get("torch")
        if torch is not None:
            send(self._session, device_probes(torch, self._devices))

    def report_end(self) -> None:
        """Send what changed, and what could only be known now."""
        send(self._session, end_probes())
        torch = sys.modules.get("torch")
        if torch is None or not self._switches:
            return
        self._session.attempt("devices", self._devices.look_at_end)
        send(self._session, device_probes(torch, self._devices))
        send(self._session, self._changes(torch))
        mps = torch.backends.mps
        if mps.is_built():
            answer = ("torch.mps.available", "torch.backends.mps", mps.is_available)
            send(self._session, [answer])

    def _changes(self, torch: Any) -> Iterator[Probe]:
        for name, source, read in switch_probes(torch):
            value, unknown = measured(read)
            if unknown or value != self._switches.get(name):
                # A switch that became unreadable was changed in a way torch refuses
                # to name, such as old and new names of one setting in a mixture.
                yield f"end.{name}", source, read


def numpy_probes(numpy: Any) -> Iterator[Probe]:
    """Yield the probes about numpy."""
    yield "numpy.version", "numpy.__version__", lambda: numpy.__version__
    yield "numpy.blas", "numpy.show_config()", lambda: _numpy_blas(numpy)
    yield "numpy.cpu_features", "numpy __cpu_features__", lambda: _numpy_features(numpy)


def torch_probes(torch: Any) -> Iterator[Probe]:
    """Yield the probes about the torch build; they cannot change during a run."""
    version = torch.version
    backends = torch.backends
    yield "torch.version", "torch.__version__", lambda: str(torch.__version__)
    yield "torch.git_version", "torch.version", lambda: version.git_version
    yield "torch.debug", "torch.version", lambda: bool(version.debug)
    yield (
        "torch.cuda.built",
        "torch.version.cuda",
        lambda: _or_unknown(version.cuda, "built without CUDA"),
    )
    yield (
        "torch.hip.built",
        "torch.version.hip",
        lambda: _or_unknown(getattr(version, "hip", None), "built without ROCm"),
    )
    yield (
        "torch.mps.built",
        "torch.backends.mps.is_built()",
        lambda: bool(backends.mps.is_built()),
    )
    yield "torch.mps.available", "torch.backends.mps", lambda: _mps_yet(backends)
    yield "torch.mkl", "torch.backends.mkl", lambda: bool(backends.mkl.is_available())
    yield (
        "torch.openmp",
        "torch.backends.openmp",
        lambda: bool(backends.openmp.is_available()),
    )
    yield (
        "torch.cpu_capability",
        "torch.backends.cpu",
        lambda: backends.cpu.get_cpu_capability(),
    )
    yield "torch.config", "torch.__config__.show()", lambda: torch.__config__.show()


def _mps_yet(backends: Any) -> bool:
    """Return False where torch has no MPS; elsewhere the question must wait.

    Its first answer is kept for the whole process.
    """
    if backends.mps.is_built():
        message = "asked only at the end of the process"
        raise UnknownFactError(message)
    return False


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


def device_probes(torch: Any, devices: Devices) -> Iterator[Probe]:
    """Yield the probes about the accelerators that this process uses."""
    yield from _cuda_probes(torch, in_use=devices.cuda_in_use)
    yield from _mps_probes(torch, in_use=devices.mps_in_use)


def _cuda_probes(torch: Any, *, in_use: bool) -> Iterator[Probe]:
    cuda = torch.cuda

    def used(read: Callable[[], Any]) -> Callable[[], Any]:
        return read if in_use else _not_used("CUDA")

    yield "torch.cuda.used", "torch.cuda.is_initialized()", lambda: in_use
    yield "torch.cuda.device_count", "torch.cuda", used(lambda: cuda.device_count())
    yield (
        "torch.cuda.devices",
        "torch.cuda",
        used(lambda: [cuda.get_device_name(n) for n in range(cuda.device_count())]),
    )
    yield (
        "torch.cuda.capabilities",
        "torch.cuda",
        used(
            lambda: [
                "{}.{}".format(*cuda.get_device_capability(n))
                for n in range(cuda.device_count())
            ]
        ),
    )
    yield (
        "torch.cuda.memory_bytes",
        "torch.cuda",
        used(
            lambda: [
                str(cuda.get_device_properties(n).total_memory)
                for n in range(cuda.device_count())
            ]
        ),
    )
    yield (
        "torch.cudnn.version",
        "torch.backends.cudnn",
        used(lambda: torch.backends.cudnn.version()),
    )


def _mps_probes(torch: Any, *, in_use: bool) -> Iterator[Probe]:
    def used(read: Callable[[], Any]) -> Callable[[], Any]:
        return read if in_use else _not_used("MPS")

    yield "torch.mps.used", "tensors seen", lambda: in_use
    yield (
        "torch.mps.recommended_max_bytes",
        "torch.mps",
        used(lambda: torch.mps.recommended_max_memory()),
    )
    yield (
        "torch.mps.name",
        "torch.backends.mps",
        used(lambda: torch.backends.mps.get_name()),
    )
    yield (
        "torch.mps.core_count",
        "torch.backends.mps",
        used(lambda: torch.backends.mps.get_core_count()),
    )
    yield (
        "torch.mps.standin",
        "sys.platform",
        lambda: in_use and sys.platform != "darwin",
    )


def end_probes() -> Iterator[Probe]:
    """Yield the probes about what the run turned out to use."""
    yield "python.start_method", "multiprocessing", _start_method
    yield "recorder.unobserved", "sys.modules", _unobserved


def _start_method() -> str:
    context = sys.modules.get("multiprocessing.context")
    if context is None:
        message = "multiprocessing was not imported"
        raise UnknownFactError(message)
    method = context._default_context.get_start_method(allow_none=True)
    if method is None:
        message = "no start method was chosen"
        raise UnknownFactError(message)
    return str(method)


def _unobserved() -> list[str]:
    readers = [f"files: {name}" for name in _NATIVE_FILE_READERS if name in sys.modules]
    return [*_ALWAYS_UNOBSERVED, *readers]


def _not_used(device: str) -> Callable[[], Any]:
    def read() -> Any:
        message = f"{device} was not used by this process"
        raise UnknownFactError(message)

    return read


def _reader(owner: Any, name: str, *, called: bool = False) -> Callable[[], Any]:
    def read() -> Any:
        value = getattr(owner, name)
        return value() if called else value

    return read


def _or_unknown(value: Any, reason: str) -> Any:
    if value is None:
        raise UnknownFactError(reason)
    return value


def _numpy_blas(numpy: Any) -> str:
    config = numpy.show_config(mode="dicts")
    blas = config["Build Dependencies"]["blas"]
    details = (
        blas.get("name"),
        blas.get("version"),
        blas.get("openblas configuration"),
    )
    return " ".join(str(part) for part in details if part)


def _numpy_features(numpy: Any) -> list[str]:
    core = getattr(numpy, "_core", None) or numpy.core
    features = core._multiarray_umath.__cpu_features__
    return sorted(name for name, present in features.items() if present)
