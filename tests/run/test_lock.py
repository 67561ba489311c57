"""A live environment becomes a lock without secrets, and two locks are told apart."""

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import msgspec
import pytest

from reprobundle.errors import EnvironmentUnusableError
from reprobundle.format.lock import Distribution, Interpreter, Lock, lock_digest
from reprobundle.run.drift import Drift, drift
from reprobundle.run.installed_files import damaged_files, read_record
from reprobundle.run.lock import PROBE, probe, to_lock
from reprobundle.run.package_origin import clean_address, clean_requirement
from reprobundle.run.requirements import (
    find_lock_files,
    requirements,
    requirements_text,
)
from tests.run.installed import add_distribution

PYTHON = Path(sys.executable)
HERE = Interpreter(
    version="3.11.7",
    implementation="CPython",
    architecture="x86_64",
    system="linux",
    platform="linux_x86_64",
    libc="glibc 2.36",
)


@pytest.fixture
def site(tmp_path):
    return tmp_path / "site"


@functools.cache
def empty_python() -> Path:
    """Return the interpreter of an environment that holds nothing."""
    folder = Path(tempfile.mkdtemp(prefix="reprobundle-empty-"))
    atexit.register(shutil.rmtree, folder)
    venv.create(folder, symlinks=True)
    return folder / "bin" / "python"


def live(site: Path):
    return probe(empty_python(), env={**os.environ, "PYTHONPATH": str(site)})


def locked(site: Path, name: str, **places: Path) -> Distribution:
    found = to_lock(live(site), **places).find(name)
    assert found is not None
    return found


def distribution(name: str, version: str, digest: str = "0" * 64, **fields: object):
    return msgspec.convert(
        {
            "name": name,
            "version": version,
            "local_label": version.partition("+")[2],
            "record_digest": digest,
            **fields,
        },
        Distribution,
    )


def lock(*distributions: Distribution, **python: str) -> Lock:
    return Lock(
        python=msgspec.structs.replace(HERE, **python),
        distributions=tuple(sorted(distributions, key=lambda one: one.name)),
    )


# -- the probe


def test_the_lock_names_the_interpreter_that_was_asked(site):
    found = to_lock(live(site)).python
    assert found.version == ".".join(map(str, sys.version_info[:3]))
    assert found.minor == f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert found.system == sys.platform
    assert "-" not in found.platform


def test_a_distribution_keeps_its_local_label_and_requirements(site):
    add_distribution(site, "Torch_X", "2.13.0+cpu", requires=("numpy>=1",))
    found = locked(site, "torch-x")
    assert (found.version, found.local_label) == ("2.13.0+cpu", "cpu")
    assert found.origin == "index"
    assert found.installer == "pip"
    assert found.requires == ("numpy>=1",)


def test_the_first_of_two_versions_on_the_path_is_the_one_imported(tmp_path):
    add_distribution(tmp_path / "a", "thing", "1.0")
    add_distribution(tmp_path / "b", "thing", "2.0")
    path = os.pathsep.join([str(tmp_path / "b"), str(tmp_path / "a")])
    found = to_lock(probe(empty_python(), env={**os.environ, "PYTHONPATH": path}))
    assert [one.version for one in found.distributions if one.name == "thing"] == [
        "2.0"
    ]


def test_broken_metadata_is_named_and_hides_no_other(site):
    (site / "broken-1.0.dist-info").mkdir(parents=True)
    add_distribution(site, "odd", "1 2")
    add_distribution(site, "whole", "1.0")
    found = to_lock(live(site))
    assert found.find("whole") is not None
    assert found.find("odd") is None
    assert found.unreadable == (
        "broken-1.0.dist-info",
        "odd-1 2.dist-info",
    )


def test_what_start_up_hooks_print_does_not_disturb_the_answer(site):
    site.mkdir()
    (site / "sitecustomize.py").write_text("print('{\"version\": 1}')")
    add_distribution(site, "thing", "1.0")
    assert locked(site, "thing").version == "1.0"


def test_an_interpreter_that_does_not_start_is_said_so(tmp_path):
    with pytest.raises(EnvironmentUnusableError) as caught:
        probe(tmp_path / "python")
    assert str(caught.value) == (
        f"interpreter {str(tmp_path / 'python')!r} does not tell its packages: "
        "No such file or directory; check that it starts and is Python 3.9 or newer"
    )


def test_a_program_that_is_no_python_is_said_so(tmp_path):
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho not a python >&2\nexit 3\n")
    script.chmod(0o755)
    with pytest.raises(EnvironmentUnusableError, match="packages: not a python"):
        probe(script)


def test_the_probe_imports_the_standard_library_alone():
    code = (
        "import sys, runpy; sys.argv = ['probe', sys.argv[2]]; "
        f"runpy.run_path({str(PROBE)!r}, run_name='__main__'); "
        "print([m for m in sys.modules if m.partition('.')[0] not in "
        "sys.stdlib_module_names and not m.startswith('_')])"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, "-", os.devnull],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


# -- files


def test_the_same_files_give_the_same_digest_whoever_installed_them(tmp_path):
    by_pip = add_distribution(
        tmp_path / "a",
        "thing",
        "1.0",
        record="thing.py,sha256=x,10\n"
        "thing-1.0.dist-info/INSTALLER,sha256=p,4\n"
        "thing-1.0.dist-info/REQUESTED,sha256=q,0\n"
        "__pycache__/thing.cpython-311.pyc,,\n"
        "../../../bin/thing,sha256=shebang1,200\n",
    )
    by_uv = add_distribution(
        tmp_path / "b",
        "thing",
        "1.0",
        record="../../../bin/thing,sha256=shebang2,210\n"
        "thing-1.0.dist-info/INSTALLER,sha256=u,2\n"
        "thing.py,sha256=x,10\n",
    )
    assert read_record(by_pip) == read_record(by_uv)
    assert read_record(by_pip).size_bytes == 110


def test_one_changed_file_gives_another_digest(tmp_path):
    first = add_distribution(tmp_path / "a", "x", "1.0", record="x.py,sha256=x,10\n")
    other = add_distribution(tmp_path / "b", "x", "1.0", record="x.py,sha256=y,10\n")
    assert read_record(first).digest != read_record(other).digest


def test_data_files_outside_the_packages_count_as_content(tmp_path):
    line = "../../../share/x.dat,sha256={},10\n"
    first = add_distribution(tmp_path / "a", "x", "1.0", record=line.format("1"))
    other = add_distribution(tmp_path / "b", "x", "1.0", record=line.format("2"))
    assert read_record(first).digest != read_record(other).digest


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (None, "its RECORD is missing"),
        ("x.py,sha256=x,many\n", "its RECORD cannot be read"),
    ],
)
def test_without_a_record_the_reason_stands_in_the_lock(site, record, reason):
    add_distribution(site, "thing", "1.0", record=record)
    found = locked(site, "thing")
    assert found.record_digest is None
    assert found.record_unknown.startswith(reason)
    assert found.size_bytes is None


def test_missing_and_shortened_files_are_damage(site):
    folder = add_distribution(site, "x", "1.0", files={"x/a.py": "aaaa", "x/b.py": "b"})
    (folder / "METADATA").write_text("m" * 100)
    assert damaged_files(folder) == ()
    (site / "x/a.py").write_text("aaa")
    (site / "x/b.py").unlink()
    assert damaged_files(folder) == ("x/a.py", "x/b.py")
    (folder / "RECORD").unlink()
    assert damaged_files(folder) == ("x-1.0.dist-info/RECORD",)


# -- origins


def test_an_address_is_kept_without_what_opens_it(site):
    add_distribution(
        site,
        "thing",
        "1.0",
        direct_url={
            "url": "https://user:secret@files.example.org/t-1.0.zip?signature=abc",
            "archive_info": {"hash": f"sha256={'b' * 64}"},
        },
    )
    found = locked(site, "thing")
    assert (found.origin, found.sha256) == ("url", "b" * 64)
    assert found.detail == "https://files.example.org/t-1.0.zip"


def test_a_commit_is_kept_with_its_address_and_folder(site):
    add_distribution(
        site,
        "thing",
        "1.0",
        direct_url={
            "url": "https://token@git.example.org/a/b.git",
            "vcs_info": {"vcs": "git", "commit_id": "c" * 40},
            "subdirectory": "python",
        },
    )
    found = locked(site, "thing")
    assert found.origin == "vcs"
    assert found.detail == (
        f"git+https://git.example.org/a/b.git@{'c' * 40}#subdirectory=python"
    )


def test_a_local_wheel_keeps_its_name_and_digest_only(site):
    add_distribution(
        site,
        "thing",
        "1.0+cpu",
        direct_url={
            "url": "file:///home/me/secret%20plans/thing-1.0%2Bcpu-py3-none-any.whl",
            "archive_info": {"hashes": {"sha256": "d" * 64}},
        },
    )
    found = locked(site, "thing")
    assert (found.origin, found.sha256) == ("local", "d" * 64)
    assert found.detail == "thing-1.0+cpu-py3-none-any.whl"


def editable(folder: Path) -> dict[str, object]:
    return {"url": folder.as_uri(), "dir_info": {"editable": True}}


def test_an_editable_install_of_the_project_is_the_project(site, tmp_path):
    project = tmp_path / "project"
    (project / "src" / "thing").mkdir(parents=True)
    add_distribution(
        site,
        "thing",
        "1.0",
        direct_url=editable(project),
        files={"_thing.pth": f"{project / 'src'}\n"},
    )
    found = locked(site, "thing", project=project)
    assert (found.origin, found.detail) == ("editable", "{project}")
    (one,) = live(site).editables
    assert one.location == project
    assert one.import_paths == (project / "src",)


def test_an_editable_finder_tells_where_it_imports_from(site, tmp_path):
    package = tmp_path / "my code" / "lib" / "thing"
    package.mkdir(parents=True)
    add_distribution(
        site,
        "thing",
        "1.0",
        direct_url=editable(tmp_path / "my code"),
        files={
            "__editable___thing_1_0_finder.py": (
                f"MAPPING: dict[str, str] = {{'thing': {str(package)!r}}}\n"
            )
        },
    )
    (one,) = live(site).editables
    assert one.import_paths == (tmp_path / "my code" / "lib",)


def test_another_editable_install_is_named_below_home_with_its_commit(site, tmp_path):
    home = tmp_path / "home"
    code = home / "my code"
    code.mkdir(parents=True)
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for arguments in (
        ("init", "-q"),
        (*identity, "commit", "-q", "--allow-empty", "-m", "x"),
    ):
        subprocess.run(["git", "-C", str(code), *arguments], check=True)
    head = subprocess.check_output(["git", "-C", str(code), "rev-parse", "HEAD"])
    commit = head.decode().strip()
    add_distribution(site, "thing", "1.0", direct_url=editable(code))
    assert locked(site, "thing", home=home).detail == f"~/my%20code@{commit}"
    (code / "new.py").write_text("x")
    subprocess.run(["git", "-C", str(code), "add", "new.py"], check=True)
    assert locked(site, "thing", home=home).detail == f"~/my%20code@{commit}+changed"


@pytest.mark.parametrize(
    ("address", "clean"),
    [
        (
            "https://a:b@h.org/x.whl?sig=1#sha256=ab&egg=x",
            "https://h.org/x.whl#sha256=ab",
        ),
        ("https://h.org:8443/x y.whl", "https://h.org:8443/x%20y.whl"),
        ("ssh://git@h.org/a.git", "ssh://git@h.org/a.git"),
        ("ssh://me@h.org/a.git", "ssh://h.org/a.git"),
        ("http://10.0.0.7:8080/x.whl", "http://private-host/x.whl"),
        ("http://builds.corp/x.whl", "http://private-host/x.whl"),
        ("http://localhost/x.whl", "http://private-host/x.whl"),
        ("file:///home/me/x.whl", "file://private-host/x.whl"),
        ("http://[::bad/x", "https://private-host/"),
    ],
)
def test_addresses_lose_credentials_and_private_hosts(address, clean):
    assert clean_address(address) == clean


def test_an_address_in_a_requirement_is_cleaned_and_its_marker_kept():
    dirty = "x @ https://t:s@h.org/x.whl?k=1 ; python_version > '3'"
    assert clean_requirement(dirty) == "x @ https://h.org/x.whl ; python_version > '3'"
    assert clean_requirement("x[y]>=1; z") == "x[y]>=1; z"


# -- the document


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "a\n--index-url=http://evil"},
        {"name": "-r"},
        {"version": "1.0 --pre"},
        {"version": "1.0\n--pre"},
        {"detail": "https://h.org/x\n--pre"},
        {"sha256": "zz"},
        {"local_label": "cpu"},
        {"record_digest": None},
        {"record_unknown": "both"},
        {"more": 1},
    ],
)
def test_a_hostile_distribution_does_not_decode(fields):
    good = {"name": "a", "version": "1.0", "record_digest": "0" * 64}
    assert msgspec.convert(good, Distribution).name == "a"
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode({**good, **fields}), type=Distribution)


def test_a_name_that_occurs_twice_does_not_decode():
    raw = msgspec.json.encode(lock(distribution("a", "1.0")))
    document = msgspec.json.decode(raw)
    document["distributions"] *= 2
    with pytest.raises(msgspec.ValidationError, match="each once"):
        msgspec.json.decode(msgspec.json.encode(document), type=Lock)


def test_a_real_environment_survives_the_round_trip():
    found = to_lock(probe(PYTHON))
    assert msgspec.json.decode(msgspec.json.encode(found), type=Lock) == found
    assert found.find("pytest") is not None


def test_the_digest_of_a_lock_depends_on_every_version():
    one, other = lock(distribution("a", "1.0")), lock(distribution("a", "1.1"))
    assert lock_digest(one) == lock_digest(lock(distribution("a", "1.0")))
    assert lock_digest(one) != lock_digest(other)


# -- requirements


def test_requirements_are_exact_and_say_what_is_left_out():
    text = requirements_text(
        lock(
            distribution("torch", "2.13.0+cpu"),
            distribution("pip", "23.2.1"),
            distribution("mine", "0.1", origin="editable", detail="{project}"),
            distribution("near", "0.2", origin="editable", detail="~/near@abc"),
            distribution("wheel-x", "1.0", origin="local", sha256="d" * 64),
            distribution(
                "far",
                "3.0",
                origin="url",
                detail="https://h.org/f.zip",
                sha256="e" * 64,
            ),
            distribution("tree", "4.0", origin="vcs", detail="git+https://h.org/t@abc"),
        )
    )
    assert text.splitlines() == [
        "# environment of Python 3.11.7 on linux_x86_64",
        "# complete: install with --no-deps",
        f"far @ https://h.org/f.zip#sha256={'e' * 64}",
        "torch==2.13.0+cpu",
        "tree @ git+https://h.org/t@abc",
        "# installed from a local file, to be had from a folder of wheels only:",
        f"# wheel-x==1.0 --hash=sha256:{'d' * 64}",
        "# built from a local folder, to be had from a folder of wheels only:",
        "# near==0.2",
        "# left out: mine==0.1 is the project itself, whose files are in the bundle",
        "# left out: pip==23.2.1 is no part of what is run",
    ]


@pytest.mark.parametrize(
    "detail",
    [
        "git+ext::sh%20-c@x",
        "file:///etc/x.whl",
        "git+file:///x@y",
        "http://private-host/x",
    ],
)
def test_an_address_that_must_not_be_used_becomes_a_pin_for_a_folder(detail):
    found = requirements(lock(distribution("a", "1.0", origin="url", detail=detail)))
    assert found.pins == ()
    assert found.unhashed == ("a==1.0",)


def test_with_a_folder_of_wheels_no_address_is_asked():
    far = distribution("far", "3.0", origin="url", detail="https://h.org/f.zip")
    found = requirements(lock(far), folder_only=True)
    assert found.pins == ()
    assert found.unhashed == ("far==3.0",)


def test_lock_files_are_found_and_foreign_folders_skipped(tmp_path):
    wanted = [
        "Pipfile.lock",
        "conda-linux-64.lock",
        "environment-gpu.yaml",
        "poetry.lock",
        "pylock.dev.toml",
        "pyproject.toml",
        "requirements-dev.txt",
        "requirements/base.txt",
        "sub/environment.yml",
        "uv.lock",
    ]
    others = [
        "notes.txt",
        "data/base.txt",
        ".venv/requirements.txt",
        "env/pyvenv.cfg",
        "env/requirements.txt",
        "node_modules/x/requirements.txt",
        "a/b/c/requirements.txt",
    ]
    for name in (*wanted, *others):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    found = [
        path.relative_to(tmp_path).as_posix() for path in find_lock_files(tmp_path)
    ]
    assert sorted(found) == sorted(wanted)


# -- drift


def test_equal_environments_do_not_drift():
    one = lock(distribution("torch", "2.13.0+cpu"), distribution("six", "1.16.0"))
    assert drift(one, one) == ()


def test_the_local_label_of_torch_is_a_numeric_difference():
    found = drift(
        lock(distribution("torch", "2.13.0+cpu")), lock(distribution("torch", "2.13.0"))
    )
    assert found == (Drift("torch", "2.13.0+cpu", "2.13.0", "numeric"),)


@pytest.mark.parametrize(
    ("name", "grade"),
    [
        ("numpy", "numeric"),
        ("mkl", "numeric"),
        ("nvidia-cublas", "numeric"),
        ("scipy-openblas32", "numeric"),
        ("six", "other"),
    ],
)
def test_each_package_has_its_grade(name, grade):
    assert drift(lock(distribution(name, "1.0")), lock()) == (
        Drift(name, "1.0", "absent", grade),
    )
    assert drift(lock(), lock(distribution(name, "1.0"))) == (
        Drift(name, "absent", "1.0", grade),
    )


def test_a_python_of_another_minor_version_is_numeric_and_a_patch_is_not():
    assert drift(lock(), lock(version="3.12.1")) == (
        Drift("python", "3.11.7", "3.12.1", "numeric"),
    )
    assert drift(lock(), lock(version="3.11.9")) == (
        Drift("python", "3.11.7", "3.11.9", "other"),
    )


def test_other_hardware_is_named():
    found = drift(lock(), lock(architecture="arm64", system="darwin", libc=""))
    assert [one.name for one in found] == [
        "python.architecture",
        "python.system",
        "python.libc",
    ]


def test_other_files_of_one_version_are_a_difference():
    one = lock(distribution("torch", "2.13.0", "0" * 64))
    other = lock(distribution("torch", "2.13.0", "1" * 64))
    (found,) = drift(one, other)
    assert (found.name, found.grade) == ("torch (files)", "numeric")
    assert (found.reference, found.here) == (
        "blake3 000000000000",
        "blake3 111111111111",
    )


def test_files_are_not_compared_between_platforms():
    one = lock(distribution("torch", "2.13.0", "0" * 64))
    other = lock(
        distribution("torch", "2.13.0", "1" * 64), platform="macosx_14_0_arm64"
    )
    assert drift(one, other) == ()


def test_other_files_of_a_package_that_no_index_serves_are_other_code():
    one = lock(distribution("mine", "1.0", "0" * 64, origin="local", detail="m.whl"))
    (found,) = drift(one, lock(distribution("mine", "1.0", "1" * 64)))
    assert found.grade == "numeric"


def test_numeric_differences_come_first_and_the_installer_does_not_count():
    one = lock(
        distribution("aaa", "1"), distribution("numpy", "1"), distribution("pip", "1")
    )
    assert [found.name for found in drift(one, lock())] == ["numpy", "aaa"]
