"""One lock for all targets: what is asked for, what is kept, what is selected."""

from __future__ import annotations

import sys
import tempfile
import venv
from pathlib import Path

import msgspec
import pytest

from reprobundle.errors import BadCallError, LockFileError, NoResolutionError
from reprobundle.format.lock import Distribution, Interpreter, Lock
from reprobundle.run import merged_lock, universal_lock
from reprobundle.run.lock_roots import roots
from reprobundle.run.package_sources import find_uv
from reprobundle.run.pylock_file import parse_pylock, requirement_lines, select
from reprobundle.run.targets import TARGETS, target_named, target_of
from reprobundle.run.universal_lock import make_pylock
from reprobundle.run.uv_call import Running
from tests.replay.wheels import make_wheel, sha256

LINUX = Interpreter(
    version="3.11.7",
    implementation="CPython",
    architecture="x86_64",
    system="linux",
    platform="linux_x86_64",
)
CUDA_ONLY = "cuda-bits==13.0; platform_system == 'Linux'"


def package(name: str, version: str, **fields: object) -> Distribution:
    told = {"name": name, "version": version, "record_unknown": "not needed here"}
    label = version.partition("+")[2]
    return msgspec.convert({**told, "local_label": label, **fields}, Distribution)


def lock(*packages: Distribution) -> Lock:
    ordered = sorted(packages, key=lambda one: one.name)
    return Lock(python=LINUX, distributions=tuple(ordered))


def names(found):
    return [one.name for one in found]


# --- what is asked for


def test_only_what_nothing_requires_is_asked_for():
    held = lock(
        package("torch", "2.0", requires=("filelock", "numpy; extra == 'np'")),
        package("filelock", "3.0"),
        package("numpy", "1.0"),
    )
    assert names(roots(held)) == ["numpy", "torch"]


def test_a_requirement_of_another_system_does_not_count():
    held = lock(
        package("click", "8.0", requires=("colorama; platform_system == 'Windows'",)),
        package("colorama", "0.4"),
    )
    assert names(roots(held)) == ["click", "colorama"]


def test_a_ring_of_packages_has_a_root():
    held = lock(
        package("a", "1.0", requires=("b",)), package("b", "1.0", requires=("a",))
    )
    assert names(roots(held)) == ["a"]


def test_what_the_project_requires_is_asked_for_itself():
    held = lock(
        package("mine", "0.1", origin="editable", detail="{project}", requires=("a",)),
        package("a", "1.0"),
        package("pip", "26.0", requires=("b",)),
        package("b", "1.0"),
    )
    assert names(roots(held)) == ["a", "b"]


# --- resolving, with uv and a folder of wheels

needs_uv = pytest.mark.skipif(find_uv() is None, reason="uv is not installed")


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """A labelled build for Linux, the plain release for a Mac, CUDA for Linux only."""
    folder = tmp_path / "wheels"
    linux, mac = "cp311-cp311-manylinux_2_28_x86_64", "cp311-cp311-macosx_14_0_arm64"
    arm = "cp311-cp311-manylinux_2_28_aarch64"
    make_wheel(folder, "net", "2.0+cu130", tag=linux, requires=(CUDA_ONLY, "pure"))
    make_wheel(folder, "net", "2.0", tag=mac, requires=(CUDA_ONLY, "pure"))
    make_wheel(folder, "net", "2.0", tag=arm, requires=(CUDA_ONLY, "pure"))
    make_wheel(folder, "net", "2.0", tag="cp312-cp312-macosx_14_0_arm64")
    make_wheel(folder, "cuda-bits", "13.0", tag="py3-none-manylinux_2_28_x86_64")
    make_wheel(folder, "pure", "1.0")
    make_wheel(folder, "pure", "9.0")
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    return folder


RECORDED = lock(
    package("net", "2.0+cu130", requires=(CUDA_ONLY, "pure")),
    package("cuda-bits", "13.0"),
    package("pure", "1.0"),
)


@pytest.fixture
def resolved(wheels, tmp_path):
    return make_pylock(RECORDED, python=Path(sys.executable), cache=tmp_path / "cache")


def selected(data, name):
    return select(parse_pylock(data), target_named(name, LINUX))


@needs_uv
def test_the_labelled_build_is_locked_where_the_run_was_made(resolved, wheels):
    found = {one.name: one for one in selected(resolved, "linux-x86_64").chosen}
    assert found["net"].version == "2.0+cu130"
    assert found["net"].sha256 == sha256(
        wheels / "net-2.0+cu130-cp311-cp311-manylinux_2_28_x86_64.whl"
    )
    assert found["pure"].version == "1.0"
    assert "cuda-bits" in found


@needs_uv
@pytest.mark.parametrize("least", ["3.11.5", "3.11.7"])
def test_a_package_for_later_patch_releases_is_locked_for_these(
    wheels, tmp_path, least
):
    make_wheel(wheels, "late", "1.0", requires_python=f">={least}")
    held = lock(package("late", "1.0"), package("pure", "1.0"))
    made = make_pylock(held, python=Path(sys.executable), cache=tmp_path / "cache")
    assert b'requires-python = ">=3.11.7,<3.12"' in made
    for name in ("linux-x86_64", "macos-arm64"):
        assert [one.name for one in selected(made, name).chosen] == ["late", "pure"]


@needs_uv
def test_every_patch_release_is_meant_where_no_package_asks_for_more(resolved):
    assert b'requires-python = "==3.11.*"' in resolved


@needs_uv
def test_an_interpreter_without_pip_takes_what_ours_says(wheels, tmp_path, monkeypatch):
    # As `uv venv` makes it: nobody there knows the folder that pip was told to take.
    bare = tmp_path / "bare"
    venv.create(bare, with_pip=False, symlinks=True)
    monkeypatch.delenv("UV_FIND_LINKS")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    python = bare / "bin" / "python"
    data = make_pylock(RECORDED, python=python, cache=tmp_path / "cache")
    found = {one.name: one.version for one in selected(data, "linux-x86_64").chosen}
    assert found["net"] == "2.0+cu130"


@needs_uv
def test_a_mac_gets_the_plain_release_and_no_cuda(resolved):
    selection = selected(resolved, "macos-arm64")
    assert {one.name: one.version for one in selection.chosen} == {
        "net": "2.0",
        "pure": "1.0",
    }
    assert selection.dropped == ("cuda-bits",)
    assert selection.blockers == ()


@needs_uv
def test_what_a_target_needs_and_nobody_publishes_is_a_blocker(resolved):
    found = selected(resolved, "linux-aarch64")
    blockers = {one.name: (one.version, one.reason) for one in found.blockers}
    reason = "no file of it is published for it"
    assert blockers["cuda-bits"] == ("13.0", reason)
    assert set(blockers) == {"cuda-bits", "net"}


@needs_uv
def test_what_is_not_asked_for_because_of_a_blocker_is_one_itself(wheels, tmp_path):
    make_wheel(wheels, "bound", "1.0", tag="cp311-cp311-manylinux_2_28_x86_64")
    make_wheel(wheels, "model", "1.0", requires=("bound",))
    held = lock(
        package("model", "1.0", requires=("bound",)),
        package("bound", "1.0"),
        package("pure", "1.0"),
    )
    data = make_pylock(held, python=Path(sys.executable), cache=tmp_path / "cache")
    selection = selected(data, "macos-arm64")
    assert names(selection.chosen) == ["pure"]
    assert {one.name: one.reason for one in selection.blockers} == {
        "model": "it needs bound, of which no file is published for it",
        "bound": "no file of it is published for it",
    }


@needs_uv
def test_a_lock_says_nothing_about_a_machine_it_was_not_made_for(resolved):
    machine = target_of(
        version="3.11.7", implementation="CPython", system="darwin", machine="x86_64"
    )
    selection = select(parse_pylock(resolved), machine)
    assert selection.chosen == ()
    assert [one.reason for one in selection.blockers] == [
        "the lock was not made for macos-x86_64"
    ]


@needs_uv
def test_what_was_ended_is_no_lock_and_leaves_nothing(wheels, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    running = Running()
    running.end()
    with pytest.raises(NoResolutionError, match="ended before it was made"):
        make_pylock(
            RECORDED,
            python=Path(sys.executable),
            cache=tmp_path / "cache",
            running=running,
        )
    assert list((tmp_path / "tmp").iterdir()) == []


@needs_uv
def test_only_wheels_of_a_target_are_kept_and_no_address_of_this_machine(
    resolved, wheels
):
    text = resolved.decode()
    assert "cp312" not in text
    assert "file:" not in text
    assert str(wheels) not in text
    assert 'path = "pure-1.0-py3-none-any.whl"' in text


@needs_uv
def test_the_same_environment_gives_the_same_lock(resolved, tmp_path):
    again = make_pylock(
        RECORDED, python=Path(sys.executable), cache=tmp_path / "other-cache"
    )
    assert again == resolved


@needs_uv
def test_versions_that_no_index_has_are_no_lock(wheels, tmp_path):
    gone = lock(package("pure", "7.0"))
    with pytest.raises(NoResolutionError, match=r"uv says: .*pure==7\.0"):
        make_pylock(gone, python=Path(sys.executable), cache=tmp_path / "cache")


def test_without_uv_there_is_no_lock(monkeypatch, tmp_path):
    monkeypatch.setattr(universal_lock, "find_uv", lambda: None)
    with pytest.raises(NoResolutionError, match="uv is not installed"):
        make_pylock(RECORDED, python=Path(sys.executable), cache=tmp_path)


def test_addresses_with_a_password_or_a_private_host_are_not_kept():
    private = "https://me:word@wheels.internal/a-1.0-py3-none-any.whl?token=1"
    public = "https://me:word@wheels.example.org/a-1.0-py3-none-any.whl?token=1"
    kept = merged_lock._file({"url": private, "hashes": {"sha256": "0" * 64}})
    assert kept["path"] == "a-1.0-py3-none-any.whl"
    assert "url" not in kept
    kept = merged_lock._file({"url": public, "hashes": {"sha256": "0" * 64}})
    assert kept["url"] == "https://wheels.example.org/a-1.0-py3-none-any.whl"


# --- reading a lock

HEAD = """lock-version = "1.0"
created-by = "someone"
"""
PURE = """[[packages]]
name = "pure"
version = "1.0"
[[packages.wheels]]
url = "https://example.org/pure-1.0-py3-none-any.whl"
hashes = {sha256 = "1111111111111111111111111111111111111111111111111111111111111111"}
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("not toml", "Expected"),
        (HEAD.replace("1.0", "2.0") + PURE, "2.0"),
        ('lock-version = "1.0"\n', "created-by"),
        (HEAD + '[[packages]]\nname = "a"\n', "must be set"),
    ],
)
def test_a_lock_that_cannot_be_read_is_refused_in_one_line(text, reason):
    with pytest.raises(LockFileError, match=reason) as caught:
        parse_pylock(text.encode())
    assert "\n" not in str(caught.value)


def test_every_file_is_asked_for_with_its_digest():
    chosen = selected((HEAD + PURE).encode(), "macos-arm64").chosen
    hashed, plain = requirement_lines(chosen)
    assert hashed == [f"pure==1.0 --hash=sha256:{'1' * 64}"]
    assert plain == []


@pytest.mark.parametrize("name", TARGETS)
def test_a_package_for_one_system_is_needed_there_only(name):
    text = HEAD + PURE.replace('version = "1.0"', 'version = "1.0"\nmarker = "MARK"')
    marked = text.replace("MARK", "sys_platform == 'darwin'")
    selection = selected(marked.encode(), name)
    assert bool(selection.chosen) == (name == "macos-arm64")
    assert bool(selection.dropped) == (name != "macos-arm64")


@pytest.mark.parametrize(
    ("wheel", "fits"),
    [
        ("pure-1.0-cp311-cp311-manylinux_2_28_x86_64.whl", {"linux-x86_64"}),
        ("pure-1.0-cp311-cp311-manylinux_2_34_x86_64.whl", set()),
        ("pure-1.0-cp311-cp311-manylinux2014_aarch64.whl", {"linux-aarch64"}),
        ("pure-1.0-cp311-cp311-macosx_11_0_arm64.whl", {"macos-arm64"}),
        ("pure-1.0-cp311-cp311-macosx_15_0_arm64.whl", set()),
        ("pure-1.0-cp311-cp311-macosx_11_0_universal2.whl", {"macos-arm64"}),
        ("pure-1.0-cp312-cp312-macosx_11_0_arm64.whl", set()),
        ("pure-1.0-cp39-abi3-macosx_11_0_arm64.whl", {"macos-arm64"}),
    ],
)
def test_a_wheel_fits_the_targets_its_tags_say(wheel, fits):
    text = (HEAD + PURE.replace("pure-1.0-py3-none-any.whl", wheel)).encode()
    found = {name for name in TARGETS if selected(text, name).chosen}
    assert found == fits
    blocked = {name for name in TARGETS if selected(text, name).blockers}
    assert blocked == set(TARGETS) - fits


def test_an_unknown_target_is_a_bad_call():
    with pytest.raises(BadCallError, match="no target 'amiga'"):
        target_named("amiga", LINUX)


def test_other_systems_are_asked_of_public_indexes_first():
    told = {
        "UV_INDEX": "https://wheels.example.org/simple file:///srv/simple "
        "own=https://wheels.internal/simple",
        "UV_FIND_LINKS": "/srv/wheels",
        "UV_CACHE_DIR": "/c",
    }
    assert universal_lock._public_sources(told) == {
        "UV_INDEX": "https://wheels.example.org/simple",
        "UV_CACHE_DIR": "/c",
    }
