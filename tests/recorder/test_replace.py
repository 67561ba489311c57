"""Wrappers that look like what they wrap, and names that a script took for itself."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any

import pytest

from reprobundle.recorder import replace as replacing
from reprobundle.recorder.replace import displaced, replace

TORCH = "/somewhere/torch/"


def save(name: str, *, depth: int = 1) -> str:
    """Save."""
    return name * depth


@pytest.fixture
def torch(monkeypatch):
    module: Any = ModuleType("torch.made_up")
    module.save, module.load = save, len
    monkeypatch.setitem(sys.modules, "torch.made_up", module)
    monkeypatch.setattr(replacing, "_known", {})
    replace(module, "save", wrapping)
    return module


def wrapping(original):
    def wrapper(*arguments, **named):
        return original(*arguments, **named) + "!"

    return wrapper


def test_a_wrapper_is_found_by_name_and_has_the_looks_of_the_original(torch):
    assert torch.save("a", depth=2) == "aa!"
    assert inspect.signature(torch.save) == inspect.signature(save)
    assert (torch.save.__doc__, torch.save.__module__) == ("Save.", "torch.made_up")
    assert sys.modules[torch.save.__module__].save is torch.save


def test_a_function_in_the_place_of_a_wrapper_is_named(torch):
    assert displaced(TORCH) == []
    torch.save = lambda name: name
    assert displaced(TORCH) == ["torch.made_up.save"]


def test_who_puts_the_original_back_or_is_torch_itself_is_not_named(torch):
    own = torch.save
    torch.save = save
    assert displaced(TORCH) == []
    again = wrapping(own)
    again.__code__ = again.__code__.replace(co_filename=f"{TORCH}compiler.py")
    torch.save = again
    assert displaced(TORCH) == []


def test_a_name_that_the_module_lacks_is_left_alone(torch):
    assert replace(torch, "absent", wrapping) is None
    assert not hasattr(torch, "absent")
