"""System packages: asked of recorded answers of dpkg, rpm, brew and pkgutil."""

from __future__ import annotations

import sys

import pytest

from reprobundle.format.record import Fact
from reprobundle.recorder.system_libraries import select
from reprobundle.run.system_packages import (
    PACKAGES,
    XCODE,
    install_command,
    missing_packages,
    package_facts,
    run_command,
)

LIBRARIES = ("/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/libnobody.so.1")
LOADED = {"system.libraries": Fact(value=LIBRARIES, source="/proc/self/maps")}
MAPS_LINE = "7f00-7f01 r--p 00000000 fe:00 1".ljust(73)


def answering(**answers):
    """Return a runner: first word of the command → what it prints, or a function."""

    def run(argv):
        answer = answers.get(argv[0].replace("-", "_"))
        return answer(argv) if callable(answer) else answer

    return run


def debian(argv):
    if argv[1] == "--search":
        # A path of before the two folders became one; the other is nobody's.
        assert "/lib/x86_64-linux-gnu/libc.so.6" in argv
        return "libc6:amd64: /lib/x86_64-linux-gnu/libc.so.6\n"
    assert argv[-1] == "libc6:amd64"
    return "libc6 2.36-9\n"


def test_debian_names_the_owner_of_a_library_with_its_version():
    facts = package_facts(LOADED, run=answering(dpkg_query=debian), system="linux")
    assert facts[PACKAGES] == Fact(value=("libc6 2.36-9",), source="dpkg-query")


def test_rpm_is_asked_where_there_is_no_debian():
    printed = "glibc 2.38-1.fc40\nfile /usr/lib/libnobody.so.1 is not owned by any\n"
    facts = package_facts(LOADED, run=answering(rpm=printed), system="linux")
    assert facts[PACKAGES] == Fact(value=("glibc 2.38-1.fc40",), source="rpm -qf")


def test_without_a_package_manager_the_packages_are_unknown():
    facts = package_facts(LOADED, run=answering(), system="linux")
    assert facts[PACKAGES].unknown == "neither dpkg-query nor rpm answers"


def test_without_the_libraries_the_packages_are_unknown():
    facts = package_facts({}, run=answering(dpkg_query=debian), system="linux")
    assert "libraries of the run are not known" in facts[PACKAGES].unknown


def test_a_mac_tells_homebrew_and_xcodes_tools():
    receipt = "package-id: com.apple.pkg.CLTools_Executables\nversion: 16.2.0.0\n"
    run = answering(brew="openssl@3 3.4.0\nlibomp 19.1.5\n", pkgutil=receipt)
    facts = package_facts({}, run=run, system="darwin")
    assert facts[PACKAGES].value == ("libomp 19.1.5", "openssl@3 3.4.0")
    assert facts[XCODE].value == "16.2.0.0"


def test_a_mac_without_either_says_so():
    facts = package_facts({}, run=answering(), system="darwin")
    assert "Homebrew is not installed" in facts[PACKAGES].unknown
    assert "not installed" in facts[XCODE].unknown


def test_what_is_not_installed_is_told_with_a_command_that_is_not_run():
    recorded = Fact(value=("libc6 2.36-9", "libgomp1 12.2"), source="dpkg-query")
    missing = missing_packages(recorded, run=answering(dpkg_query="libc6\nbash\n"))
    assert missing == ["libgomp1"]
    assert install_command(recorded, missing) == "sudo apt-get install libgomp1"


@pytest.mark.parametrize(
    "recorded",
    [
        None,
        Fact(unknown="x"),
        Fact(value=("libomp 19",), source="brew list --versions"),
    ],
)
def test_another_systems_packages_are_not_asked_about(recorded):
    assert missing_packages(recorded, run=answering(dpkg_query="bash\n")) == []


def test_a_program_that_is_missing_or_silent_answers_nothing():
    assert run_command(("no-such-program-here",)) is None
    assert run_command((sys.executable, "-c", "")) is None
    assert run_command((sys.executable, "-c", "print(1); exit(1)")) == "1\n"


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/usr/lib/x86_64-linux-gnu/libgomp.so.1", True),
        ("/lib64/libc-2.28.so", True),
        ("/opt/nvidia/lib/libcuda.so.560", True),
        ("/usr/lib/python3/dist-packages/numpy/core/_multiarray.so", False),
        ("/home/me/lib/libmine.so", False),
        ("/usr/lib/locale/locale-archive", False),
        (f"{sys.prefix}/lib/libpython3.so", False),
        ("[heap]", False),
    ],
)
def test_only_libraries_of_the_system_are_named(path, kept):
    assert select([f"{MAPS_LINE}{path}\n"]) == ([path] if kept else [])
