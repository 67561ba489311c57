"""Fixtures that every area shares, and the rules for skipping."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

# No test asks a package index: where pack would, it is told that there is none.
os.environ["UV_OFFLINE"] = "1"

# Marker → programs that its tests need; a tuple inside is any one of them.
NEEDS = {
    "tools": ("unzip", "bsdtar", "7z", "zstd", "b3sum"),
    "browser": (("chromium", "chromium-browser", "google-chrome"),),
    "encryption": ("age", "age-keygen", "gpg", "gpg-agent", "ssh-keygen"),
    "sshd": (("sshd", "/usr/sbin/sshd"), "ssh", "ssh-keygen"),
}


def pytest_collection_modifyitems(items):
    """Begin with what takes long; skip, or fail over, what this machine cannot run."""
    # Of several workers none then ends alone behind a long file.
    items.sort(key=lambda item: -BUDGET_SECONDS.get(area_of(item.nodeid), 0))
    for item in items:
        if "linux" in item.keywords and sys.platform != "linux":
            item.add_marker(pytest.mark.skip(reason="only Linux offers what it reads"))
    for marker in NEEDS:
        missing = missing_for(marker)
        if not missing:
            continue
        for item in items:
            if marker in item.keywords:
                if os.environ.get("REPROBUNDLE_REQUIRE_TOOLS") == "1":
                    item.add_marker(
                        pytest.mark.usefixtures("missing_tools_are_an_error")
                    )
                else:
                    item.add_marker(
                        pytest.mark.skip(reason=f"not installed: {missing}")
                    )


def missing_for(marker: str) -> str:
    """Return the programs that tests with `marker` lack, as one text."""
    wanted = [(one,) if isinstance(one, str) else one for one in NEEDS[marker]]
    return ", ".join(names[0] for names in wanted if not any(map(shutil.which, names)))


@pytest.fixture
def missing_tools_are_an_error(request):
    missing = [missing_for(one) for one in NEEDS if one in request.keywords]
    pytest.fail(f"REPROBUNDLE_REQUIRE_TOOLS=1 but not installed: {', '.join(missing)}")


# What each area may take on two quiet cores, in seconds. Going over it fails nothing,
# for a busy machine is no mistake of the code; the summary shows it.
BUDGET_SECONDS = {
    "checks": 20,
    "cli": 434,
    "conformance": 32,
    "cuda": 60,
    "examples": 60,
    "export": 20,
    "faults": 60,
    "format": 60,
    "hostile": 75,
    "handoff": 80,
    "outputs": 20,
    "pack": 8,
    "port": 130,
    "recorder": 245,
    "remote": 15,
    "replay": 90,
    "report": 38,
    "run": 60,
    "schema": 5,
    "sign": 8,
    "spec": 10,
    "standin": 225,
    "temporary": 10,
    "verify": 85,
}


def area_of(nodeid: str) -> str:
    """Return the folder below ``tests`` that a test lies in."""
    return nodeid.split("/")[1] if "/" in nodeid else ""


def pytest_terminal_summary(terminalreporter):
    """Show how long each area took against its budget."""
    spent: dict[str, float] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "duration") and report.nodeid.startswith("tests/"):
                area = area_of(report.nodeid)
                spent[area] = spent.get(area, 0.0) + report.duration
    if len(spent) < 2:
        return
    terminalreporter.section("time by area")
    for area, seconds in sorted(spent.items()):
        budget = BUDGET_SECONDS.get(area)
        over = "  OVER ITS BUDGET" if budget is None or seconds > budget else ""
        terminalreporter.write_line(f"{area:<12} {seconds:6.1f} s of {budget} s{over}")
