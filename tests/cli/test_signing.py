"""Two people sign on the command line, and a third one reads who vouches."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from tests.cli.conftest import reprobundle


@pytest.fixture
def signed(replayed, tmp_path):
    if shutil.which("ssh-keygen") is None:
        pytest.skip("no ssh-keygen on the path")
    bundle = tmp_path / "points.rpb.zip"
    shutil.copy(replayed, bundle)
    lines = []
    for name in ("alice", "bob"):
        key = tmp_path / name
        call = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key]
        subprocess.run(call, check=True)
        public = key.with_suffix(".pub").read_text().split()[:2]
        lines.append(" ".join([f"{name}@lab", *public]))
    (tmp_path / "signers").write_text("\n".join(lines) + "\n")
    done = reprobundle("sign", bundle, "--key", tmp_path / "alice")
    assert done.status == 0, done.err
    assert "signed bundle" in done.out
    return bundle


def test_a_bundle_is_signed_and_its_signer_named(signed, tmp_path):
    signers = tmp_path / "signers"
    done = reprobundle("verify", signed, "--signers", signers)
    assert "self-attested: signed by alice@lab" in done.out
    made = reprobundle("sign", signed, "--replay", "newest", "--key", tmp_path / "bob")
    assert made.status == 0, made.err
    done = reprobundle("verify", signed, "--signers", signers, "--json")
    report = json.loads(done.out)
    assert report["assurance"]["level"] == "reproduced-by-second"
    assert report["assurance"]["reproduced_by"] == ["bob@lab"]
    for kind in ("markdown", "html"):
        page = tmp_path / f"page.{kind}"
        reprobundle(
            *("report", signed, "--format", kind, "-o", page, "--signers", signers)
        )
        assert "reproduced by a second person" in page.read_text()


def test_a_bad_call_is_one_line_and_changes_nothing(signed, tmp_path):
    before = signed.read_bytes()
    for call in (
        ("sign", signed, "--key", tmp_path / "alice"),
        ("sign", signed, "--key", tmp_path / "nobody"),
        ("sign", signed, "--replay", "12", "--key", tmp_path / "bob"),
        ("sign", tmp_path / "alice", "--key", tmp_path / "bob"),
        ("verify", signed, "--at", "20250101"),
        ("verify", signed, "--signers", tmp_path / "none"),
        ("verify", signed, "--signers", signed),
    ):
        done = reprobundle(*call)
        assert done.status in (20, 21), call
        assert len(done.err.splitlines()) == 1, done.err
    assert signed.read_bytes() == before


def test_a_signature_is_taken_off_by_its_name(signed):
    listed = json.loads(reprobundle("inspect", signed, "--json").out)["signatures"]
    assert len(listed) == 1
    done = reprobundle("detach", signed, listed[0])
    assert done.status == 0, done.err
    assert json.loads(reprobundle("inspect", signed, "--json").out)["signatures"] == []
