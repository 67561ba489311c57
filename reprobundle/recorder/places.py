"""Remember which tensors would be on CUDA, where all of them are on the CPU.

Between CUDA and the CPU every move is a copy. With one device for both, ``x.cuda()``
would be ``x`` itself, and a script that keeps ``weights.cpu()`` as a snapshot would see
it train on. So a tensor that came to "CUDA" is remembered, and what is computed from
it; a move across copies, a move to where a tensor is already does not. The memory that
a checkpoint is read into is remembered in the same way, until a tensor takes it over.

The device that stands for CUDA is ``cpu:0``. It equals no device of a CPU tensor
(``cpu``), so it can be told from the CPU that a script means.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import weakref

from .mapped_calls import is_cuda_name
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Function = Callable[..., Any]
    Arguments = tuple[Any, ...]
    Named = dict[str, Any]

# Tensor.to(device, dtype, non_blocking, copy): from here on `copy` stands by position.
_BEFORE_COPY = 4
# What torch.save writes on CUDA for the one device that there is here.
_TAG = "cuda:0"


class Places:
    """The tensors that would be on CUDA.

    Args:
        torch: The module.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._tensor = torch.Tensor
        self._kinds = (torch.Tensor, torch.UntypedStorage)
        self._size = torch.Size
        self.home = torch.device("cpu", 0)
        self._held: dict[int, Any] = {}

    def install(self) -> None:
        """Attach to what no function mode sees: checkpoints, parameters.

        Comes after the mapping of `MappedClasses`, which puts storages on the CPU.
        """
        serialization = self._torch.serialization
        replace(serialization, "default_restore_location", self._restoring)
        replace(serialization, "location_tag", self._tagging)
        replace(self._torch.Tensor, "set_", self._setting)
        replace(self._torch.Tensor, "_make_subclass", self._making_subclass)

    def _restoring(self, original: Function) -> Function:
        """Remember what ``torch.load`` puts on CUDA, whoever names it.

        A ``map_location=torch.device("cuda")`` comes as the text of what it became,
        which torch itself knows no place for.
        """

        def restore(storage: Any, location: Any) -> Any:
            if location == str(self.home):
                location = _TAG
            result = original(storage, location)
            if isinstance(location, str) and is_cuda_name(location):
                self.hold(result)
            return result

        return restore

    def _tagging(self, original: Function) -> Function:
        """Have ``torch.save`` write the place that it would write on CUDA."""

        def tag(storage: Any) -> Any:
            return _TAG if self.holds(storage) else original(storage)

        return tag

    def _setting(self, original: Function) -> Function:
        """Have a tensor be where the memory is that it is given.

        So ``torch.load`` makes its tensors (``torch/_utils.py``, ``_rebuild_tensor``).
        """

        def set_(tensor: Any, *arguments: Any, **named: Any) -> Any:
            result = original(tensor, *arguments, **named)
            source = arguments[0] if arguments else named.get("source")
            if source is not None:
                source = getattr(source, "_untyped_storage", source)
                self._put(tensor, there=self.holds(source))
            return result

        return set_

    def _making_subclass(self, original: Function) -> Function:
        """Keep the place of what becomes a parameter, which shares its memory."""

        def make(cls: Any, data: Any, *arguments: Any, **named: Any) -> Any:
            result = original(cls, data, *arguments, **named)
            if self.holds(data):
                self.hold(result)
            return result

        return make

    def holds(self, tensor: Any) -> bool:
        """Tell whether a tensor, or a storage, would be on CUDA."""
        kept = self._held.get(id(tensor))
        return kept is not None and kept() is tensor

    def hold(self, tensor: Any) -> None:
        """Remember a tensor, or an untyped storage, for as long as it lives."""
        number, held = id(tensor), self._held

        def forget(reference: Any) -> None:
            if held.get(number) is reference:
                del held[number]

        held[number] = weakref.ref(tensor, forget)

    def follow(self, function: Function, arguments: Arguments, named: Named) -> Any:
        """Make a call; what comes of tensors on CUDA, or is made there, is there."""
        there = (
            named.get("device") == self.home
            or self._is_default(function, named)
            or any(
                self.holds(tensor)
                for tensor in self._tensors((*arguments, *named.values()))
            )
        )
        result = function(*arguments, **named)
        if there:
            self._keep(result, (*arguments, *named.values()))
        return result

    def _is_default(self, function: Function, named: Named) -> bool:
        """Tell whether a factory makes its tensor on CUDA because that is the default.

        The mode of a default device lies below all others, so it comes after ours.
        """
        defaults = self._torch.utils._device
        return (
            named.get("device") is None
            and self.home == defaults.CURRENT_DEVICE
            and function in defaults._device_constructors()
        )

    def to(self, function: Function, arguments: Arguments, named: Named) -> Any:
        """Make a call of ``Tensor.to``: across it copies, else it need not."""
        tensor = arguments[0]
        wanted = named.get("device", named.get("other"))
        if wanted is None and len(arguments) > 1:
            wanted = arguments[1]
        if not isinstance(wanted, (str, self._torch.device, self._tensor)):
            return self.follow(function, arguments, named)
        if isinstance(wanted, self._tensor):
            there = self.holds(wanted)
        else:
            there = self._torch.device(wanted) == self.home
        if there and self.holds(tensor):
            arguments, named = self._on_cpu(arguments, named)
        elif there != self.holds(tensor) and len(arguments) <= _BEFORE_COPY:
            named = {**named, "copy": True}
        result = function(*arguments, **named)
        if there and result is not tensor:
            self.hold(result)
        return result

    def _on_cpu(self, arguments: Arguments, named: Named) -> tuple[Arguments, Named]:
        """Return the arguments with the plain CPU: a tensor that is there stays."""
        plain = tuple(
            "cpu" if isinstance(value, self._torch.device) else value
            for value in arguments
        )
        if "device" in named:
            named = {**named, "device": "cpu"}
        return plain, named

    def cpu(self, function: Function, arguments: Arguments, named: Named) -> Any:
        """Make a call of ``Tensor.cpu``."""
        if not self.holds(arguments[0]):
            return function(*arguments, **named)
        return self._torch._C.TensorBase.to(arguments[0], "cpu", copy=True, **named)

    def device(self, function: Function, arguments: Arguments, named: Named) -> Any:
        """Return where a tensor says it is."""
        if self.holds(arguments[0]):
            return self.home
        return function(*arguments, **named)

    def set_data(self, function: Function, arguments: Arguments, named: Named) -> Any:
        """Make an assignment to ``tensor.data``, which is how a module moves."""
        result = function(*arguments, **named)
        tensor, value = arguments[:2]
        self._put(tensor, there=self.holds(value))
        return result

    def _put(self, tensor: Any, *, there: bool) -> None:
        if there:
            self.hold(tensor)
        else:
            self._held.pop(id(tensor), None)

    def _tensors(self, values: Iterable[Any]) -> Iterable[Any]:
        """Yield the tensors and storages among `values`, one level deep."""
        for value in values:
            if isinstance(value, self._kinds):
                yield value
            elif isinstance(value, (list, tuple)) and not isinstance(value, self._size):
                for item in value:
                    if isinstance(item, self._tensor):
                        yield item

    def _keep(self, result: Any, given: Iterable[Any]) -> None:
        """Hold what a call made; what it was given stays where it was."""
        known = {id(tensor) for tensor in self._tensors(given)}
        for tensor in self._tensors((result,)):
            if id(tensor) not in known:
                self.hold(tensor)
