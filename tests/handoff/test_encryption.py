"""A bundle encrypted by the system's own tools, and decrypted as it is there."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from reprobundle.errors import BadCallError, EnvironmentUnusableError
from reprobundle.handoff.encryption import Encryption, encrypted_copy
from reprobundle.handoff.ssh import Destination
from reprobundle.handoff.wish import BUNDLE_NAME, Wish
from tests.handoff.conftest import WHO

pytestmark = pytest.mark.encryption


def wish(*recipients, identity=""):
    return Wish(
        Destination("mac"), Path("x.zip"), encrypt_to=recipients, identity=identity
    )


@pytest.fixture
def age_key(tmp_path):
    """An identity of age, and its recipient."""
    identity = tmp_path / "key.txt"
    told = subprocess.run(
        ["age-keygen", "-o", identity], check=True, capture_output=True, text=True
    )
    return identity, told.stderr.split()[-1]


def decrypted(encryption, encrypted, folder):
    """Do what is done on the other machine before the replay; return the bytes."""
    folder.mkdir()
    sealed = folder / f"{BUNDLE_NAME}.{encryption.tool}"
    sealed.write_bytes(encrypted)
    commands, removed = encryption.steps()
    for command in commands:
        call = [part.replace("{folder}", str(folder)) for part in command]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (shlex.join(call), done.stderr)
    assert removed == [BUNDLE_NAME]
    return (folder / BUNDLE_NAME).read_bytes()


def travelled(encryption, tmp_path):
    """Encrypt a bundle, and return it with what travels and what comes out there."""
    bundle = tmp_path / "x.rpb.zip"
    bundle.write_bytes(b"PK" + bytes(range(256)) * 4000)
    with encrypted_copy(encryption, bundle, tmp_path / "kept", print) as file:
        encrypted = file.read_bytes()
    assert not file.exists()
    return bundle.read_bytes(), encrypted, tmp_path / "there"


def test_gpg_brings_the_very_bundle_there(gpg_key, tmp_path, monkeypatch):
    monkeypatch.setenv("GNUPGHOME", gpg_key)
    encryption = Encryption.of(wish(WHO))
    assert encryption is not None
    plain, encrypted, there = travelled(encryption, tmp_path)
    assert plain[:200] not in encrypted
    assert decrypted(encryption, encrypted, there) == plain


def test_gpg_names_a_recipient_that_it_does_not_know(gpg_key, tmp_path, monkeypatch):
    monkeypatch.setenv("GNUPGHOME", gpg_key)
    encryption = Encryption.of(wish("nobody@lab.example"))
    with pytest.raises(EnvironmentUnusableError, match=r"nobody@lab.*: skipped"):
        travelled(encryption, tmp_path)
    assert not list(tmp_path.rglob("*.gpg"))


def test_age_brings_the_very_bundle_there(age_key, tmp_path):
    identity, recipient = age_key
    encryption = Encryption.of(wish(recipient, identity=str(identity)))
    assert encryption is not None
    plain, encrypted, there = travelled(encryption, tmp_path)
    assert plain[:200] not in encrypted
    assert decrypted(encryption, encrypted, there) == plain


def test_an_ssh_key_is_a_recipient_of_age(tmp_path):
    key = tmp_path / "key"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True
    )
    recipient = " ".join(key.with_suffix(".pub").read_text().split()[:2])
    encryption = Encryption.of(wish(recipient, identity=str(key)))
    assert encryption is not None
    plain, encrypted, there = travelled(encryption, tmp_path)
    assert decrypted(encryption, encrypted, there) == plain


def test_a_recipient_that_is_empty_is_refused():
    with pytest.raises(BadCallError, match="a recipient is empty"):
        Encryption.of(wish(" "))


def test_recipients_of_two_tools_are_refused():
    with pytest.raises(BadCallError, match="some recipients are of age, some of gpg"):
        Encryption.of(wish("age1q", WHO))


@pytest.mark.sshd
@pytest.mark.slow
def test_a_bundle_is_plain_there_only_while_it_runs(far, bundle, gpg_key, monkeypatch):
    monkeypatch.setenv("GNUPGHOME", gpg_key)
    (far.home / ".gnupg").symlink_to(gpg_key)
    asked = ("--override-policy", "agreed", "--allow", "handoff-policy-overridden")
    try:
        done = far.run(
            *far.to_it(bundle, "--env", sys.executable, *asked, "--encrypt-to", WHO)
        )
    finally:
        (far.home / ".gnupg").unlink()
    assert done.returncode == 0, done.stderr
    left = [one.name for one in far.home.rglob(f"{BUNDLE_NAME}*")]
    assert left == [f"{BUNDLE_NAME}.gpg"]
    (shown,) = json.loads(far.run("status", "--json").stdout)
    gone = {
        it["where"].rpartition("/")[2]: bool(it["removed"]) for it in shown["places"]
    }
    assert gone[BUNDLE_NAME]
    assert not gone[f"{BUNDLE_NAME}.gpg"]
    assert far.run("clean", "127.0.0.1").returncode == 0
