"""Lists of signers are read as ssh-keygen reads them."""

from __future__ import annotations

import base64
import time

import pytest

from reprobundle.errors import BadCallError
from reprobundle.format.signature import fingerprint
from reprobundle.sign.signers import names_of_key, read_signers

KEY = base64.b64encode(b"\0\0\0\x0bssh-ed25519" + bytes(36)).decode()
PRINT = fingerprint(base64.b64decode(KEY))


@pytest.mark.parametrize("separator", ["\v", "\f", "\x1c", "\x85", "\u2028", "\r"])
def test_a_line_that_python_alone_would_end_hides_nobody(tmp_path, separator):
    """ssh-keygen sees one comment; `str.splitlines` saw mallory's key behind it."""
    path = tmp_path / "signers"
    path.write_text(
        f"alice ssh-ed25519 {KEY}\n# note{separator}mallory ssh-ed25519 {KEY}\n",
        encoding="utf-8",
        newline="",
    )
    document = read_signers([path])
    assert document == f"alice ssh-ed25519 {KEY}\n".encode()
    assert names_of_key(document, PRINT) == ["alice"]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (f"a@x,b ssh-ed25519 {KEY} comment", ["a@x", "b"]),
        (f'"a b, c" namespaces="reprobundle" ssh-ed25519 {KEY}', ["a b", "c"]),
        (f"a\tvalid-after=20200101 ssh-ed25519 {KEY}", ["a"]),
        (f"ssh-ed25519 {KEY}", []),
        ("a ssh-ed25519 !", []),
        ("a ssh-ed25519 AAAé", []),
        ('"a', []),
    ],
)
def test_names_are_those_before_the_key(line, names):
    assert names_of_key(f"{line}\n".encode(), PRINT) == names


def test_a_line_of_key_types_is_read_at_once(tmp_path):
    path = tmp_path / "signers"
    path.write_text("a " + "ssh-" * (1 << 18) + "\n")
    start = time.process_time()
    names_of_key(read_signers([path]), PRINT)
    # It took the square of its length: hours.
    assert time.process_time() - start < 20


def test_a_list_without_a_key_is_refused(tmp_path):
    path = tmp_path / "signers"
    path.write_text("# nobody\n")
    with pytest.raises(BadCallError, match="names no signer"):
        read_signers([path])
