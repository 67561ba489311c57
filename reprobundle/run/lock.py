"""Read the environment of a run into a lock.

What can be done with a lock lies beside: `drift` compares two, `requirements` writes
one for an installer.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from reprobundle.errors import EnvironmentUnusableError
from reprobundle.format.lock import Distribution, Interpreter, Lock
from reprobundle.run import package_origin
from reprobundle.run.drift import Drift, drift
from reprobundle.run.installed_files import read_record
from reprobundle.run.requirements import (
    TOOLS,
    find_lock_files,
    requirements_text,
)
from reprobundle.temporary.guarded import owned_folder

__all__ = [
    "TOOLS",
    "Drift",
    "Editable",
    "LiveDistribution",
    "LiveEnvironment",
    "drift",
    "find_lock_files",
    "probe",
    "requirements_text",
    "to_lock",
]

PROBE = Path(__file__).parent / "probe_environment.py"
PROBE_TIMEOUT_SECONDS = 120


class LiveDistribution(msgspec.Struct, frozen=True, kw_only=True):
    """One distribution as the probe found it.

    Attributes:
        name, version: As the metadata state them.
        folder: Its metadata folder.
        installer: What its INSTALLER file says.
        direct_url: Parsed ``direct_url.json``, or None.
        editable: Whether it is imported from its source folder.
        source: That folder, for the old kind of editable install without a
            ``direct_url.json``.
        import_paths: Folders an editable install is imported from.
        top_level: Names of its import packages, if it tells them.
        requires: Its requirements.
    """

    name: str
    version: str
    folder: str
    installer: str
    direct_url: dict[str, Any] | None
    editable: bool
    source: str
    import_paths: tuple[str, ...]
    top_level: tuple[str, ...]
    requires: tuple[str, ...]


class LiveEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """What the probe says about an interpreter; paths are those of this machine.

    Attributes:
        version, implementation, architecture, system, platform, libc: See
            `Interpreter`; platform is still in the form of ``sysconfig``.
        executable, prefix, base_prefix, purelib, platlib: Where it is.
        pip: Version of its pip; empty when it has none.
        distributions: In the order of its path: the first of a name is imported.
        unreadable: Names of metadata folders that could not be read.
    """

    version: str
    implementation: str
    architecture: str
    system: str
    platform: str
    libc: str
    executable: str
    prefix: str
    base_prefix: str
    purelib: str
    platlib: str
    pip: str
    distributions: tuple[LiveDistribution, ...]
    unreadable: tuple[str, ...]

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders that hold the environment and the Python below it."""
        names = (self.prefix, self.base_prefix, self.purelib, self.platlib)
        return tuple(dict.fromkeys(Path(name).resolve() for name in names))

    @property
    def editables(self) -> tuple[Editable, ...]:
        """The packages that are imported from a source folder."""
        found = (_editable(item) for item in self.distributions if item.editable)
        return tuple(item for item in found if item is not None)


@dataclass(frozen=True)
class Editable:
    """A package that is imported from its source folder.

    Attributes:
        name: Distribution name as its metadata state it.
        location: The source folder.
        import_paths: Folders that stand for it on ``sys.path``; empty when its import
            hook does not tell them.
        packages: Import names, if known.
    """

    name: str
    location: Path
    import_paths: tuple[Path, ...]
    packages: tuple[str, ...]


def probe(python: Path, *, env: Mapping[str, str] | None = None) -> LiveEnvironment:
    """Ask the interpreter `python` what is installed beside it.

    Args:
        python: Path of the interpreter.
        env: Its whole environment; ours by default.

    Raises:
        EnvironmentUnusableError: It cannot be run, or is older than Python 3.9.
    """
    with owned_folder("reprobundle-probe-") as folder:
        script = folder / PROBE.name
        answer = folder / "environment.json"
        shutil.copyfile(PROBE, script)
        problem = _run_probe(python, script, answer, env)
        try:
            return msgspec.json.decode(answer.read_bytes(), type=LiveEnvironment)
        except (OSError, msgspec.DecodeError) as error:
            raise EnvironmentUnusableError(
                f"interpreter {str(python)!r} does not tell its packages: {problem}",
                advice="check that it starts and is Python 3.9 or newer",
            ) from error


def _run_probe(
    python: Path, script: Path, answer: Path, env: Mapping[str, str] | None
) -> str:
    """Run the probe and return what went wrong, in one line."""
    try:
        done = subprocess.run(
            [str(python), "-B", str(script), str(answer)],
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=PROBE_TIMEOUT_SECONDS,
        )
    except OSError as error:
        return str(error.strerror)
    except subprocess.TimeoutExpired:
        return f"no answer within {PROBE_TIMEOUT_SECONDS} s"
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"it ended with status {done.returncode}"


def to_lock(
    live: LiveEnvironment, *, project: Path | None = None, home: Path | None = None
) -> Lock:
    """Turn a live environment into a lock without private paths or credentials.

    Args:
        live: From `probe`.
        project: Top folder of the project; distributions from it become
            ``{project}``.
        home: Folder to write as ``~``; the user's own by default.
    """
    places = package_origin.Places(project=project, home=home or Path.home())
    locked: dict[str, Distribution] = {}
    unreadable = set(live.unreadable)
    for item in live.distributions:
        try:
            distribution = _locked(item, places)
        except (msgspec.ValidationError, ValueError):
            unreadable.add(Path(item.folder).name)
            continue
        locked.setdefault(distribution.name, distribution)
    return Lock(
        python=_interpreter(live),
        distributions=tuple(locked[name] for name in sorted(locked)),
        unreadable=tuple(sorted(unreadable)),
    )


def _interpreter(live: LiveEnvironment) -> Interpreter:
    return Interpreter(
        version=live.version,
        implementation=live.implementation,
        architecture=live.architecture,
        system=live.system,
        platform=live.platform.replace("-", "_").replace(".", "_"),
        libc=live.libc,
    )


def _locked(item: LiveDistribution, places: package_origin.Places) -> Distribution:
    origin, detail, sha256 = package_origin.origin(
        item.direct_url, editable=item.editable, source=item.source, places=places
    )
    files = read_record(Path(item.folder))
    fields = {
        "name": package_origin.normalised(item.name),
        "version": item.version,
        "local_label": item.version.partition("+")[2],
        "origin": origin,
        "detail": detail,
        "sha256": sha256,
        "installer": item.installer,
        "record_digest": files.digest,
        "record_unknown": files.unknown,
        "size_bytes": files.size_bytes,
        "requires": tuple(
            package_origin.clean_requirement(one) for one in item.requires
        ),
    }
    # Constructing a Struct checks no constraint; converting does.
    return msgspec.convert(fields, Distribution)


def _editable(item: LiveDistribution) -> Editable | None:
    location = package_origin.source_folder(item.direct_url, item.source)
    if location is None:
        return None
    paths = item.import_paths or ((item.source,) if item.source else ())
    return Editable(
        name=item.name,
        location=location,
        import_paths=tuple(Path(path) for path in paths),
        packages=item.top_level,
    )
