"""Fingerprint the random generators: their states, and what fresh ones draw.

A fingerprint is 8 bytes of BLAKE2b in hexadecimal. Reading a state does not advance
it, and draws come from generators made for the purpose: the run's own numbers are the
same with and without the recorder.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from .devices import Devices
    from .session import Session

    Fingerprints = dict[str, str]

try:
    # hashlib would load OpenSSL into every process.
    from _blake2 import blake2b as _blake2b
except ImportError:
    from hashlib import blake2b as _blake2b

_DRAWS = 1000
# Modules that bring a random generator.
_MODULES = ("random", "numpy.random", "torch")


def fingerprint(*parts: bytes | memoryview) -> str:
    """Return 16 hexadecimal digits that stand for `parts` joined."""
    digest = _blake2b(digest_size=8)
    for part in parts:
        digest.update(part)
    text: str = digest.hexdigest()
    return text


class Generators:
    """Report generator states and draws at the moments that matter."""

    def __init__(self, session: Session, devices: Devices) -> None:
        self._session = session
        self._devices = devices
        self._begun: set[str] = set()

    def on_random(self, random: ModuleType) -> None:
        """Report Python's generator as the user's code finds it, and its draws."""
        self._send("initial", {"python": python_state(random)})
        self._send("draws", {"python.Random": python_draws(random)})

    def on_numpy_random(self, module: ModuleType) -> None:
        """Report numpy's global generator as found, and numpy's draws."""
        self._send("initial", {"numpy": numpy_state(module)})
        self._send("draws", numpy_draws(module))

    def on_torch(self, torch: ModuleType) -> None:
        """Report torch's CPU generator as found, and what a fresh one draws.

        Right after the import no mode, profiler or default device of the user can see
        the two operators this takes.
        """
        self._send("initial", {"torch.cpu": torch_state(torch.default_generator)})
        self._send("draws", {"torch.cpu": torch_draws(torch)})

    def on_accelerator(self) -> None:
        """Report the generators of a device as they are when it is first in use.

        Earlier nobody may ask: that would start the device.
        """
        states = {
            f"torch.{place}": state_fingerprint(state)
            for kind in self._devices.accelerators_in_use()
            for place, state in kind.generator_states()
            if f"torch.{place}" not in self._begun
        }
        self._begun.update(states)
        if states:
            self._send("initial", states)

    def report_absent(self) -> None:
        """Say which modules with generators this process never loaded.

        Only this lets a reader tell a run that had no generator from a record that
        does not know.
        """
        modules = [name for name in _MODULES if name not in sys.modules]
        self._session.emit("absent", modules=modules)

    def report_final(self) -> None:
        """Report all states at the end."""
        states: Fingerprints = {}
        modules = sys.modules
        self._add(states, "random", lambda: {"python": python_state(modules["random"])})
        self._add(
            states,
            "numpy.random",
            lambda: {"numpy": numpy_state(modules["numpy.random"])},
        )
        self._add(states, "torch", self._torch_states)
        if states:
            self._send("final", states)
        draws = self._device_draws(modules.get("torch"))
        if draws:
            self._send("draws", draws)

    def _device_draws(self, torch: Any) -> Fingerprints:
        """Return what fresh generators draw on the accelerators that were used.

        Only at the end: drawing takes memory on the device. After an error there the
        device may refuse, and then its draws stay unknown.
        """
        draws: Fingerprints = {}
        kinds = self._devices.accelerators_in_use()
        for device in [place for kind in kinds for place in kind.generator_places()]:
            try:
                draws[f"torch.{device}"] = torch_draws(torch, device)
            except Exception as error:
                self._session.trouble(f"draws on {device}", error)
        return draws

    def _add(
        self, states: Fingerprints, module: str, read: Callable[[], Fingerprints]
    ) -> None:
        if module in sys.modules:
            states.update(self._session.attempt("generators " + module, read) or {})

    def _torch_states(self) -> Fingerprints:
        return {
            f"torch.{place}": state_fingerprint(state)
            for kind in self._devices.in_use()
            for place, state in kind.generator_states()
        }

    def _send(self, when: str, states: Fingerprints) -> None:
        self._session.emit("generators", when=when, fingerprints=states)


def python_state(random: Any) -> str:
    """Return the fingerprint of the state of Python's global generator."""
    return fingerprint(repr(random.getstate()).encode())


def python_draws(random: Any) -> str:
    """Return the fingerprint of draws from a new ``random.Random(0)``."""
    source = random.Random(0)
    draws = [source.random() for _ in range(100)] + [source.gauss(0, 1)]
    return fingerprint(repr(draws).encode())


def numpy_state(module: Any) -> str:
    """Return the fingerprint of the state of numpy's global generator."""
    name, keys, *rest = module.get_state()
    return fingerprint(name.encode(), keys.tobytes(), repr(rest).encode())


def numpy_draws(module: Any) -> Fingerprints:
    """Return fingerprints of draws from new numpy generators with seed 0."""
    new = module.default_rng
    sources = {
        "numpy.default_rng": getattr(new, "__wrapped__", new)(0),
        "numpy.RandomState": module.RandomState(0),
    }
    return {
        name: fingerprint(source.standard_normal(_DRAWS).tobytes())
        for name, source in sources.items()
    }


def torch_state(generator: Any) -> str:
    """Return the fingerprint of the state of one torch generator."""
    return state_fingerprint(generator.get_state())


def state_fingerprint(state: Any) -> str:
    """Return the fingerprint of a state, a CPU tensor of bytes."""
    return fingerprint(bytes(state.tolist()))


def torch_draws(torch: Any, device: str = "cpu") -> str:
    """Return the fingerprint of draws from a new generator with seed 0."""
    # Not torch.Generator: that one reports what the user's code makes.
    source = torch._C.Generator(device=device)
    source.manual_seed(0)
    with torch.no_grad():
        drawn = torch.randn(
            _DRAWS, generator=source, device=device, dtype=torch.float32
        )
    return fingerprint(repr(drawn.tolist()).encode())
