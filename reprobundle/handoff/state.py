"""What this machine knows of a hand-off: so that any terminal may ask for it.

One folder for each, with ``state.json`` in it, in the user's state folder. The list of
places names every copy that was made, on either machine, and what became of it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Literal

import msgspec

from reprobundle.errors import BadCallError
from reprobundle.format.atomic import replacing
from reprobundle.format.canonical import encode
from reprobundle.handoff.errors import UnknownHandoffError
from reprobundle.handoff.ssh import Destination

STATE_NAME = "state.json"
ID_LENGTH = 12

Kind = Literal["bundle", "packages", "program", "run", "record"]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A copy that was made.

    Attributes:
        kind: What it is a copy of: the ``bundle``, the ``packages`` of its lock, this
            ``program``, what the ``run`` wrote, its ``record``.
        where: ``DESTINATION:PATH``, or a path of this machine.
        made: RFC 3339, UTC.
        removed: The same, once it was seen to be gone; empty while it is there.
    """

    kind: Kind
    where: str
    made: str
    removed: str = ""


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A hand-off, as this machine knows it.

    Attributes:
        name: Of the hand-off; also that of its folder here.
        bundle: Id of the bundle.
        path: The bundle file here.
        destination, ssh_options, port: How the other machine is reached.
        root: Folder of all hand-offs there.
        python: The interpreter there that answers; empty while none is known.
        options: Options of the replay.
        began: RFC 3339, UTC.
        places: Every copy that was made.
        data_class: As the sealed policy states it; empty for nothing stated.
        delete_by: Day by which copies have to be gone; empty for none.
        overridden: Why the sealed policy was not followed; empty if it was.
        fetched: Ids of the replays that were attached.
        findings: What went wrong on the way, as last seen.
    """

    name: str
    bundle: str
    path: str
    destination: str
    ssh_options: tuple[str, ...] = ()
    port: int = 0
    root: str
    python: str = ""
    options: tuple[str, ...] = ()
    began: str
    places: tuple[Place, ...] = ()
    data_class: str = ""
    delete_by: str = ""
    overridden: str = ""
    fetched: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()

    @property
    def reached(self) -> Destination:
        """How the other machine is reached."""
        return Destination(self.destination, self.ssh_options, self.port)

    @property
    def far_name(self) -> str:
        """Name of the folder there."""
        return self.bundle[:ID_LENGTH]

    def with_places(self, *places: Place) -> State:
        """Return it with more copies; one that is known already stays as it is."""
        known = {one.where for one in self.places if not one.removed}
        new = tuple(one for one in places if one.where not in known)
        return msgspec.structs.replace(self, places=(*self.places, *new))

    def without(self, where: str) -> State:
        """Return it with every copy at or below `where` marked as removed now."""
        gone = tuple(
            msgspec.structs.replace(one, removed=now())
            if not one.removed
            and (one.where == where or one.where.startswith(f"{where}/"))
            else one
            for one in self.places
        )
        return msgspec.structs.replace(self, places=gone)


def now() -> str:
    """Return the time, RFC 3339 in UTC."""
    return datetime.now(tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def day_in(days: int) -> str:
    """Return the day that many days from now."""
    return (datetime.now(tz=timezone.utc) + timedelta(days=days)).date().isoformat()


def handoffs_root() -> Path:
    """Return the folder of all hand-offs of this machine."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "reprobundle" / "handoffs"


def name_of(bundle: str, destination: Destination) -> str:
    """Return the name of the hand-off of a bundle to a destination."""
    plain = re.sub(r"[^A-Za-z0-9_.@-]+", "-", destination.name)[:80]
    port = f"-{destination.port}" if destination.port else ""
    return f"{bundle[:ID_LENGTH]}-{plain}{port}"


def load(name: str, root: Path | None = None) -> State | None:
    """Return the state of a hand-off; None when there is none that can be read."""
    try:
        data = ((root or handoffs_root()) / name / STATE_NAME).read_bytes()
        return msgspec.json.decode(data, type=State)
    except (OSError, msgspec.DecodeError):
        return None


def save(state: State, root: Path | None = None) -> State:
    """Write the state down, and return it."""
    folder = (root or handoffs_root()) / state.name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with replacing(folder / STATE_NAME) as descriptor:
        os.write(descriptor, encode(state))
    return state


def known(root: Path | None = None) -> tuple[State, ...]:
    """Return every hand-off that this machine knows, the newest first."""
    top = root or handoffs_root()
    found = [load(path.parent.name, top) for path in top.glob(f"*/{STATE_NAME}")]
    states = [one for one in found if one is not None]
    return tuple(sorted(states, key=lambda one: one.began, reverse=True))


def find(wanted: str, root: Path | None = None) -> State:
    """Return the one hand-off that a name, a host or a bundle stands for.

    Raises:
        UnknownHandoffError: There is none.
        BadCallError: There are several.
    """
    everything = known(root)
    path = str(Path(wanted).absolute()) if wanted else ""
    fit = [
        one
        for one in everything
        if one.name.startswith(wanted) or wanted == one.destination or path == one.path
    ]
    # What never reached its machine stands in nobody's way, and can be named in full.
    exact = (
        [one for one in fit if one.name == wanted]
        or [one for one in fit if one.python]
        or fit
    )
    if not exact:
        what = f"no hand-off {wanted!r} is known" if wanted else "no hand-off is known"
        raise UnknownHandoffError(
            f"{what} on this machine", advice="reprobundle handoff status lists all"
        )
    if len(exact) > 1:
        names = ", ".join(one.name for one in exact)
        raise BadCallError(
            f"{wanted!r} may be any of {names}" if wanted else f"there are {names}",
            advice="name one of them",
        )
    return exact[0]


def forget(state: State, root: Path | None = None) -> None:
    """Remove what this machine knows of a hand-off."""
    shutil.rmtree((root or handoffs_root()) / state.name)


@contextlib.contextmanager
def claimed(name: str, root: Path | None = None) -> Iterator[None]:
    """Be the only process of this machine that drives a hand-off.

    Raises:
        BadCallError: Another one does.
    """
    folder = (root or handoffs_root()) / name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / "lock").open("w") as claim:
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise BadCallError(
                f"another terminal is at hand-off {name} already",
                advice=f"watch it there, or: reprobundle handoff logs {name} --follow",
            ) from error
        yield
