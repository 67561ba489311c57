"""Every place on this machine where a copy of a bundle's data was made.

Kept for bundles whose policy states rules about data, in the user's state folder: one
line for each copy, and one more when it is seen to be gone. Nothing is ever rewritten.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from reprobundle.format.atomic import explained
from reprobundle.format.policy import DataRules

LOG_NAME = "copies.jsonl"

Kind = Literal["bundle", "run", "record", "members", "export", "printed"]


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    """A copy that was made.

    Attributes:
        bundle: Id of the bundle.
        kind: The ``bundle`` file where it was used, the folder of a ``run``, its
            ``record`` in a file of its own, extracted ``members``, an ``export``, or
            members that were ``printed``.
        where: Its path, or words for what has none.
        made: RFC 3339, UTC.
        data_class: As the policy states it.
        delete_by: Last day on which it may be there; empty for no such day.
        overridden: What of the policy was not followed and why; empty if nothing.
        removed: When it was seen to be gone, RFC 3339; empty before.
    """

    bundle: str
    kind: Kind
    where: str
    made: str
    data_class: str
    delete_by: str = ""
    overridden: str = ""
    removed: str = ""

    @property
    def is_traced(self) -> bool:
        """Whether it lies at a path of this machine."""
        return self.where.startswith("/")

    @property
    def is_there(self) -> bool:
        """Whether it is known or seen to be there now."""
        if self.removed or not self.is_traced:
            return False
        path = Path(self.where)
        return path.is_symlink() or path.exists()

    def is_overdue(self, day: str) -> bool:
        """Whether it should be gone by that day and is not."""
        return bool(self.delete_by) and day > self.delete_by and self.is_there


class Log(NamedTuple):
    """What was read: the copies, oldest first, and how many lines were not."""

    copies: tuple[Copy, ...]
    unread: int


class DataUse:
    """One use of a bundle's data; it notes the copies that are made.

    Nothing is noted for a bundle without rules.

    Attributes:
        overridden: What of the rules is not followed and why; empty if all is.
    """

    def __init__(self, bundle: str, rules: DataRules | None, overridden: str) -> None:
        self.overridden = overridden
        self._bundle = bundle
        self._rules = rules

    @property
    def is_noted(self) -> bool:
        """Whether copies are noted."""
        return self._rules is not None

    def copied(self, kind: Kind, where: Path | str) -> None:
        """Note a copy that is about to be made.

        Raises:
            EnvironmentUnusableError: It cannot be written down.
        """
        if self._rules is None:
            return
        place = _place(where) if isinstance(where, Path) else where
        bundles = [one for one in self._earlier() if one.kind == "bundle"]
        if kind == "bundle" and place in {one.where for one in bundles}:
            return
        copy = Copy(
            bundle=self._bundle,
            kind=kind,
            where=place,
            made=now(),
            data_class=self._rules.data_class,
            delete_by=self._last_day(bundles if kind == "bundle" else ()),
            overridden=self.overridden,
        )
        _append(copy)

    def removed(self, where: Path) -> None:
        """Note that a copy is gone, if it is."""
        for one in self._earlier():
            if one.where == _place(where) and not one.is_there:
                _append(msgspec.structs.replace(one, removed=now()))

    def _last_day(self, bundles: Sequence[Copy]) -> str:
        """Return by when a copy made now has to be gone; empty for never.

        A bundle that lies at another place than before was moved there, or copied:
        that gives it no more time than the first of `bundles` had.
        """
        days = self._rules.delete_after_days if self._rules else None
        if days is None:
            return ""
        known = [one.delete_by for one in bundles if one.is_traced and one.delete_by]
        return min([*known, _day_in(days)])

    def _earlier(self) -> Sequence[Copy]:
        if self._rules is None:
            return ()
        return [one for one in read_log(self._bundle).copies if not one.removed]


def log_path() -> Path:
    """Return where the copies of this machine are noted."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "reprobundle" / LOG_NAME


def read_log(bundle: str = "") -> Log:
    """Return the copies of one bundle, or of all, as they were last noted.

    Raises:
        EnvironmentUnusableError: The log cannot be read.
    """
    path = log_path()
    with explained(f"cannot read {str(path)!r}"):
        lines = path.read_bytes().splitlines() if path.exists() else []
    latest: dict[tuple[str, str, str], Copy] = {}
    unread = 0
    for line in lines:
        try:
            one = msgspec.json.decode(line, type=Copy)
        except msgspec.DecodeError:
            unread += 1
            continue
        if bundle in {"", one.bundle}:
            latest[(one.bundle, one.where, one.made)] = one
    return Log(tuple(latest.values()), unread)


def now() -> str:
    """Return the time, RFC 3339 in UTC."""
    return datetime.now(tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _day_in(days: int) -> str:
    return (datetime.now(tz=timezone.utc) + timedelta(days=days)).date().isoformat()


def _place(path: Path) -> str:
    """Return one name for one place: a link in its folder's name is no other place."""
    whole = path.absolute()
    return str(whole.parent.resolve() / whole.name)


def _append(copy: Copy) -> None:
    # Not at the top: `extract` imports this module, on Windows too.
    import fcntl

    path = log_path()
    with explained(f"a copy of data cannot be noted in {str(path)!r}"):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            os.write(descriptor, msgspec.json.encode(copy) + b"\n")
        finally:
            os.close(descriptor)
