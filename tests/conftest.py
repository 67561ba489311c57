"""Fixtures that every area shares, and the rules for skipping."""

from __future__ import annotations

import os
import shutil

import pytest

TOOLS = ("unzip", "bsdtar", "7z", "zstd", "b3sum")


def pytest_collection_modifyitems(items):
    """Skip what this machine cannot run; where skipping is forbidden, fail instead."""
    missing = [name for name in TOOLS if shutil.which(name) is None]
    for item in items:
        if "tools" in item.keywords and missing:
            reason = f"not installed: {', '.join(missing)}"
            if os.environ.get("REPROBUNDLE_REQUIRE_TOOLS") == "1":
                item.add_marker(pytest.mark.usefixtures("missing_tools_are_an_error"))
            else:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def missing_tools_are_an_error():
    missing = [name for name in TOOLS if shutil.which(name) is None]
    pytest.fail(f"REPROBUNDLE_REQUIRE_TOOLS=1 but not installed: {', '.join(missing)}")
