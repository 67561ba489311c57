"""Stock tools open, test and check a bundle; README.txt is followed to the letter."""

from __future__ import annotations

import re
import subprocess

import pytest

from reprobundle.format.attach import attach_replay
from reprobundle.format.readme import README
from reprobundle.format.writer import Source, write_bundle

from .conftest import CONTENTS, csv_text, make_sources

pytestmark = pytest.mark.tools

# A member of their own that ends in .zst, beside one that would have taken that name,
# and names that a careless shell line would break.
AWKWARD = {
    **CONTENTS,
    "inputs/foo.csv": csv_text(200_000),
    "inputs/foo.csv.zst": b"not zstd at all",
    "inputs/with space.csv": csv_text(150_000),
    "inputs/-rf.csv": csv_text(150_000),
    "inputs/$(touch x).csv": csv_text(150_000),
    "inputs/quote'd.csv": csv_text(150_000),
}


def run(*command, cwd=None):
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def awkward(tmp_path_factory):
    path = tmp_path_factory.mktemp("tools") / "awkward.rpb.zip"
    return path, write_bundle(path, make_sources(AWKWARD))


def shell_blocks(text: str) -> list[str]:
    """Return the indented command blocks that follow a numbered step."""
    steps = re.split(r"^\d\. ", text, flags=re.MULTILINE)[1:]
    blocks = []
    for step in steps:
        lines = [line[7:] for line in step.splitlines() if line.startswith(" " * 7)]
        blocks.append("\n".join(lines))
    return blocks


def follow(script: str, path, folder):
    return subprocess.run(
        ["/bin/sh", "-e", "-c", script.replace("BUNDLE", f"'{path}'")],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_steps_of_the_readme_lead_to_the_sealed_files(awkward, tmp_path):
    path, written = awkward
    text = run("unzip", "-p", path, "README.txt")
    assert text.encode() == README
    blocks = shell_blocks(text)
    assert len(blocks) == 4
    done = follow("\n".join(blocks), path, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    *checks, bundle_id = done.stdout.splitlines()
    assert bundle_id == written.id
    assert len(checks) == len(AWKWARD) + 1  # and README.txt
    assert all(line.endswith(": OK") for line in checks)
    for name, content in AWKWARD.items():
        assert (tmp_path / "unpacked" / name).read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["unpacked"]


def test_the_steps_of_the_readme_find_a_changed_file(awkward, tmp_path):
    path, _ = awkward
    blocks = shell_blocks(README.decode())
    follow("\n".join(blocks[:2]), path, tmp_path)
    victim = tmp_path / "unpacked" / "project" / "train.py"
    victim.write_bytes(b"print('HELLO')\n")
    done = follow(f"cd unpacked\n{blocks[2]}", path, tmp_path)
    assert done.returncode != 0
    assert "project/train.py: FAILED" in done.stdout


def test_the_readme_explains_every_place_of_the_layout():
    text = README.decode()
    for place in ("project/", "inputs/", "external/", "lock/", "policy.json", "runs/"):
        assert f"\n  {place}" in text
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 90


@pytest.mark.parametrize("attached", [False, True])
@pytest.mark.parametrize(
    "command",
    [
        ["unzip", "-tqq"],
        ["zipinfo", "-1"],
        ["bsdtar", "-tf"],
        ["7z", "t"],
        ["python3", "-m", "zipfile", "-t"],
    ],
    ids=" ".join,
)
def test_stock_programs_accept_the_file(command, attached, awkward, tmp_path):
    path = tmp_path / "x.rpb.zip"
    path.write_bytes(awkward[0].read_bytes())
    if attached:
        attach_replay(path, b"{}\n", [Source("stdout.txt", "log", b"hello\n")])
    out = run(*command, path)
    if command[0] in {"zipinfo", "bsdtar"}:
        assert "manifest.json" in out
        assert ("replays/" in out) == attached


@pytest.mark.parametrize(
    "command",
    [
        ["unzip", "-q", "{path}", "-d", "{into}"],
        ["bsdtar", "-xf", "{path}", "-C", "{into}"],
        ["7z", "x", "-bd", "-o{into}", "{path}"],
    ],
    ids=lambda command: command[0],
)
def test_stock_programs_unpack_the_stored_bytes(command, awkward, tmp_path):
    path, written = awkward
    into = tmp_path / "out"
    into.mkdir()
    run(*(part.format(path=path, into=into) for part in command))
    for member in written.members:
        compressed = into / f"{member.path}.zst"
        if not (into / member.path).exists():
            run("zstd", "-q", "-d", compressed)
    run("b3sum", "--check", "--quiet", "B3SUMS", cwd=into)
    digest = run("b3sum", "--no-names", "manifest.json", cwd=into)
    assert digest.strip() == written.id


def test_zstd_tests_every_compressed_member(awkward, tmp_path):
    path, _ = awkward
    run("unzip", "-q", path, "-d", tmp_path)
    packed = [p for p in tmp_path.rglob("*.zst") if p.name != "foo.csv.zst"]
    assert len(packed) >= 4
    run("zstd", "-q", "-t", *packed)


def test_one_member_is_read_without_unpacking_the_others(awkward):
    path, _ = awkward
    assert run("unzip", "-p", path, "project/train.py") == "print('hello')\n"
