"""``wheels``: a folder for a machine without network, through the command line."""

from __future__ import annotations

import pytest

from reprobundle.cli import run
from reprobundle.errors import MissingPackageError
from reprobundle.format.canonical import encode
from reprobundle.format.lock import Distribution, Interpreter, Lock
from reprobundle.format.writer import Source
from reprobundle.replay import wheel_folder
from reprobundle.run.pylock_file import Chosen
from tests.replay.wheels import make_wheel, sha256
from tests.verify.builder import Bench

MAC = "cp311-cp311-macosx_14_0_arm64"
LINUX = "cp311-cp311-manylinux_2_28_x86_64"
HELD = encode(
    Lock(
        python=Interpreter(
            version="3.11.7",
            implementation="CPython",
            architecture="x86_64",
            system="linux",
            platform="linux_x86_64",
        ),
        distributions=(
            Distribution(name="net", version="2.0", record_unknown="no"),
            Distribution(name="pure", version="1.0", record_unknown="no"),
        ),
    )
)


@pytest.fixture
def served(tmp_path, monkeypatch):
    """The only place where packages come from."""
    folder = tmp_path / "served"
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return [
        make_wheel(folder, "net", "2.0", tag=MAC, text="on = 'a Mac'\n"),
        make_wheel(folder, "net", "2.0", tag=LINUX, text="on = 'Linux'\n"),
        make_wheel(folder, "pure", "1.0"),
    ]


def packed(folder, wheels, kind="wheels"):
    text = 'lock-version = "1.0"\ncreated-by = "test"\n'
    for name, version in (("net", "2.0"), ("pure", "1.0")):
        text += f'[[packages]]\nname = "{name}"\nversion = "{version}"\n'
        for wheel in wheels:
            if wheel.name.startswith(name):
                head = "[packages.sdist]" if kind == "sdist" else "[[packages.wheels]]"
                file = wheel.name if kind == "wheels" else f"{name}-{version}.tar.gz"
                text += f'{head}\npath = "{file}"\n'
                text += f'hashes = {{sha256 = "{sha256(wheel)}"}}\n'
    bench = Bench(folder, lock=HELD)
    bench.extra = (Source("lock/pylock.toml", "lock", text.encode()),)
    return str(bench.pack().path)


def test_the_files_of_that_machine_are_fetched_by_their_digests(tmp_path, served):
    path, folder = packed(tmp_path, served), tmp_path / "out"
    call = ["wheels", path, "--target", "macos-arm64", "-o", str(folder)]
    assert run(call) == 0
    assert {file.name: sha256(file) for file in folder.iterdir()} == {
        served[0].name: sha256(served[0]),
        served[2].name: sha256(served[2]),
    }


def test_what_lies_there_is_not_fetched_again_and_what_is_damaged_is(
    tmp_path, served, capsys
):
    path, folder = packed(tmp_path, served), tmp_path / "out"
    call = ["wheels", path, "--target", "linux-x86_64", "-o", str(folder)]
    assert run(call) == 0
    (folder / served[1].name).write_bytes(b"cut short")
    assert run(call) == 0
    assert "(1 lay there already)" in capsys.readouterr().out
    assert sha256(folder / served[1].name) == sha256(served[1])


def test_another_file_of_the_same_name_is_refused_and_not_kept(
    tmp_path, served, capsys
):
    path, folder = packed(tmp_path, served), tmp_path / "out"
    make_wheel(served[2].parent, "pure", "1.0", text="changed = True\n")
    call = ["wheels", path, "--target", "macos-arm64", "-o", str(folder)]
    assert run(call) == 20
    assert "pure" in capsys.readouterr().err
    assert not list(folder.glob("*.whl"))


def test_a_package_published_for_others_only_is_named(tmp_path, served, capsys):
    path, folder = packed(tmp_path, served[1:]), tmp_path / "out"
    call = ["wheels", path, "--target", "macos-arm64", "-o", str(folder)]
    assert run(call) == 20
    assert "net==2.0 cannot be had for macos-arm64" in capsys.readouterr().err
    assert not folder.exists()
    assert run([*call, "--without", "net"]) == 0
    assert [file.name for file in folder.iterdir()] == [served[2].name]


def test_a_source_archive_is_no_wheel_and_said_so(tmp_path, served, capsys):
    path = packed(tmp_path, [served[0], served[2]], kind="sdist")
    call = ["wheels", path, "--target", "macos-arm64", "-o", str(tmp_path / "out")]
    assert run(call) == 20
    assert "is locked as sdist, not as a wheel" in capsys.readouterr().err


def test_what_arrives_is_believed_only_with_the_locked_digest(tmp_path):
    (tmp_path / "arrived").mkdir()
    (tmp_path / "arrived/net-2.0-py3-none-any.whl").write_bytes(b"another file")
    wanted = Chosen(
        name="net",
        version="2.0",
        file="net-2.0-py3-none-any.whl",
        kind="wheel",
        sha256="0" * 64,
    )
    with pytest.raises(MissingPackageError, match="did not arrive with the locked"):
        wheel_folder._keep(tmp_path / "arrived", tmp_path, wanted)
    assert not (tmp_path / wanted.file).exists()
