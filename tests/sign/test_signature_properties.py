"""No bytes as a signature or as a list of signers end in anything but our errors."""

from __future__ import annotations

import base64
import contextlib
import struct

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reprobundle.errors import DocumentError, ReprobundleError
from reprobundle.format.signature import (
    fingerprint,
    parse_signature,
    signature_name,
    signed_subject,
)
from reprobundle.sign.signers import names_of_key, read_signers


def string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def armoured(blob: bytes, width: int = 70) -> bytes:
    text = base64.b64encode(blob)
    lines = [text[start : start + width] for start in range(0, len(text), width)]
    return b"\n".join(
        [b"-----BEGIN SSH SIGNATURE-----", *lines, b"-----END SSH SIGNATURE-----\n"]
    )


plain = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=40)


@given(plain, st.binary(max_size=50), plain, st.integers(1, 100))
def test_a_signature_says_its_key_and_namespace(kind, rest, namespace, width):
    key = string(kind.encode()) + rest
    blob = b"SSHSIG\0\0\0\1" + string(key) + string(namespace.encode()) + string(b"")
    data = armoured(blob, width)
    told = parse_signature(data, where="x")
    assert told == (kind, fingerprint(key), namespace)
    name = signature_name("0" * 64, data)
    assert signed_subject(name, data) == "0" * 64
    with contextlib.suppress(DocumentError):
        assert not signed_subject(name, data + b"\n")


@settings(max_examples=300)
@given(st.binary(max_size=80), st.booleans(), st.booleans())
def test_no_bytes_are_a_signature_by_accident(data, armour, magic):
    blob = b"SSHSIG\0\0\0\1" + data if magic else data
    whole = armoured(blob) if armour else blob
    with contextlib.suppress(DocumentError):
        told = parse_signature(whole, where="x")
        assert all(part.isprintable() for part in told)


lines = st.lists(
    st.text(max_size=12)
    | st.sampled_from(
        ["ssh-ed25519 AAAA", "a ssh-ed25519 AAAA", '"a,b" x ssh-rsa BBBB', "# c", '"']
    ),
    max_size=5,
)


@settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(listed=lines, between=st.sampled_from(["\n", "\r\n", "\v", "\u2028", " "]))
def test_any_list_of_signers_is_read_line_by_line_or_refused(listed, between, tmp_path):
    path = tmp_path / "somebody.keys"
    text = between.join(listed)
    path.write_text(text, "utf-8", "replace", newline="")
    with contextlib.suppress(ReprobundleError):
        document = read_signers([path])
        assert document.count(b"\n") <= text.count("\n") + 1
        names_of_key(document, "SHA256:x")
