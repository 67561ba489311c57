"""Which files a run read and wrote, told from the opens its processes reported."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from reprobundle.run.events import EventFile, Open
from reprobundle.run.facts import events_of

# What belongs to the operating system: read by every program, never an input.
SYSTEM_FOLDERS = tuple(
    Path(name)
    for name in (
        "/usr",
        "/lib",
        "/lib64",
        "/bin",
        "/sbin",
        "/etc",
        "/proc",
        "/sys",
        "/dev",
        "/run",
        "/var",
        "/System",
        "/Library",
        "/private/var",
        "/private/etc",
        "/nix",
    )
)
# Folders that describe an installed package: part of the environment, no input.
_OWN_PACKAGE = Path(__file__).resolve().parents[1]
_PACKAGE_METADATA = frozenset({".dist-info", ".egg-info"})
# What tools keep for themselves below the home folder, and credentials. Anything else
# there is an input: a name belongs here only if no result is computed from its content.
HOME_TOOL_FILES = (
    ".cache/fontconfig",
    ".cache/huggingface/stored_tokens",
    ".cache/huggingface/token",
    ".cache/huggingface/xet",
    ".cache/jedi",
    ".cache/matplotlib",
    ".cache/numba",
    ".cache/parso",
    ".cache/pip",
    ".cache/reprobundle",
    ".cache/torch/kernels",
    ".cache/torch_extensions",
    ".cache/uv",
    ".conda/envs",
    ".conda/pkgs",
    ".config/gcloud",
    ".config/gh",
    ".config/pip",
    ".config/uv",
    ".ipython/README",
    ".ipython/profile_default/db",
    ".ipython/profile_default/history.sqlite",
    ".ipython/profile_default/history.sqlite-journal",
    ".ipython/profile_default/log",
    ".ipython/profile_default/pid",
    ".ipython/profile_default/security",
    ".ipython/profile_default/startup/README",
    ".jupyter/migrated",
    ".local/lib",
    ".local/share/jupyter",
    ".local/share/pipx",
    ".local/share/uv",
    ".pyenv/shims",
    ".pyenv/versions",
    ".triton/cache",
)
# matplotlib's list of fonts on macOS, with its version in the name.
_FONT_LIST = ".matplotlib/fontlist-"
# Weights and data sets that were fetched earlier: inputs, but for the bookkeeping.
HOME_DATA_CACHES = (
    ".cache/huggingface/hub",
    ".cache/huggingface/datasets",
    ".cache/torch/hub",
    ".cache/kagglehub",
)
# What such a cache keeps for itself.
_CACHE_BOOKKEEPING = frozenset({".locks", "refs", "version.txt", "trusted_list"})


@dataclass
class Accesses:
    """Files of one run, by where they lie.

    Attributes:
        read: Names below the scratch folder that were read.
        read_outside: Absolute paths read elsewhere: inputs the project does not hold.
        opened_as: Such a path → the one that led to it through a link.
        read_original: Absolute paths read in the original project instead of its copy.
        wrote_outside: Absolute paths written elsewhere.
        wrote_original: Absolute paths written in the original project.
        left_out: Files of tools below the home folder that were read: no inputs.
    """

    read: set[str] = field(default_factory=set)
    read_outside: set[Path] = field(default_factory=set)
    opened_as: dict[Path, Path] = field(default_factory=dict)
    read_original: set[Path] = field(default_factory=set)
    wrote_outside: set[Path] = field(default_factory=set)
    wrote_original: set[Path] = field(default_factory=set)
    left_out: set[Path] = field(default_factory=set)


@dataclass(frozen=True)
class Places:
    """The folders that give a path its meaning.

    Attributes:
        scratch: The copy of the project in which the run happened, resolved.
        original: The project itself, resolved; None at replay.
        ignored: Folders of the run's own machinery: session, environments.
        placed: Files that a replay gave to the run, wherever they lie: never machinery.
    """

    scratch: Path
    original: Path | None
    ignored: tuple[Path, ...]
    placed: frozenset[Path] = frozenset()


def accesses(files: tuple[EventFile, ...], places: Places) -> Accesses:
    """Sort every open that was seen by where the file lies.

    A file that the run itself wrote before reading it is no input; the caller tells
    that apart by the files it staged.
    """
    result = Accesses()
    wrote = {event.path for _, event in events_of(files, Open) if event.mode == "write"}
    for _, event in events_of(files, Open):
        path = Path(event.path)
        real = _resolved(path)
        if path.is_relative_to(places.scratch) or real.is_relative_to(places.scratch):
            if event.mode == "read":
                result.read.add(_scratch_name(path, real, places.scratch))
        elif _is_machinery(real, places):
            continue
        elif not _is_of_a_tool(real, places):
            _sort_outside(result, event, real, places, wrote=wrote)
        elif event.mode == "read" and event.path not in wrote and real.is_file():
            result.left_out.add(real)
    return result


def _scratch_name(path: Path, real: Path, scratch: Path) -> str:
    inside = path if path.is_relative_to(scratch) else real
    return inside.relative_to(scratch).as_posix()


def _sort_outside(
    result: Accesses, event: Open, real: Path, places: Places, *, wrote: set[str]
) -> None:
    original = places.original is not None and real.is_relative_to(places.original)
    if event.mode == "write":
        if not original and _is_temporary(real) and not real.exists():
            return  # A temporary file that the run removed again.
        (result.wrote_original if original else result.wrote_outside).add(real)
    elif original:
        result.read_original.add(real)
    elif event.path not in wrote and real.is_file():
        opened = _source_of(Path(event.path))
        real = _resolved(opened)
        result.read_outside.add(real)
        if opened != real:
            # Several names of one content: the first in order, on every machine.
            result.opened_as[real] = min(result.opened_as.get(real, opened), opened)


def _source_of(path: Path) -> Path:
    """Return the source that a file of Python's bytecode cache was made of.

    A module is read from its cache, which is another one on another machine; its
    content is that of the source (PEP 3147 has the names).
    """
    if path.suffix != ".pyc" or path.parent.name != "__pycache__":
        return path
    source = path.parent.parent / f"{path.name.partition('.')[0]}.py"
    return source if source.is_file() else path


def _is_temporary(path: Path) -> bool:
    return path.is_relative_to(Path(tempfile.gettempdir()).resolve())


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def _is_machinery(path: Path, places: Places) -> bool:
    if path in places.placed:
        return False
    if any(path.is_relative_to(folder) for folder in places.ignored):
        return True
    if places.original is not None and path.is_relative_to(places.original):
        return False
    if path.is_relative_to(_OWN_PACKAGE):
        # Installed from a checkout: what a script imports of us is no input of its.
        return True
    if path.parent.suffix in _PACKAGE_METADATA:
        # torch reads the entry points of whatever is installed, wherever it lies.
        return True
    if any(path.is_relative_to(folder) for folder in SYSTEM_FOLDERS):
        # The temporary folder lies below /var on macOS and is not the system's.
        return not _is_temporary(path)
    return any(
        path.is_relative_to(Path(prefix)) for prefix in {sys.prefix, sys.base_prefix}
    )


def _is_of_a_tool(path: Path, places: Places) -> bool:
    """Tell whether a file below the home folder is a tool's own, by its name."""
    home = Path.home()
    if path in places.placed or not path.is_relative_to(home):
        return False
    if places.original is not None and path.is_relative_to(places.original):
        return False
    if any(path.is_relative_to(home / name) for name in HOME_DATA_CACHES):
        return not _CACHE_BOOKKEEPING.isdisjoint(path.parts)
    if path.relative_to(home).as_posix().startswith(_FONT_LIST):
        return True
    return any(path.is_relative_to(home / name) for name in HOME_TOOL_FILES)
