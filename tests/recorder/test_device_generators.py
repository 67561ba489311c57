"""The generator of an accelerator as it is when that is first in use."""

from __future__ import annotations

from collections import UserDict
from typing import Any

import pytest

from reprobundle.recorder.generators import Generators, state_fingerprint

torch = pytest.importorskip("torch")


class Kind:
    """A device with two places, of which the second is in use later."""

    def __init__(self):
        self.places = {"cuda:0": torch.tensor([1, 2], dtype=torch.uint8)}

    def generator_states(self):
        return self.places.items()


class Devices:
    def __init__(self, *kinds):
        self.kinds = kinds

    def accelerators_in_use(self):
        return list(self.kinds)


class Session(UserDict[str, str]):
    def emit(self, event, *, when, fingerprints):
        assert (event, when) == ("generators", "initial")
        assert not set(fingerprints) & set(self.data), "told twice"
        self.data.update(fingerprints)


def watching(session, *kinds):
    devices: Any = Devices(*kinds)
    return Generators(session, devices)


def test_each_place_is_told_once_as_it_was_first_seen():
    kind = Kind()
    session: Any = Session()
    generators = watching(session, kind)
    generators.on_accelerator()
    first = state_fingerprint(torch.tensor([1, 2], dtype=torch.uint8))
    assert session.data == {"torch.cuda:0": first}
    kind.places["cuda:0"] = torch.tensor([9, 9], dtype=torch.uint8)
    kind.places["cuda:1"] = torch.tensor([3, 4], dtype=torch.uint8)
    generators.on_accelerator()
    assert session.data["torch.cuda:0"] == first
    assert set(session.data) == {"torch.cuda:0", "torch.cuda:1"}


def test_a_device_that_is_not_in_use_is_not_asked():
    session: Any = Session()
    watching(session).on_accelerator()
    assert session.data == {}
