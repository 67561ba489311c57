"""Compare this machine with what a bundle needs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from reprobundle.format.canonical import decode
from reprobundle.format.doctor_report import CheckState, DoctorCheck
from reprobundle.format.lock import LOCK_MEMBER, PYLOCK_MEMBER, Lock
from reprobundle.format.reader import Bundle, open_bundle
from reprobundle.format.record import Fact, Record
from reprobundle.port.doctor.asked import Facts
from reprobundle.run.system_packages import (
    PACKAGES,
    install_command,
    missing_packages,
)

RECORD = "runs/1/record.json"
RECORD_LIMIT_BYTES = 64 << 20
# A replay holds the extracted files, a stage and a scratch copy at once.
COPIES = 3
# Unpacked archives and temporary copies beside the installed packages.
ENVIRONMENT_FACTOR = 1.5
TIGHT_SHARE = 0.8
_HOST = ("cpu", "meta")


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What the reference of a bundle had and used.

    Attributes:
        bundle: Its id.
        record: The reference.
        lock: Its environment.
        portable: Whether the bundle holds a lock for other systems.
        files_bytes: Size of its project and input files.
    """

    bundle: str
    record: Record
    lock: Lock
    portable: bool
    files_bytes: int

    @property
    def device(self) -> str:
        """The accelerator that the reference used, or ``cpu``."""
        seen = [one for one in self.record.devices.observed if one not in _HOST]
        return seen[0] if seen else "cpu"


def read_needs(path: Path) -> Needs:
    """Return what a bundle needs; nothing of it is run.

    Raises:
        BundleError: It cannot be read, or a document breaks its schema.
    """
    with open_bundle(path) as bundle:
        return _needs(bundle)


def _needs(bundle: Bundle) -> Needs:
    record = bundle.read(RECORD, limit_bytes=RECORD_LIMIT_BYTES)
    members = [m for m in bundle.members.values() if m.role in {"project", "input"}]
    return Needs(
        bundle=bundle.id,
        record=decode(
            record,
            Record,
            where=RECORD,
            rule="R-7.2",
            limit_bytes=RECORD_LIMIT_BYTES,
        ),
        lock=decode(bundle.read(LOCK_MEMBER), Lock, where=LOCK_MEMBER, rule="R-7.3"),
        portable=PYLOCK_MEMBER in bundle.members,
        files_bytes=sum(member.size_bytes for member in members),
    )


def needs_checks(
    facts: Facts, needs: Needs, *, free_bytes: Callable[[], int] | None = None
) -> Iterator[DoctorCheck]:
    """Yield one check for each need.

    Args:
        facts: What the interpreter said.
        needs: Of the bundle.
        free_bytes: Room for temporary files; asked of this machine by default.
    """
    free = free_bytes or (lambda: shutil.disk_usage(tempfile.gettempdir()).free)
    yield _python(facts, needs)
    yield _torch(facts, needs)
    yield _system(facts, needs)
    yield _device(facts, needs)
    yield _memory(facts, needs)
    yield _disk(needs, free)
    yield _data(needs)
    yield _packages(needs)


def _check(
    name: str, state: CheckState, got: str, wanted: str = "", remedy: str = ""
) -> DoctorCheck:
    shown = remedy if state in {"warn", "problem", "unknown"} else ""
    return DoctorCheck(
        group="needs", name=name, state=state, got=got, wanted=wanted, remedy=shown
    )


def _python(facts: Facts, needs: Needs) -> DoctorCheck:
    wanted = needs.lock.python
    here = facts.text("python.version")
    name = "bundle-python"
    if not here:
        return _check(name, "unknown", facts.why("python.version"), wanted.version)
    same = here.split(".")[:2] == wanted.minor.split(".")
    remedy = f"install Python {wanted.minor}; replay --env fresh then takes it"
    return _check(name, "ok" if same else "warn", here, wanted.version, remedy)


def _torch(facts: Facts, needs: Needs) -> DoctorCheck:
    name = "bundle-torch"
    locked = needs.lock.find("torch")
    here = facts.text("torch.version")
    if locked is None:
        return _check(name, "not-applicable", "the bundle's environment has no torch")
    wanted = locked.version
    remedy = "replay --env fresh installs it; another torch may give other numbers"
    if not here:
        return _check(name, "warn", facts.why("torch.version"), wanted, remedy)
    same = here.partition("+")[0] == wanted.partition("+")[0]
    return _check(name, "ok" if same else "warn", here, wanted, remedy)


def _system(facts: Facts, needs: Needs) -> DoctorCheck:
    name = "bundle-system"
    python = needs.lock.python
    wanted = f"{python.system} {python.architecture}"
    here = f"{facts.text('os.system').lower()} {facts.text('machine.architecture')}"
    if not here.strip():
        return _check(name, "unknown", facts.why("os.system"), wanted)
    if here == wanted:
        return _check(name, "ok", here, wanted)
    if needs.portable:
        return _check(name, "ok", f"{here}; the bundle has a lock for it", wanted)
    why = needs.lock.pylock_unknown or "the bundle holds none"
    remedy = f"there is no lock for this system ({why}): expect other packages"
    return _check(name, "warn", here, wanted, remedy)


def _device(facts: Facts, needs: Needs) -> DoctorCheck:
    name, wanted = "bundle-device", needs.device
    if wanted == "cpu":
        return _check(name, "ok", "the reference used the CPU alone", wanted)
    if wanted == "mps" and facts.value("mps.trial") == "ok":
        return _check(name, "ok", "a tensor was computed on MPS", wanted)
    if wanted == "cuda" and facts.value("cuda.available"):
        return _check(name, "ok", "torch can use CUDA here", wanted)
    if wanted not in {"mps", "cuda"}:
        return _check(name, "unknown", f"{wanted} is not asked for here", wanted)
    remedy = "a replay here is on another device, and is judged as that"
    why = facts.text(f"{wanted}.cause") or facts.why(f"{wanted}.available")
    return _check(name, "warn", why or f"{wanted} cannot be used here", wanted, remedy)


def _memory(facts: Facts, needs: Needs) -> DoctorCheck:
    name = "bundle-memory"
    total = facts.value("memory.total_bytes")
    limit = facts.value("memory.limit_bytes")
    rooms = [one for one in (total, limit) if isinstance(one, int) and one > 0]
    host = _bytes(needs.record.memory.peak_rss_bytes)
    device = _bytes(needs.record.memory.peak_device_bytes)
    is_mac = facts.text("os.system") == "Darwin"
    # A Mac has one memory for both.
    wanted = host + (device if is_mac else 0)
    said = f"{wanted / 2**30:.2f} GiB, as the author measured"
    if not wanted:
        return _check(name, "unknown", "the bundle does not say how much was used")
    if not rooms:
        return _check(name, "unknown", facts.why("memory.total_bytes"), said)
    room = min(rooms)
    got = f"{room / 2**30:.2f} GiB"
    state: CheckState = "ok" if wanted <= TIGHT_SHARE * room else "warn"
    working_set = facts.value("mps.recommended_max_bytes")
    if isinstance(working_set, int) and device > working_set:
        state, got = "warn", f"{got}, of them {working_set / 2**30:.2f} GiB for the GPU"
    if wanted > room:
        state = "problem"
    return _check(name, state, got, said, "take a machine with more memory")


def _bytes(fact: Fact) -> int:
    return fact.value if isinstance(fact.value, int) else 0


def _disk(needs: Needs, free_bytes: Callable[[], int]) -> DoctorCheck:
    name = "bundle-disk"
    files = COPIES * needs.files_bytes
    packages = int(ENVIRONMENT_FACTOR * needs.lock.size_bytes)
    wanted = (
        f"{files / 2**30:.2f} GiB for files, {packages / 2**30:.2f} GiB more for a "
        "fresh environment"
    )
    try:
        free = free_bytes()
    except OSError as error:
        return _check(name, "unknown", error.strerror or str(error), wanted)
    state: CheckState = "ok" if files + packages <= free else "warn"
    if files > free:
        state = "problem"
    return _check(
        name, state, f"{free / 2**30:.2f} GiB free", wanted, "free some space"
    )


def _data(needs: Needs) -> DoctorCheck:
    name = "bundle-data"
    withheld = [one.name for one in needs.record.withheld]
    if not withheld:
        return _check(name, "ok", "the bundle holds every file that it needs")
    got = f"held by digest only: {', '.join(withheld[:4])}"
    return _check(name, "warn", got, "", f"replay --data {withheld[0]}=FILE")


def _packages(needs: Needs) -> DoctorCheck:
    name = "bundle-system-packages"
    fact = needs.record.environment.get(PACKAGES)
    if fact is None or fact.value is None:
        why = fact.unknown if fact is not None else "the bundle does not name any"
        return _check(name, "unknown", why)
    tool = fact.source.split()[0] if fact.source else ""
    if not tool or shutil.which(tool) is None:
        return _check(
            name, "unknown", f"they are named by {tool or 'nobody'} of another system"
        )
    missing = missing_packages(fact)
    if not missing:
        return _check(name, "ok", "none is missing")
    got = f"not installed: {', '.join(missing[:4])}"
    return _check(name, "warn", got, "", install_command(fact, missing))
