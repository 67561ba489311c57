"""Let a CPU generator stand for each generator of a device.

The default generator of every device is mirrored by the CPU's default generator. A
generator that the script makes for a device *is* a CPU generator that says it belongs
to the device: so seeding it, reading its state and setting it back work as ever.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Mirrored:
    """Find the CPU generator that a draw is made with.

    Args:
        torch: The module.
        made: Gets each generator that the script makes for a device, to report it.
    """

    def __init__(
        self, torch: Any, made: Callable[[Any], None] = lambda generator: None
    ) -> None:
        self._torch = torch
        self._made = made
        self._original = torch._C.Generator
        self._known: dict[int, Any] = {}
        self._strangers: dict[int, tuple[Any, Any]] = {}

    def install(self) -> None:
        """Have ``torch.Generator`` make mirrors for devices."""
        torch = self._torch
        torch.Generator = _factory(torch.Generator, self._original, self._note)
        # TorchScript knows the class by its identity.
        register = getattr(torch.jit._builtins, "_register_builtin", None)
        if register is not None:
            register(torch.Generator, "aten::Generator")
        for module, alias in ((torch.cuda.random, torch.cuda), (torch.mps, torch.mps)):
            replace(module, "get_rng_state", self._reading_state, alias)
            replace(module, "set_rng_state", self._setting_state, alias)

    def _reading_state(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Give the state of what draws for a device: the CPU's default generator."""

        def get_rng_state(*arguments: Any, **named: Any) -> Any:
            # It starts the device, and refuses one that is not there.
            original(*arguments, **named)
            return self._torch.default_generator.get_state()

        return get_rng_state

    def _setting_state(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Set back what draws for a device, if the state is one of its own.

        Another one, from a checkpoint of a run that drew natively, goes to the device:
        it says nothing about the CPU's generator.
        """

        def set_rng_state(new_state: Any, *arguments: Any, **named: Any) -> Any:
            default = self._torch.default_generator
            if new_state.numel() != default.get_state().numel():
                return original(new_state, *arguments, **named)
            default.set_state(new_state.to("cpu"))
            return None

        return set_rng_state

    def _note(self, mirror: Any) -> None:
        # Its address alone tells a mirror from a CPU generator: a kernel gets a new
        # Python object. So a mirror lives as long as the process, 5 kB each.
        self._known[mirror._cdata] = mirror
        self._made(mirror)

    def of(self, generator: Any, device: Any) -> Any:
        """Return the CPU generator to draw with; None for the default one.

        Args:
            generator: As given to the operator.
            device: Where the result belongs.

        Raises:
            RuntimeError: A CPU generator was given for a draw on a device; torch
                refuses that with the same words.
        """
        if generator is None:
            return None
        if generator.device.type != "cpu":
            return self._for_stranger(generator)
        if generator._cdata in self._known:
            return generator
        kind = device.type if device is not None else "cpu"
        if kind == "cpu":
            return generator
        message = f"Expected a '{kind}' device type for generator but found 'cpu'"
        raise RuntimeError(message)

    def defaults(self) -> dict[str, Any]:
        """Return the default generators of devices in use, by device."""
        torch = self._torch
        found = {}
        if torch.cuda.is_initialized():
            for number, generator in enumerate(torch.cuda.default_generators):
                found[f"cuda:{number}"] = generator
        generator = getattr(torch.mps, "_default_mps_generator", None)
        if generator is not None:
            found["mps"] = generator
        return found

    def advanced(self) -> list[str]:
        """Return the devices whose own default generator has been drawn from.

        Setting a seed sets a generator back; so its state differs from that of a new
        one with its seed exactly if something drew with it.
        """
        found = []
        for device, generator in self.defaults().items():
            fresh = self._original(generator.device)
            fresh.manual_seed(generator.initial_seed())
            if not self._torch.equal(fresh.get_state(), generator.get_state()):
                found.append(device)
        return found

    def _for_stranger(self, generator: Any) -> Any:
        """Mirror a generator that was not made by ``torch.Generator``."""
        if any(generator._cdata == one._cdata for one in self.defaults().values()):
            return None
        kept = self._strangers.get(generator._cdata)
        if kept is None:
            mirror = self._original("cpu")
            mirror.manual_seed(generator.initial_seed())
            kept = self._strangers[generator._cdata] = generator, mirror
        return kept[1]


def _factory(shown: Any, original: Any, note: Any) -> Any:
    """Return a class that makes a CPU generator for every device.

    A class and no function: ``isinstance`` tests and annotations go on working.

    Args:
        shown: What ``torch.Generator`` is now; it makes the generators of the CPU.
        original: The type of all generators.
        note: Gets each mirror.
    """

    class MirrorGenerator(original):  # type: ignore[misc]
        def __new__(cls, device: Any) -> Any:
            return original.__new__(cls, "cpu")

        def __init__(self, device: Any) -> None:
            self._device = device

        @property
        def device(self) -> Any:
            return self._device

    class Meta(type(shown)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, original)

        def __call__(cls, device: Any = "cpu") -> Any:
            made = original(device)
            if made.device.type == "cpu":
                return shown(device)
            mirror = MirrorGenerator(made.device)
            mirror.manual_seed(made.initial_seed())
            note(mirror)
            return mirror

    class Generator(shown, metaclass=Meta):  # type: ignore[misc]
        __doc__ = original.__doc__
        __wrapped__ = original

    Generator.__qualname__ = Generator.__name__ = original.__name__
    Generator.__module__ = original.__module__
    return Generator
