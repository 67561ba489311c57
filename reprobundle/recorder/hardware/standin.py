"""A device of type ``mps`` off a Mac: a stand-in for tests, never an Apple GPU."""

from __future__ import annotations

from .mps import Mps


class MpsStandin(Mps):
    """What `Mps` is, under a name by which nobody takes it for one."""

    name = "mps-standin"
