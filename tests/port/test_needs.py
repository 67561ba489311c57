"""`doctor BUNDLE` compares a machine with what the bundle needs."""

from __future__ import annotations

import json
import sys

import msgspec
import pytest

from reprobundle.cli.group import run as call
from reprobundle.format.record import Fact
from reprobundle.port.doctor.needs import needs_checks, read_needs
from reprobundle.run.system_packages import PACKAGES
from tests.port.test_doctor import check, mac_facts

GIB = 1 << 30
replace = msgspec.structs.replace


@pytest.fixture(scope="module")
def needs(packed):
    return read_needs(packed)


def here(needs, *, free_bytes=100 * GIB, **facts):
    """Return the checks of a machine that is as the author's but for `facts`."""
    python = needs.lock.python
    torch = needs.lock.find("torch").version
    said = {
        "os__system": python.system.capitalize(),
        "machine__architecture": python.architecture,
        "python__version": python.version,
        "torch__version": torch,
        "memory__total_bytes": 64 * GIB,
        **facts,
    }
    return list(needs_checks(mac_facts(**said), needs, free_bytes=lambda: free_bytes))


def of(needs, **changes):
    """Return the needs with a record that is changed."""
    import dataclasses

    return dataclasses.replace(needs, record=replace(needs.record, **changes))


def test_the_authors_machine_has_everything(needs):
    found = here(needs)
    assert {one.group for one in found} == {"needs"}
    bad = [one for one in found if one.state in {"warn", "problem"}]
    assert bad == []
    assert check(found, "bundle-memory").wanted.endswith("as the author measured")


@pytest.mark.parametrize(
    ("name", "facts", "state", "remedy"),
    [
        ("bundle-python", {"python__version": "3.9.1"}, "warn", "install Python"),
        ("bundle-python", {"python__version": "!no"}, "unknown", ""),
        ("bundle-torch", {"torch__version": "2.1.0"}, "warn", "--env fresh"),
        ("bundle-torch", {"torch__version": "!not installed"}, "warn", "--env fresh"),
        ("bundle-memory", {"memory__total_bytes": 1 << 20}, "problem", "more memory"),
        ("bundle-memory", {"memory__limit_bytes": 1 << 20}, "problem", "more memory"),
        ("bundle-memory", {"memory__total_bytes": "!no"}, "unknown", ""),
        ("bundle-disk", {"free_bytes": 0}, "problem", "free some space"),
    ],
)
def test_what_is_lacking_is_told_with_what_to_do(needs, name, facts, state, remedy):
    found = check(here(needs, **facts), name)
    assert found.state == state
    assert remedy in found.remedy
    assert found.wanted


def test_room_for_files_without_an_environment_is_a_warning(needs):
    files = 3 * needs.files_bytes + 1
    assert check(here(needs, free_bytes=files), "bundle-disk").state == "warn"


def test_another_system_needs_a_lock_of_its_own(needs):
    import dataclasses

    plain = dataclasses.replace(
        needs,
        portable=False,
        lock=replace(needs.lock, pylock_unknown="uv is not installed"),
    )
    found = check(here(plain, os__system="Darwin"), "bundle-system")
    assert found.state == "warn"
    assert "uv is not installed" in found.remedy
    portable = dataclasses.replace(needs, portable=True)
    assert check(here(portable, os__system="Darwin"), "bundle-system").state == "ok"


@pytest.mark.parametrize(
    ("device", "facts", "state"),
    [
        ("mps", {}, "ok"),
        ("mps", {"mps__trial": "!no", "mps__cause": "Rosetta"}, "warn"),
        ("cuda", {"cuda__available": True}, "ok"),
        ("cuda", {"cuda__available": False, "cuda__cause": "a CPU build"}, "warn"),
        ("xpu", {}, "unknown"),
        ("cpu", {}, "ok"),
    ],
)
def test_the_device_of_the_reference_is_looked_for(needs, device, facts, state):
    devices = replace(needs.record.devices, observed=("cpu", device))
    found = check(here(of(needs, devices=devices), **facts), "bundle-device")
    assert (found.state, found.wanted) == (state, device)
    if state == "warn":
        assert found.got in {"Rosetta", "a CPU build"}
        assert found.remedy


def test_a_mac_needs_memory_for_both_and_linux_for_the_host_alone(needs):
    memory = replace(
        needs.record.memory,
        peak_rss_bytes=Fact(value=10 * GIB, source="x"),
        peak_device_bytes=Fact(value=10 * GIB, source="x"),
    )
    changed = of(needs, memory=memory)
    states = [
        check(
            here(changed, os__system=name, memory__total_bytes=16 * GIB),
            "bundle-memory",
        ).state
        for name in ("Linux", "Darwin")
    ]
    assert states == ["ok", "problem"]
    small = {"os__system": "Darwin", "mps__recommended_max_bytes": 8 * GIB}
    found = check(here(changed, **small), "bundle-memory")
    assert found.state == "warn"
    assert "8.00 GiB for the GPU" in found.got


def test_withheld_data_are_named(needs):
    from reprobundle.format.record import WithheldFile

    one = WithheldFile(name="data/a.csv", blake3="0" * 64, size_bytes=1)
    found = check(here(of(needs, withheld=(one,))), "bundle-data")
    assert (found.state, found.remedy) == ("warn", "replay --data data/a.csv=FILE")


def test_packages_of_another_system_are_not_taken_for_there(needs):
    fact = Fact(value=("absent 1.0",), source="no-such-tool --list")
    changed = of(needs, environment={**needs.record.environment, PACKAGES: fact})
    assert check(here(changed), "bundle-system-packages").state == "unknown"


def test_the_command_line_compares_with_a_bundle(packed, capsys):
    status = call(["doctor", str(packed), "--python", sys.executable, "--json"])
    report = json.loads(capsys.readouterr().out)
    assert status == report["exit_status"]
    assert len(report["bundle"]) == 64
    names = {one["name"] for one in report["checks"] if one["group"] == "needs"}
    assert {"bundle-torch", "bundle-memory", "bundle-disk"} <= names
    assert call(["doctor", str(packed.parent / "absent.rpb.zip")]) == 20
    assert capsys.readouterr().err.count("\n") == 1
