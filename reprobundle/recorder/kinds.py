"""Tell what kind of process this is from its command line."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# How the standard library, joblib and torch start processes that run no user code.
# A fork server is one of them; the workers it forks are not.
_SERVICES = (
    "from multiprocessing.resource_tracker import main",
    "from multiprocessing.semaphore_tracker import main",
    "from multiprocessing.forkserver import main",
    "loky.backend.resource_tracker import main",
)
_COMPILE_WORKER = "torch/_inductor/compile_worker"
_FORK_SERVER = "from multiprocessing.forkserver import main"


def is_helper(argv: Sequence[str]) -> bool:
    """Tell whether a command line is a service process without user code."""
    return any(service in part for part in argv for service in _SERVICES) or any(
        _COMPILE_WORKER in part.replace(".", "/") for part in argv
    )


def forks_user_code(argv: Sequence[str]) -> bool:
    """Tell whether the forks of this process run user code.

    True for everything but the pure services, whose forks are services too.
    """
    return not is_helper(argv) or any(_FORK_SERVER in part for part in argv)
