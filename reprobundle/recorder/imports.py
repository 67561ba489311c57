"""Call back when the user's code first imports a module, before it sees it."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    from .phases import Clock
    from .session import Session

    Callback = Callable[[ModuleType], None]


class ImportWatch:
    """A finder that finds nothing itself: it wraps what the others found.

    It never imports anything: a module that the user's code does not import is never
    loaded. For all other modules its cost is one look into a dictionary.
    """

    def __init__(self, session: Session, clock: Clock) -> None:
        self._session = session
        self._clock = clock
        self._callbacks: dict[str, list[Callback]] = {}
        self._before: dict[str, Callable[[], None]] = {}
        self._timed: set[str] = set()

    def install(self) -> None:
        """Put this finder before the others."""
        sys.meta_path.insert(0, self)

    def watch(self, name: str, callback: Callback, *, timed: bool = False) -> None:
        """Call `callback` with the module `name` once it is imported, or now.

        Args:
            name: Full module name.
            callback: Runs after the module's code and before its importer's.
            timed: Count the time its import takes as phase ``import``.
        """
        if timed:
            self._timed.add(name)
        module = sys.modules.get(name)
        if module is None:
            self._callbacks.setdefault(name, []).append(callback)
        else:
            self._session.attempt("import " + name, callback, module)

    def watch_before(self, name: str, action: Callable[[], None]) -> None:
        """Call `action` just before the code of the module `name` runs.

        For what a library reads once, while it is imported.
        """
        if name not in sys.modules:
            self._before[name] = action

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return the spec the other finders give for a watched name."""
        if name not in self._callbacks:
            return None
        spec = self._spec_of_others(name, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            wrapped: Any = _Loader(self, spec.loader)
            spec.loader = wrapped
        return spec

    def _spec_of_others(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(name, path, target)
            if spec is not None:
                return spec
        return None

    def execute(self, loader: Any, module: ModuleType) -> None:
        """Run the module's own code, then the callbacks."""
        before = self._before.pop(module.__name__, None)
        if before is not None:
            self._session.attempt("before " + module.__name__, before)
        opened = module.__name__ in self._timed and self._clock.begin("import")
        try:
            loader.exec_module(module)
        finally:
            if opened:
                self._clock.end()
        _bind_to_parent(module)
        for callback in self._callbacks.pop(module.__name__, ()):
            self._session.attempt("import " + module.__name__, callback, module)


def _bind_to_parent(module: ModuleType) -> None:
    """Make the module an attribute of its package, as the import system does next.

    numpy finds ``numpy.random`` on demand: a callback that reads the attribute before
    it is set would import it again and again.
    """
    package, _, name = module.__name__.rpartition(".")
    if package in sys.modules:
        setattr(sys.modules[package], name, module)


class _Loader:
    """Stand in for a loader until its module is executed."""

    def __init__(self, watch: ImportWatch, loader: Any) -> None:
        self._watch = watch
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        # From here on the module looks as if we had never been there: resources,
        # source text and reloading go to its own loader.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._watch.execute(self._loader, module)
