"""Start the recorder before the user's code, then run the site's own customisation.

The interpreter imports a module of this name at start-up if it finds one on its path.
This one stands before any other, so it hands over to the next. Older interpreters
than the recorder supports may read it too: no syntax here is younger than they.
"""

from __future__ import annotations

import os
import sys


def _enter(folder: str) -> None:
    if not os.path.isfile(os.path.join(os.path.dirname(folder), "config.json")):
        return
    try:
        import _reprobundle_recorder  # type: ignore[import-not-found]

        _reprobundle_recorder.enter()
    except Exception:
        # The run is the user's; it goes on without us, and the launcher notices.
        pass


def _hand_over(folder: str) -> None:
    """Import the next module of this name, as if this one had never been found."""
    own = sys.modules.pop(__name__, None)
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != folder]
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        if own is not None:
            sys.modules.setdefault(__name__, own)


_here = os.path.dirname(os.path.abspath(__file__))
_enter(_here)
_hand_over(_here)
