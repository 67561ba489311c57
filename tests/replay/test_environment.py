"""A fresh environment holds exactly what was locked, or there is none."""

import fcntl
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import msgspec
import pytest

from reprobundle.errors import (
    BadCallError,
    EnvironmentUnusableError,
    HashMismatchError,
    InstallFailedError,
    MissingPackageError,
    NoNetworkError,
    NoPermissionError,
    NoSpaceError,
    UnfitPythonError,
)
from reprobundle.format.lock import Distribution, Interpreter, Lock
from reprobundle.replay import interpreters
from reprobundle.replay.environment import (
    build_fresh,
    check_current,
    environment_folder,
    install_entry,
)
from reprobundle.replay.install_failure import explain
from reprobundle.replay.installer import Installer
from reprobundle.replay.interpreters import find_interpreter
from reprobundle.replay.stamp import STAMP_NAME
from reprobundle.run.drift import Drift
from reprobundle.run.lock import probe, to_lock
from reprobundle.run.package_sources import (
    find_uv,
    parse_settings,
    pip_environment,
    uv_environment,
)
from reprobundle.run.pylock_file import parse_pylock, select
from reprobundle.run.targets import TARGETS, target_named
from reprobundle.run.universal_lock import make_pylock
from tests.replay.wheels import make_wheel, sha256
from tests.run.installed import add_distribution

PYTHON = Path(sys.executable)
HERE = Interpreter(
    version=platform.python_version(),
    implementation=platform.python_implementation(),
    architecture=platform.machine(),
    system=sys.platform,
    platform=sysconfig.get_platform().replace("-", "_").replace(".", "_"),
    libc=" ".join(platform.libc_ver()).strip(),
)


@pytest.fixture(autouse=True)
def without_our_own_setting(monkeypatch):
    """What the installers are told is the subject of the tests here."""
    monkeypatch.delenv("UV_OFFLINE", raising=False)


needs_uv = pytest.mark.skipif(find_uv() is None, reason="uv is not installed")
installers = pytest.mark.parametrize(
    "installer", ["pip", pytest.param("uv", marks=needs_uv)]
)


def package(name: str, version: str, **fields: object) -> Distribution:
    return msgspec.convert(
        {
            "name": name,
            "version": version,
            "local_label": version.partition("+")[2],
            "record_unknown": "not needed here",
            **fields,
        },
        Distribution,
    )


def lock(*packages: Distribution, **python: str) -> Lock:
    return Lock(
        python=msgspec.structs.replace(HERE, **python),
        distributions=tuple(sorted(packages, key=lambda one: one.name)),
    )


@pytest.fixture
def wheels(tmp_path):
    """A folder with the wheels alpha 1.0, beta 2.0+cpu and beta 2.0."""
    folder = tmp_path / "wheels"
    make_wheel(folder, "alpha", "1.0", text="value = 1\n", requires=("beta",))
    make_wheel(folder, "beta", "2.0+cpu", text="build = 'cpu'\n")
    make_wheel(folder, "beta", "2.0", text="build = 'plain'\n")
    return folder


@pytest.fixture
def build(tmp_path, wheels):
    """Build into a folder of this test, from its wheels, with uv where it is."""

    def call(wanted: Lock, **options: object):
        return build_fresh(
            wanted,
            **{
                "target": tmp_path / "environment",
                "base_python": PYTHON,
                "wheels": wheels,
                "cache": tmp_path / "cache",
                **options,
            },
        )

    return call


def run(python: Path, code: str) -> str:
    done = subprocess.run(
        [str(python), "-I", "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


ALPHA, BETA = package("alpha", "1.0"), package("beta", "2.0+cpu")


# -- a good build


@installers
def test_exactly_the_locked_builds_are_installed(build, tmp_path, wheels, installer):
    steps: list[str] = []
    built = build(lock(ALPHA, BETA), installer=installer, progress=steps.append)
    assert run(built.python, "import alpha, beta; print(beta.build)") == "cpu"
    assert built.drift == ()
    assert built.installer.startswith(f"{installer} ")
    assert not built.reused
    assert steps[0] == f"making an environment of CPython {HERE.version}"
    told = " ".join(" ".join(command) for command in built.commands)
    assert "{environment}/venv" in told
    assert "--no-index --find-links {wheels}" in told
    assert str(tmp_path) not in told


def test_a_complete_environment_is_used_again(build):
    first = build(lock(ALPHA, BETA))
    marker = first.folder / "venv" / "marker"
    marker.touch()
    again = build(lock(ALPHA, BETA))
    assert again.reused
    assert marker.exists()
    assert (again.freeze, again.commands) == (first.freeze, first.commands)


def test_nothing_is_written_but_the_target_and_the_cache(build, tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    before = probe(PYTHON)
    built = build(lock(ALPHA, BETA))
    assert list(home.iterdir()) == []
    assert probe(PYTHON) == before
    assert not (built.folder / "tmp").exists()


def test_settings_that_steer_installations_elsewhere_have_no_effect(
    build, tmp_path, monkeypatch
):
    elsewhere = tmp_path / "elsewhere"
    for name in ("PIP_TARGET", "PIP_PREFIX", "UV_TARGET", "UV_PREFIX"):
        monkeypatch.setenv(name, str(elsewhere))
    monkeypatch.setenv("PYTHONPATH", str(elsewhere))
    monkeypatch.setenv("PIP_REQUIRE_VIRTUALENV", "1")
    built = build(lock(ALPHA, BETA))
    assert built.freeze.find("alpha") is not None
    assert not elsewhere.exists()


def test_equal_locks_share_a_folder_and_others_do_not(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    one = environment_folder(lock(ALPHA))
    assert one == environment_folder(lock(ALPHA))
    assert one != environment_folder(lock(ALPHA, BETA))
    assert one.parent == tmp_path / "reprobundle" / "environments"


@installers
def test_configured_sources_are_asked(build, wheels, monkeypatch, installer):
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    built = build(lock(ALPHA, BETA), wheels=None, installer=installer)
    assert built.drift == ()


@installers
def test_an_archive_with_a_digest_is_checked(build, wheels, tmp_path, installer):
    wheel = make_wheel(wheels, "gamma", "3.0", text="x = 1\n")
    locked = package(
        "gamma", "3.0", origin="local", detail=wheel.name, sha256=sha256(wheel)
    )
    assert build(lock(locked), installer=installer).drift == ()
    make_wheel(wheels, "gamma", "3.0", text="x = 2\n")
    with pytest.raises(HashMismatchError) as caught:
        build(
            lock(locked),
            target=tmp_path / "second",
            cache=tmp_path / "other cache",
            installer=installer,
        )
    assert caught.value.package == "gamma"
    assert str(caught.value).startswith(
        "gamma: the archive served is not the one recorded"
    )


def test_other_files_of_the_same_version_are_drift(build, wheels, tmp_path):
    seen = build(lock(ALPHA, BETA)).freeze
    make_wheel(wheels, "alpha", "1.0", text="value = 2\n", requires=("beta",))
    again = build(seen, target=tmp_path / "second", cache=tmp_path / "other cache")
    assert [one.name for one in again.drift] == ["alpha (files)"]


def test_the_project_itself_is_left_out_and_said_so(build):
    mine = package("mine", "0.1", origin="editable", detail="{project}")
    built = build(lock(ALPHA, BETA, mine, package("pip", "1.0")))
    assert [(one.name, one.reason) for one in built.left_out] == [
        ("mine", "is the project itself, whose files are in the bundle"),
        ("pip", "is no part of what is run"),
    ]
    assert built.drift == ()


# -- an unfinished or damaged build


def test_a_build_that_failed_is_no_environment_and_a_second_try_succeeds(
    build, wheels, tmp_path
):
    wanted = lock(ALPHA, BETA, package("gamma", "3.0"))
    with pytest.raises(MissingPackageError):
        build(wanted)
    assert not (tmp_path / "environment" / STAMP_NAME).exists()
    make_wheel(wheels, "gamma", "3.0")
    built = build(wanted)
    assert not built.reused
    assert built.drift == ()


def test_a_target_without_a_stamp_is_built_anew(build):
    built = build(lock(ALPHA, BETA))
    (built.folder / STAMP_NAME).unlink()
    left_over = built.folder / "venv" / "left over"
    left_over.touch()
    assert not build(lock(ALPHA, BETA)).reused
    assert not left_over.exists()


@pytest.mark.parametrize("damage", ["shortened", "removed", "added", "no interpreter"])
def test_a_damaged_environment_is_built_anew(build, damage):
    built = build(lock(ALPHA, BETA))
    site = Path(
        run(built.python, "import sysconfig as s; print(s.get_path('purelib'))")
    )
    if damage == "shortened":
        (site / "beta.py").write_text("")
    elif damage == "removed":
        (site / "beta.py").unlink()
    elif damage == "added":
        (site / "evil-1.0.dist-info").mkdir()
        (site / "evil-1.0.dist-info" / "METADATA").write_text(
            "Name: evil\nVersion: 1\n"
        )
    else:
        built.python.unlink()
    again = build(lock(ALPHA, BETA))
    assert not again.reused
    assert run(again.python, "import beta; print(beta.build)") == "cpu"


def test_the_target_of_another_lock_is_replaced(build):
    build(lock(ALPHA, BETA))
    built = build(lock(BETA))
    assert not built.reused
    assert built.freeze.find("alpha") is None


def test_an_installer_that_leaves_something_else_is_not_believed(build, monkeypatch):
    monkeypatch.setattr(Installer, "install", lambda *_, **__: ("pretended",))
    with pytest.raises(InstallFailedError) as caught:
        build(lock(ALPHA, BETA))
    assert "alpha==1.0 was asked for, the installer left nothing" in str(caught.value)


# -- what cannot be had


@installers
def test_a_labelled_build_is_never_replaced_silently(build, tmp_path, installer):
    wanted = lock(package("beta", "2.0+cu130"))
    with pytest.raises(MissingPackageError) as caught:
        build(wanted, installer=installer)
    error = caught.value
    assert (error.package, error.version) == ("beta", "2.0+cu130")
    assert (error.local_label, error.stop) == ("cu130", "platform")
    assert str(error).startswith("beta==2.0+cu130 is not in the folder of wheels")
    assert "the label 'cu130' names a build that is not published there" in str(error)
    assert not (tmp_path / "environment" / STAMP_NAME).exists()


def test_the_plain_release_is_taken_by_permission_and_listed(build, wheels):
    make_wheel(wheels, "torch", "2.0", text="build = 'plain'\n")
    built = build(lock(package("torch", "2.0+cu130")), allow_other_build=True)
    assert built.other_builds == ("torch",)
    assert built.drift == (Drift("torch", "2.0+cu130", "2.0", "numeric"),)


def test_another_build_that_stands_is_not_used_without_permission(build, wheels):
    make_wheel(wheels, "torch", "2.0")
    wanted = lock(package("torch", "2.0+cu130"))
    build(wanted, allow_other_build=True)
    assert build(wanted, allow_other_build=True).reused
    with pytest.raises(MissingPackageError):
        build(wanted)


def test_an_environment_in_use_is_not_removed_from_under_a_run(build):
    """A second process that finds it changed has to wait until the first one ends."""
    wanted = lock(ALPHA, BETA)
    built = build(wanted)
    (built.folder / STAMP_NAME).unlink()
    other = os.open(built.folder / ".lock", os.O_RDWR)
    try:
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_SH)  # The failed try has given it up.
        steps: list[str] = []

        def say(step: str) -> None:
            steps.append(step)
            if step.startswith("waiting"):
                fcntl.flock(other, fcntl.LOCK_UN)

        assert not build(wanted, progress=say).reused
    finally:
        os.close(other)
    assert steps[0] == "waiting for a replay that uses the environment"


def test_packages_of_another_system_are_dropped_there_and_listed(build, wheels):
    make_wheel(wheels, "torch", "2.0")
    wanted = lock(
        package("nvidia-cublas", "13.0"),
        package("torch", "2.0"),
        package("triton", "3.0"),
        system="elsewhere",
    )
    built = build(wanted)
    assert [(one.name, one.reason) for one in built.left_out] == [
        ("nvidia-cublas", "is not published for this platform"),
        ("triton", "is not published for this platform"),
    ]
    assert "nvidia-cublas" not in {one.name for one in built.drift}
    assert [one.name for one in built.drift] == ["python.system"]


def test_such_packages_are_installed_where_they_can_be(build, wheels):
    make_wheel(wheels, "triton", "3.0")
    built = build(lock(package("triton", "3.0"), system="elsewhere"))
    assert built.left_out == ()
    assert built.freeze.find("triton") is not None


def test_on_the_same_system_they_must_be_had(build):
    with pytest.raises(MissingPackageError) as caught:
        build(lock(package("nvidia-cublas", "13.0")))
    assert caught.value.package == "nvidia-cublas"


def test_a_lock_of_another_system_is_completed_by_what_is_needed_here(build):
    built = build(lock(ALPHA, system="elsewhere"))
    assert built.freeze.find("beta") is not None
    assert Drift("beta", "absent", "2.0+cpu", "other") in built.drift


def test_a_package_from_a_local_folder_needs_a_folder_of_wheels(build):
    locked = package("near", "0.2", origin="editable", detail="~/near@abc")
    with pytest.raises(MissingPackageError) as caught:
        build(lock(locked), wheels=None)
    assert str(caught.value) == (
        "near==0.2 was installed from '~/near@abc' on the recording machine, "
        "which no index serves; give a folder that holds its wheel"
    )


@installers
def test_an_index_that_does_not_answer_is_no_missing_package(
    build, monkeypatch, installer
):
    # Port 9 of this machine refuses every connection.
    for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(NoNetworkError, match="no package index answers"):
        build(lock(ALPHA), wheels=None, installer=installer)


def test_a_full_disk_is_told_before_anything_is_fetched(build):
    huge = package("alpha", "1.0", size_bytes=1 << 60)
    with pytest.raises(NoSpaceError, match="1572864 TiB and a reserve"):
        build(lock(huge))


def test_a_missing_folder_of_wheels_is_a_bad_call(build, tmp_path):
    with pytest.raises(BadCallError, match="does not exist"):
        build(lock(ALPHA), wheels=tmp_path / "none")


# -- what the installers say


def failure(text: str, *packages: Distribution):
    return explain(
        text,
        lock=lock(*packages),
        target=Path("/t"),
        log=Path("/t/install.log"),
        folder_only=False,
    )


TORCH = package("torch", "2.13.0+cpu")
# pip ends with the same words for an index that does not answer.
UNREACHABLE = (
    "WARNING: Retrying after connection broken by 'NewConnectionError(\"Failed to "
    "establish a new connection: [Errno -3] Temporary failure in name resolution\")'\n"
    "ERROR: No matching distribution found for torch==2.13.0+cpu"
)


@pytest.mark.parametrize(
    "text",
    [
        "ERROR: No matching distribution found for torch==2.13.0+cpu\n",
        "  ╰─▶ Because there is no version of torch==2.13.0+cpu and you require\n",
        "  cause: Because torch==2.13.0+cpu has no wheels with a matching platform tag",
        "  cause: Because torch was not found in the package registry and you require",
    ],
)
def test_a_missing_build_is_recognised_in_each_installers_words(text):
    error = failure(text, TORCH)
    assert isinstance(error, MissingPackageError)
    assert (error.package, error.version) == ("torch", "2.13.0+cpu")
    assert "add the index of that build to pip's extra-index-url" in str(error)


def test_versions_that_are_served_instead_are_named():
    error = failure(
        "ERROR: Could not find a version that satisfies the requirement "
        "torch==2.13.0+cpu (from versions: 2.9.0, 2.12.0, 2.12.1, 2.13.0)\n"
        "ERROR: No matching distribution found for torch==2.13.0+cpu\n",
        TORCH,
    )
    assert "which have 2.12.0, 2.12.1, 2.13.0" in str(error)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("OSError: [Errno 28] No space left on device", NoSpaceError),
        ("  cause: No space left on device (os error 28)", NoSpaceError),
        ("ERROR: [Errno 13] Permission denied: '/x'", NoPermissionError),
        ("  cause: Read-only file system (os error 30)", NoPermissionError),
        (UNREACHABLE, NoNetworkError),
        ("  cause: dns error: failed to lookup address information", NoNetworkError),
        ("error: subprocess-exited-with-error\n", InstallFailedError),
        ("something entirely new", InstallFailedError),
        ("", InstallFailedError),
    ],
)
def test_each_cause_has_its_class(text, kind):
    error = failure(text, TORCH)
    assert type(error) is kind
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "ERROR: Failed building wheel for odd-pack\n",
        "error: subprocess-exited-with-error\nFailed to build odd-pack\n",
        "error: Failed to build `odd-pack==1.21.0`\n",
    ],
)
def test_a_package_without_a_wheel_is_named_when_its_build_fails(text):
    error = failure(text, TORCH)
    assert str(error).startswith("odd-pack has no wheel for this machine")


def test_credentials_in_an_installers_words_are_not_repeated():
    error = failure("error: cannot fetch https://me:secret@h.org/simple", TORCH)
    assert "secret" not in str(error)
    assert "https://h.org/simple" in str(error)


# -- interpreters


def wanted(**fields: str) -> Interpreter:
    return msgspec.structs.replace(HERE, **fields)


def test_our_own_python_serves_its_own_version():
    found = find_interpreter(HERE, named=None)
    assert found.version == HERE.version
    assert found.path.exists()


def test_a_named_python_of_another_version_is_refused():
    with pytest.raises(UnfitPythonError) as caught:
        find_interpreter(wanted(version="3.99.0"), named=PYTHON)
    assert (caught.value.wanted, caught.value.stop) == ("CPython 3.99", "platform")
    assert str(caught.value) == (
        f"{str(PYTHON)!r} is CPython {HERE.version}; CPython 3.99 was recorded; "
        "install Python 3.99, or name an interpreter of it"
    )


def test_another_version_is_taken_by_permission():
    found = find_interpreter(
        wanted(version="3.99.0"), named=PYTHON, allow_other_python=True
    )
    assert found.version == HERE.version


def test_a_machine_without_the_version_says_what_it_has(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnfitPythonError) as caught:
        find_interpreter(wanted(version="3.99.0"), named=None)
    assert f"found: CPython {HERE.version}" in str(caught.value)


def test_a_program_that_is_no_python_is_refused(tmp_path):
    with pytest.raises(UnfitPythonError, match="is no working Python"):
        find_interpreter(HERE, named=tmp_path / "nothing")


def test_a_translated_python_is_refused_on_an_apple_chip(monkeypatch):
    found = interpreters.FoundPython(PYTHON, "3.11.7", "CPython", "x86_64", "darwin")
    monkeypatch.setattr(interpreters, "hardware", lambda: "arm64")
    monkeypatch.setattr(interpreters, "ask", lambda _: found)
    with pytest.raises(
        UnfitPythonError, match="for x86_64, which runs only translated"
    ):
        find_interpreter(wanted(version="3.11.7"), named=PYTHON)


# -- sources


LISTING = """:env:.find-links='/w'
global.extra-index-url='https://u:p@one.example/simple https://two.example/simple'
global.find-links='/old'
global.target='/elsewhere'
install.timeout='30'
user.name='x'
"""


def test_settings_about_sources_are_read_and_later_sections_win():
    assert parse_settings(LISTING) == {
        "extra-index-url": "https://u:p@one.example/simple https://two.example/simple",
        "find-links": "/w",
        "timeout": "30",
    }


def test_both_installers_get_the_sources_in_their_own_variables(tmp_path):
    settings = parse_settings(LISTING)
    pip = pip_environment(settings, cache=tmp_path, temporary=tmp_path)
    uv = uv_environment(settings, cache=tmp_path, temporary=tmp_path)
    assert pip["PIP_EXTRA_INDEX_URL"] == uv["UV_INDEX"] == settings["extra-index-url"]
    assert pip["PIP_FIND_LINKS"] == uv["UV_FIND_LINKS"] == "/w"
    assert pip["PIP_CONFIG_FILE"] == os.devnull
    assert "PIP_TARGET" not in pip


# -- existing environments and the recorder's entry


def test_the_current_environment_is_compared_with_the_lock(tmp_path):
    venv.create(tmp_path / "venv", symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    site = Path(probe(python).purelib)
    add_distribution(site, "alpha", "1.0")
    add_distribution(site, "numpy", "2.0")
    reference = to_lock(probe(python))
    assert check_current(reference, python) == ()
    shutil.rmtree(site / "numpy-2.0.dist-info")
    add_distribution(site, "numpy", "2.1")
    assert check_current(reference, python) == (
        Drift("numpy", "2.0", "2.1", "numeric"),
    )


def test_the_entry_is_put_into_our_environment_and_keeps_it_usable(build):
    built = build(lock(ALPHA, BETA))
    entry = install_entry(built.python)
    assert entry.parent.name == "site-packages"
    assert entry.read_text() != ""
    assert run(built.python, "import alpha; print(alpha.value)") == "1"
    assert build(lock(ALPHA, BETA)).reused


def test_the_entry_is_never_put_into_an_environment_of_the_user():
    with pytest.raises(EnvironmentUnusableError, match="was not built by reprobundle"):
        install_entry(PYTHON)


@pytest.mark.slow
@installers
def test_an_environment_with_torch_equals_the_one_that_was_locked(tmp_path, installer):
    names = {"torch", "numpy", "filelock", "typing-extensions", "sympy", "mpmath"}
    names |= {"networkx", "jinja2", "markupsafe", "fsspec", "setuptools"}
    current = to_lock(probe(PYTHON))
    if current.find("torch") is None:
        pytest.skip("torch is not installed in this interpreter")
    kept = tuple(one for one in current.distributions if one.name in names)
    wanted = msgspec.structs.replace(current, distributions=kept)
    locked = make_pylock(wanted, python=PYTHON, cache=tmp_path / "lock-cache")
    for name in TARGETS:
        there = select(parse_pylock(locked), target_named(name, wanted.python))
        assert "torch" in {one.name for one in there.chosen}
        assert there.blockers == () or name == "linux-aarch64"
    built = build_fresh(
        wanted,
        pylock=locked,
        target=tmp_path / "environment",
        base_python=PYTHON,
        cache=tmp_path / "cache",
        installer=installer,
    )
    assert built.drift == ()
    torch = current.find("torch")
    assert torch is not None
    assert run(built.python, "import torch; print(torch.__version__)") == torch.version


# -- with the lock for all targets


def pylock(wheels: Path, *files: str, marker: str = "") -> bytes:
    """Return a pylock.toml that locks these wheels by their digests."""
    text = 'lock-version = "1.0"\ncreated-by = "test"\n'
    for file in files:
        name, version = file.split("-")[:2]
        text += f'[[packages]]\nname = "{name}"\nversion = "{version}"\n{marker}\n'
        text += f'[[packages.wheels]]\npath = "{file}"\n'
        text += f'hashes = {{sha256 = "{sha256(wheels / file)}"}}\n'
    return text.encode()


LOCKED = ("alpha-1.0-py3-none-any.whl", "beta-2.0+cpu-py3-none-any.whl")


@installers
def test_locked_files_are_installed_by_their_digests(build, wheels, installer):
    locked = pylock(wheels, *LOCKED)
    built = build(lock(ALPHA, BETA), pylock=locked, installer=installer)
    assert run(built.python, "import beta; print(beta.build)") == "cpu"
    assert built.drift == ()
    assert any("--require-hashes" in command for command in built.commands)


@installers
def test_another_file_of_the_same_version_is_refused(build, wheels, installer):
    locked = pylock(wheels, *LOCKED)
    make_wheel(wheels, "beta", "2.0+cpu", text="build = 'forged'\n")
    with pytest.raises(HashMismatchError, match="beta"):
        build(lock(ALPHA, BETA), pylock=locked, installer=installer)


def test_what_this_system_does_not_need_is_left_out_and_said(build, wheels):
    marker = "marker = \"sys_platform == 'amiga'\""
    locked = (
        pylock(wheels, LOCKED[0])
        + pylock(wheels, LOCKED[1], marker=marker).split(b"\n", 2)[2]
    )
    built = build(lock(ALPHA, BETA), pylock=locked)
    (left_out,) = built.left_out
    assert (left_out.name, left_out.reason) == ("beta", "is not needed on this system")
    assert built.drift == ()


def test_a_package_locked_for_other_systems_only_stops_before_anything_is_fetched(
    build, wheels, tmp_path
):
    make_wheel(wheels, "gamma", "1.0", tag="cp311-cp311-amiga_3_0_m68k")
    locked = pylock(wheels, "gamma-1.0-cp311-cp311-amiga_3_0_m68k.whl")
    with pytest.raises(MissingPackageError, match="locked for other systems") as caught:
        build(lock(package("gamma", "1.0")), pylock=locked)
    assert caught.value.stop == "platform"
    assert "amiga_3_0_m68k" in caught.value.message
    assert not (tmp_path / "environment" / "venv").exists()


def test_a_lock_for_other_machines_builds_no_empty_environment(build, wheels, tmp_path):
    head, _, rest = pylock(wheels, *LOCKED).partition(b"\n")
    elsewhere = b"\nenvironments = [\"sys_platform == 'amiga'\"]\n"
    with pytest.raises(MissingPackageError, match="nothing is locked for") as caught:
        build(lock(ALPHA, BETA), pylock=head + elsewhere + rest)
    assert caught.value.stop == "platform"
    assert not (tmp_path / "environment" / "venv").exists()


def test_a_blocker_that_is_left_out_on_purpose_shows_as_drift(build, wheels):
    make_wheel(wheels, "gamma", "1.0", tag="cp311-cp311-amiga_3_0_m68k")
    locked = pylock(wheels, LOCKED[0], "gamma-1.0-cp311-cp311-amiga_3_0_m68k.whl")
    wanted = lock(ALPHA, package("gamma", "1.0"))
    built = build(wanted, pylock=locked, without=frozenset({"gamma"}))
    assert run(built.python, "import alpha; print(alpha.value)") == "1"
    (drift,) = built.drift
    assert (drift.name, drift.reference, drift.here) == ("gamma", "1.0", "absent")


def test_another_lock_of_the_same_environment_is_another_environment(build, wheels):
    wanted = lock(ALPHA, BETA)
    locked = pylock(wheels, *LOCKED)
    assert environment_folder(wanted) != environment_folder(wanted, pylock=locked)
    assert not build(wanted).reused
    assert not build(wanted, pylock=locked).reused
    assert build(wanted, pylock=locked).reused
