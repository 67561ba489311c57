"""Put the parts of the recorder together in one process and start them."""

from __future__ import annotations

import os
import sys

from . import audit, environment, linux_state, macos, variables
from .activity import ActivityWatch
from .allocators import Allocators
from .asked import Asked
from .beginnings import Beginnings
from .compiler import run_uncompiled
from .devices import Devices
from .draws import Draws
from .ending import Ending
from .evidence import Evidence
from .exit_status import ExitStatus
from .facts import send
from .fallback_warnings import FallbackWarnings
from .files import FileWatch
from .generators import Generators
from .hiding import hide_accelerators
from .imports import ImportWatch
from .libraries import Libraries
from .loaders import Loaders
from .made_generators import MadeGenerators
from .mapping import DeviceMapping
from .memory import Memory, Sampler
from .models import Models
from .notebook import Notebook
from .notices import Notices
from .phases import Clock
from .ranks import Ranks
from .read_variables import ReadVariables
from .replace import displaced
from .saving import Saving
from .seeds import Seeds
from .session import Session
from .shapes import Shapes
from .shim import ShimFinder
from .stop import StopAfterCheckpoint
from .training import Training
from .truth import Truth
from .values import Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType, ModuleType
    from typing import Any


class Recorder:
    """All parts of the recorder, for one process and its forks.

    Args:
        session: This process's part of the recording.
        package: The package this module belongs to, under whatever name it runs.
    """

    def __init__(self, session: Session, package: ModuleType) -> None:
        self.session = session
        self._package = package
        self.devices = Devices(session)
        self.clock = Clock(session, self.devices.synchronize)
        self.clock.waits = False
        self.devices.on_possible = self._wait_for_devices
        self.devices.on_startable = self._expect_devices
        self.shapes = Shapes(session)
        self.memory = Memory(session, self.devices, self.shapes, self._steps)
        self.sampler = Sampler(self.memory)
        self.files = FileWatch(session)
        self.values = Values(session, self.devices)
        self.notices = Notices(session)
        self.libraries = Libraries(session, self.devices)
        self.generators = Generators(session, self.devices)
        self.made = MadeGenerators(session)
        self.seeds = Seeds(session, self.made)
        self.draws = Draws(session, self.made.made_torch)
        self.imports = ImportWatch(session, self.clock)
        self.ending = Ending(session, self._steps, self._last_words)
        self.exit_status = ExitStatus()
        self.activity = ActivityWatch(session, self.ending.before_exec)
        self.notebook = Notebook(session, self._steps)
        self.ranks = Ranks(session)
        self.training = Training(
            session, self.clock, self.devices, self.memory, self.shapes
        )
        self.models = Models(session, self.clock, self.devices)
        self.saving = Saving(session, self.clock, self.files)
        self.allocators = Allocators(session, self.memory, self._steps)
        self.beginnings = Beginnings(session, self.devices)
        self.loaders = Loaders(session, self.beginnings)
        self.training.on_call = self.beginnings.see_call
        self.training.on_batch.append(self.loaders.see_batch)
        self.fallback_warnings = FallbackWarnings(session, self.clock)
        self.evidence = Evidence(session, self.clock)
        self.mapping = DeviceMapping(session)
        self.truth = Truth(session)
        self.asked = Asked(session)
        self._sampled = False
        self._variables: dict[str, str | None] = {}

    def start(self) -> None:
        """Start every part; one that fails leaves the others working."""
        self.session.start()
        steps: tuple[tuple[str, Callable[[], None]], ...] = (
            ("facts", self._send_facts),
            ("variables", self._watch_variables),
            ("imports", self._watch_imports),
            ("end", self.ending.install),
            ("exit status", self._watch_exit_status),
            ("ranks", self.ranks.install),
            ("forks", self._follow_forks),
            ("shim", ShimFinder(self._package).install),
            # The hook comes after the facts: the files they read are no inputs.
            ("audit hook", self._install_audit_hook),
            ("memory", self._start_memory),
        )
        for part, step in steps:
            self.session.attempt(part, step)

    def _send_facts(self) -> None:
        if self.session.kind == "helper":
            return
        self._variables = variables.read()
        send(self.session, environment.python_probes())
        send(self.session, variables.probes())
        # What the machine is doing costs milliseconds, so one process asks.
        first = self.session.kind == "main"
        if sys.platform == "darwin":
            send(self.session, macos.probes(moment=first))
            return
        send(self.session, environment.linux_probes())
        if first:
            send(self.session, linux_state.probes())

    def _send_changed_variables(self) -> None:
        send(self.session, variables.changed_probes(self._variables))

    def _watch_variables(self) -> None:
        if self.session.kind != "helper":
            ReadVariables(self.session).install()

    def _watch_imports(self) -> None:
        watch = self.imports.watch
        self.imports.install()
        for part in (self.seeds, self.generators):
            watch("random", part.on_random)
            watch("numpy.random", part.on_numpy_random, timed=True)
        watch("warnings", self.notices.on_warnings)
        watch("threading", self.notices.on_threading)
        watch("multiprocessing.util", self.activity.watch_multiprocessing)
        watch("numpy", self.libraries.on_numpy, timed=True)
        self.imports.watch_before("torch", self._send_changed_variables)
        watch("torch", self._on_torch, timed=True)
        watch("numpy", self.saving.watch_numpy)
        watch("torch.distributed.distributed_c10d", self.ranks.on_distributed)
        watch("torch.nn.parallel.distributed", self.ranks.on_data_parallel)
        watch("IPython.core.compilerop", self.notebook.on_compiler)
        watch("IPython.core.events", self.notebook.on_events)
        watch("torch.export", self.saving.watch_export)
        watch("torch.onnx", self.saving.watch_onnx)
        watch("safetensors", self.saving.watch_safetensors, timed=True)
        self.mapping.watch(self.imports)
        if self.session.stops:
            stop = StopAfterCheckpoint(self.session, self._steps)
            watch("torch", stop.install)
            watch("safetensors", stop.watch_safetensors)

    def _on_torch(self, torch: ModuleType) -> None:
        attempt = self.session.attempt
        parts: tuple[tuple[str, Callable[[Any], None]], ...] = (
            ("torch devices", self.devices.use_torch),
            ("hiding", lambda module: hide_accelerators(module, self.session.device)),
            # Before the facts, so that they hold what was asked for.
            ("torch switches", self.asked.set_switches),
            # Facts first: they hold what torch starts with.
            ("torch facts", self.libraries.on_torch),
            ("torch seeds", self.seeds.on_torch),
            ("torch generators", self.generators.on_torch),
            # After the fingerprints of the generators, which are torch's own.
            ("torch draws", self.draws.on_torch),
            ("torch memory", self.memory.use_torch),
            ("torch shapes", self.shapes.use_torch),
            ("torch training", self.training.install),
            ("torch models", self.models.install),
            ("torch saving", self.saving.install),
            ("torch allocators", self.allocators.install),
            ("torch beginnings", self.beginnings.use_torch),
            ("torch data loaders", self.loaders.use_torch),
            ("torch first weights", self.draws.watch_modules),
            ("torch fallback", self.fallback_warnings.start),
            ("torch compiler", self._stay_uncompiled),
        )
        if self.session.traced:
            self.training.after_step = self.evidence.after_step
            parts = (*parts, ("evidence", self.evidence.start))
        if self.session.promotes:
            parts = (*parts, ("truth", self.truth.start))
        # Last of all: what comes before asks torch what is really there.
        parts = (*parts, ("mapping", self.mapping.on_torch))
        for part, action in parts:
            attempt(part, action, torch)
        self.devices.on_accelerator = self._on_accelerator
        self.memory.sample("torch imported", whole=True)

    def _on_accelerator(self) -> None:
        self.libraries.on_accelerator()
        # Where somebody could see it, the state is not read; it stays unknown then.
        if not self.beginnings.is_disturbed():
            self.generators.on_accelerator()

    def _steps(self) -> int:
        return self.clock.steps

    def _watch_exit_status(self) -> None:
        self.exit_status.install(self.session.exit_file)

    def _wait_for_devices(self) -> None:
        self.clock.waits = True
        self.session.attempt("transfers", self.models.watch_tensors)

    def _expect_devices(self, starting: Mapping[str, object]) -> None:
        # Before any part takes functions of the clock: they keep it.
        self.clock.starting = starting

    def _stay_uncompiled(self, torch: ModuleType) -> None:
        run_uncompiled(torch, self._package.__name__)

    def _follow_forks(self) -> None:
        os.register_at_fork(
            before=self._before_fork,
            after_in_parent=self._after_fork_in_parent,
            after_in_child=self._after_fork_in_child,
        )

    def _before_fork(self) -> None:
        self._sampled = bool(self.session.attempt("sampler", self.sampler.stop))
        self.session.attempt("memory", self.memory.flush)

    def _after_fork_in_parent(self) -> None:
        if self._sampled:
            self.session.attempt("sampler", self.sampler.start)

    def _after_fork_in_child(self) -> None:
        self.sampler.forget()
        at_once = not _is_inside_subprocess()
        for part in (
            lambda: self.session.continue_in_fork(at_once=at_once),
            self.ending.continue_in_fork,
            self.exit_status.continue_in_fork,
            self.ranks.continue_in_fork,
            self.clock.continue_in_fork,
            self.devices.continue_in_fork,
            self.draws.continue_in_fork,
            self.notices.continue_in_fork,
            self.files.continue_in_fork,
            self.shapes.continue_in_fork,
            self.memory.continue_in_fork,
            self.training.continue_in_fork,
            self.evidence.continue_in_fork,
            self.truth.continue_in_fork,
            self.fallback_warnings.continue_in_fork,
            self.mapping.continue_in_fork,
        ):
            self.session.attempt("fork", part)

    def _install_audit_hook(self) -> None:
        handlers = {**self.files.handlers(), **self.activity.handlers()}
        audit.install(self.session, handlers)

    def _start_memory(self) -> None:
        if self.session.kind != "helper":
            self.memory.sample("start", whole=True)
            self.sampler.start()

    def _last_words(self) -> None:
        attempt = self.session.attempt
        attempt("sampler", self.sampler.stop)
        self.clock.flush()
        attempt("mapping", self.mapping.report_end)
        attempt("evidence", self.evidence.finish)
        attempt("truth", self.truth.finish)
        attempt("fallback warnings", self.fallback_warnings.finish)
        if self.session.kind == "helper":
            return
        attempt("replaced names", self._report_displaced)
        attempt("shapes", self.shapes.send)
        self.memory.sample("end", whole=True)
        attempt("ranks", self.ranks.report_end)
        attempt("generators", self.generators.report_absent)
        if self.session.kind != "fork":
            attempt("generators", self.generators.report_final)
            attempt("made generators", self.made.report_final)
            attempt("made generators", self.seeds.report_final)
            send(self.session, [(_ALIVE, "gc.get_objects()", self._alive)])
            attempt("draws", self.draws.report_end)
            attempt("library facts", self.libraries.report_end)

    def _report_displaced(self) -> None:
        torch = sys.modules.get("torch")
        if torch is None:
            return
        for name in displaced(os.path.join(os.path.dirname(torch.__file__ or ""), "")):
            text = "the script replaced " + name + "; what goes past us is not seen"
            self.session.trouble("replaced names", text)

    def _alive(self) -> list[str]:
        # Imported at the end: most processes have no use for it.
        from .alive_generators import alive

        return alive(self.made.of_numpy)


_ALIVE = "recorder.generators_alive"


def _is_inside_subprocess() -> bool:
    """Tell whether this fork is about to become another program.

    ``subprocess`` forks in this way only with a function to run before ``exec``.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_execute_child":
            return True
        frame = frame.f_back
    return False
