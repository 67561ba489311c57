"""A replay whose record could not be kept does not begin."""

import os
from typing import cast

import pytest

from reprobundle.errors import EnvironmentUnusableError
from reprobundle.replay import replay as module
from reprobundle.replay.options import ReplayOptions
from reprobundle.replay.plan import ReplayPlan


def test_a_read_only_bundle_is_refused_before_anything_runs(tmp_path, monkeypatch):
    bundle = tmp_path / "paper.rpb.zip"
    bundle.write_bytes(b"")
    # Permissions do not bind the administrator, who may run these tests.
    monkeypatch.setattr(
        os, "access", lambda path, mode: not (path == bundle and mode == os.W_OK)
    )
    monkeypatch.setattr(module, "ReplayJob", pytest.fail)
    with pytest.raises(EnvironmentUnusableError, match=r"is read-only.*--record"):
        module.replay(ReplayOptions(bundle=bundle), cast("ReplayPlan", None), say=print)
