"""Two people with SSH keys, and a bundle with a replay that reproduced it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PEOPLE = ("alice", "bob", "carol")


@pytest.fixture(scope="session")
def keys(tmp_path_factory) -> dict[str, Path]:
    if shutil.which("ssh-keygen") is None:
        if os.environ.get("REPROBUNDLE_REQUIRE_TOOLS"):
            pytest.fail("ssh-keygen is needed here")
        pytest.skip("no ssh-keygen on the path")
    folder = tmp_path_factory.mktemp("keys")
    for name in PEOPLE:
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name],
            check=True,
        )
    return {name: folder / name for name in PEOPLE}


@pytest.fixture
def listed(tmp_path, keys):
    """Write an allowed_signers file: each person with options, if any."""

    def write(**people: str) -> Path:
        path: Path = tmp_path / "signers"
        lines = []
        for person, options in people.items():
            key = " ".join(keys[person].with_suffix(".pub").read_text().split()[:2])
            lines.append(
                " ".join(part for part in (f"{person}@lab", options, key) if part)
            )
        path.write_text("\n".join(lines) + "\n")
        return path

    return write
