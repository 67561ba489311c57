"""One stand-in for all tests, and the recorded runs that they share."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from tests.standin.bench import Standin, cached_build


@pytest.fixture(scope="session")
def standin(tmp_path_factory):
    """Return the stand-in; without a compiler the tests skip, or fail if they must."""
    if sys.platform != "linux":
        pytest.skip("the stand-in takes the place of a device that macOS has")
    missing = [name for name in ("c++", "ninja") if shutil.which(name) is None]
    if missing:
        reason = f"the stand-in device needs {' and '.join(missing)}"
        if os.environ.get("REPROBUNDLE_REQUIRE_TOOLS") == "1":
            pytest.fail(f"REPROBUNDLE_REQUIRE_TOOLS=1 but {reason}")
        pytest.skip(reason)
    return Standin(tmp_path_factory.mktemp("standin"), cached_build())
