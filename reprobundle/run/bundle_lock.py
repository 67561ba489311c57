"""What the lock inside a bundle comes to on a named kind of machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reprobundle.errors import BadCallError
from reprobundle.format.canonical import decode
from reprobundle.format.lock import LOCK_MEMBER, PYLOCK_MEMBER, Lock
from reprobundle.run.pylock_file import Selection, parse_pylock, select
from reprobundle.run.targets import Target, target_named

if TYPE_CHECKING:
    from reprobundle.format.reader import Bundle


def locked_selection(bundle: Bundle, target: str) -> tuple[Target, Selection, Lock]:
    """Return the machine, what the lock installs on it, and the recorded environment.

    Args:
        bundle: An opened bundle.
        target: One of `reprobundle.run.targets.TARGETS`.

    Raises:
        BadCallError: There is no such target, or the bundle has no lock for others.
        LockFileError: The lock cannot be read.
    """
    lock = decode(bundle.read(LOCK_MEMBER), Lock, where=LOCK_MEMBER, rule="R-7.3")
    wanted = target_named(target, lock.python)
    if PYLOCK_MEMBER not in bundle.members:
        raise BadCallError(
            f"{bundle.path.name} holds no lock for other systems: "
            f"{lock.pylock_unknown or 'none was made'}",
            advice="pack it again where uv and a package index can be reached",
        )
    return wanted, select(parse_pylock(bundle.read(PYLOCK_MEMBER)), wanted), lock
