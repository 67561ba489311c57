"""One sealed bundle for all tests of the container, and a way to open bytes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from reprobundle.format.manifest import Role
from reprobundle.format.reader import open_bundle
from reprobundle.format.writer import Source, write_bundle


def pseudo_random(size_bytes: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size_bytes)


def csv_text(size_bytes: int) -> bytes:
    rng = random.Random(2)
    line = "".join(
        f"{n},{rng.random():.6f},{rng.gauss(0, 1):.6f}\n" for n in range(2000)
    )
    return (line.encode() * (size_bytes // len(line) + 1))[:size_bytes]


CONTENTS = {
    "project/train.py": b"print('hello')\n",
    "project/empty.txt": b"",
    "project/naïve/ünï.py": "x = 'é'\n".encode(),
    "inputs/metrics.csv": csv_text(9_000_001),
    "inputs/small.csv": csv_text(200_000),
    "inputs/noise.bin": pseudo_random(4_500_000),
    "external/1/noise.bin": pseudo_random(40_000),
    "lock/environment.json": b"{}\n",
    "policy.json": b"{}\n",
    "runs/1/record.json": b"{}\n",
    "runs/1/outputs/y.txt": b"3\n",
}


def role_of(path: str) -> Role:
    top = path.partition("/")[0]
    if top == "runs":
        return "record" if path.endswith("record.json") else "output"
    roles: dict[str, Role] = {
        "README.txt": "readme",
        "project": "project",
        "inputs": "input",
        "external": "external",
        "lock": "lock",
        "policy.json": "policy",
    }
    return roles[top]


def make_sources(contents=None):
    return [
        Source(path, role_of(path), content, executable=path.endswith(".py"))
        for path, content in (CONTENTS if contents is None else contents).items()
    ]


@pytest.fixture(scope="session")
def sealed(tmp_path_factory):
    """The path of one bundle and what was said of it; no test may change it."""
    path = tmp_path_factory.mktemp("sealed") / "digits.rpb.zip"
    return path, write_bundle(path, make_sources())


@pytest.fixture
def bundle_path(sealed, tmp_path):
    """A copy of the bundle that a test may change."""
    path = tmp_path / "copy.rpb.zip"
    path.write_bytes(sealed[0].read_bytes())
    return path


@pytest.fixture
def open_bytes(tmp_path):
    """Open `data` as a bundle, close it, and return it."""

    def run(data: bytes):
        path: Path = tmp_path / "forged.rpb.zip"
        path.write_bytes(data)
        with open_bundle(path) as bundle:
            return bundle

    return run
