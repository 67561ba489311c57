"""``inspect --target``: what the lock installs elsewhere, through the command line."""

from __future__ import annotations

import json

import pytest

from reprobundle.cli import run
from reprobundle.format.canonical import encode
from reprobundle.format.lock import Distribution, Interpreter, Lock
from reprobundle.format.writer import Source
from tests.verify.builder import LOCK, Bench

FILE = "net-2.0-cp311-cp311-{platform}.whl"
WHEEL = """[[packages.wheels]]
url = "https://example.org/{file}"
size = 1048576
hashes = {{sha256 = "{digest}"}}
"""


def pylock(*platforms: str) -> bytes:
    text = 'lock-version = "1.0"\ncreated-by = "test"\n'
    text += '[[packages]]\nname = "net"\nversion = "2.0"\n'
    for platform in platforms:
        text += WHEEL.format(file=FILE.format(platform=platform), digest="1" * 64)
    return text.encode()


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
            Distribution(
                name="net", version="2.0+cpu", local_label="cpu", record_unknown="no"
            ),
        ),
    )
)


def packed(folder, *platforms):
    bench = Bench(folder, lock=HELD)
    if platforms:
        bench.extra = (Source("lock/pylock.toml", "lock", pylock(*platforms)),)
    return str(bench.pack().path)


def test_the_file_and_what_differs_from_the_reference_are_shown(tmp_path, capsys):
    path = packed(tmp_path, "macosx_14_0_arm64")
    assert run(["inspect", "--target", "macos-arm64", path]) == 0
    shown = capsys.readouterr().out
    assert "net-2.0-cp311-cp311-macosx_14_0_arm64.whl" in shown
    assert "reference 2.0+cpu" in shown
    assert "1 file, 1.00 MiB: everything can be had on macos-arm64" in shown


def test_a_blocker_is_the_last_word(tmp_path, capsys):
    path = packed(tmp_path, "manylinux_2_28_x86_64")
    assert run(["inspect", "--target", "macos-arm64", path]) == 0
    shown = capsys.readouterr().out
    assert "net 2.0: its wheels are for manylinux_2_28_x86_64" in shown
    last = shown.rstrip().splitlines()[-1]
    assert "1 package cannot be had on macos-arm64" in last


def test_the_selection_is_there_for_programs(tmp_path, capsysbinary):
    path = packed(tmp_path, "macosx_14_0_arm64")
    assert run(["inspect", "--target", "macos-arm64", "--json", path]) == 0
    selection = json.loads(capsysbinary.readouterr().out)
    assert selection["chosen"][0]["sha256"] == "1" * 64


@pytest.mark.parametrize(
    ("platforms", "target", "words"),
    [
        ((), "macos-arm64", "holds no lock for other systems"),
        (("macosx_14_0_arm64",), "amiga", "choose from linux-x86_64"),
    ],
)
def test_what_cannot_be_shown_is_a_bad_call(tmp_path, capsys, platforms, target, words):
    path = packed(tmp_path, *platforms)
    assert run(["inspect", "--target", target, path]) == 20
    assert words in capsys.readouterr().err


def test_a_lock_for_other_systems_is_a_named_gap_where_it_is_missing(tmp_path):
    report = Bench(tmp_path, lock=LOCK).pack().verify(integrity_only=True)
    assert "lock-for-others" in report.not_checked
    assert report.exit_status == 0
