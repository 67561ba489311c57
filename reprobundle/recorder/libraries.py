"""Read the facts about numpy and torch, and which of them the script changed.

Nothing here may start a device, warn, or raise into the run. Asking whether CUDA is
available starts its driver; asking MPS caches the answer for the whole process. So
facts about a device are read only when the user's code is already using it.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import sys

from . import missing_mps, system_libraries
from .facts import UnknownFactError, measured, send
from .hardware.obstacle import Machine
from .switches import switch_probes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
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
    "seeds: classes derived from random.Random with a seed() of their own",
    "seeds: numpy.random.RandomState, an immutable type",
    "seeds: numpy.random.Generator made of a bit generator, an immutable type",
    "random: os.urandom, secrets, uuid",
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
        # Last: it asks at once, and what it raises must not cost the facts above.
        send(self._session, missing_mps.probes_at_import(torch, Machine()))

    def on_accelerator(self) -> None:
        """Send the facts of the device in use."""
        if "torch" in sys.modules:
            send(self._session, self._devices.facts())

    def report_end(self) -> None:
        """Send what changed, and what could only be known now."""
        send(self._session, end_probes())
        torch = sys.modules.get("torch")
        if torch is None or not self._switches:
            return
        self._session.attempt("devices", self._devices.look_at_end)
        send(self._session, self._devices.facts())
        send(self._session, self._changes(torch))
        mps = torch.backends.mps
        if mps.is_built():
            answer = ("torch.mps.available", "torch.backends.mps", mps.is_available)
            send(self._session, [answer])
        device = self._session.device
        send(self._session, missing_mps.probes_at_end(torch, device, Machine()))

    def _changes(self, torch: Any) -> Iterator[Probe]:
        """Yield what changed, and the names of what was read again and did not."""
        same = []
        for name, source, read in switch_probes(torch):
            value, unknown = measured(read)
            if name not in self._switches and unknown:
                continue  # Unknown before and after.
            if unknown or value != self._switches.get(name):
                # A switch that became unreadable was changed in a way torch refuses
                # to name, such as old and new names of one setting in a mixture.
                yield f"end.{name}", source, read
            else:
                same.append(name)
        yield "end.unchanged", "as at the start", lambda: same


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
    show = torch.__config__.show
    yield "torch.config", "torch.__config__.show()", lambda: show()
    yield "torch.blas", "torch.__config__.show()", lambda: build_setting(show())
    yield (
        "torch.blas_threads",
        "torch.__config__.parallel_info()",
        lambda: blas_threads(torch.__config__.parallel_info()),
    )


def build_setting(text: str, name: str = "BLAS_INFO") -> str:
    """Return one of the build settings that ``torch.__config__.show()`` lists."""
    for part in text.replace("\n", ",").split(","):
        key, mark, value = part.partition("=")
        if mark and key.strip().rpartition(" ")[2] == name:
            return value.strip()
    message = f"the build settings name no {name}"
    raise UnknownFactError(message)


def blas_threads(text: str) -> int:
    """Return how many threads the library for matrices uses.

    Args:
        text: From ``torch.__config__.parallel_info()``.
    """
    for line in text.splitlines():
        name, mark, value = line.partition(" : ")
        if mark and name.strip() == "mkl_get_max_threads()":
            return int(value)
    message = "only builds with MKL tell it"
    raise UnknownFactError(message)


def _mps_yet(backends: Any) -> bool:
    """Return False where torch has no MPS; elsewhere the question must wait.

    Its first answer is kept for the whole process.
    """
    if backends.mps.is_built():
        message = "asked only at the end of the process"
        raise UnknownFactError(message)
    return False


def end_probes() -> Iterator[Probe]:
    """Yield the probes about what the run turned out to use."""
    yield "python.start_method", "multiprocessing", _start_method
    yield "recorder.unobserved", "sys.modules", _unobserved
    yield "system.libraries", system_libraries.MAPS, system_libraries.loaded


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
