"""Signatures outside the seal: how they are named, and what one says of itself.

A signature is an armoured SSH signature over the stored bytes of the document that it
is about: ``manifest.json`` for a bundle, ``record.json`` for a replay. Its name states
the BLAKE3 digest of that document, which is the id of the bundle or the replay.

What a signature says of itself proves nothing; only a check by OpenSSH does.

Source: OpenSSH, PROTOCOL.sshsig (blob format, armour); spec.md, "Signatures".
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import NamedTuple

from reprobundle.errors import DocumentError
from reprobundle.format.digests import digest_bytes

NAMESPACE = "reprobundle"
LIMIT_BYTES = 16 << 10

_NAME = re.compile(r"signatures/([0-9a-f]{64})\.([0-9a-f]{16})\.sig")
_BEGIN = b"-----BEGIN SSH SIGNATURE-----"
_END = b"-----END SSH SIGNATURE-----"
_MAGIC = b"SSHSIG"
_VERSION = 1


class SshSignature(NamedTuple):
    """What an SSH signature says of itself.

    Attributes:
        key_type: Such as ``ssh-ed25519``.
        fingerprint: Of the public key, ``SHA256:`` and base64 as ssh-keygen prints it.
        namespace: What kind of document it was made for.
    """

    key_type: str
    fingerprint: str
    namespace: str


def signature_name(subject: str, signature: bytes) -> str:
    """Return the entry's name of `signature` over the document with id `subject`."""
    return f"signatures/{subject}.{digest_bytes(signature)[:16]}.sig"


def signed_subject(name: str, signature: bytes) -> str:
    """Return the id of the document that `signature` is about, by its entry's name.

    Raises:
        DocumentError: The name is not that of this signature.
    """
    match = _NAME.fullmatch(name)
    if match is None or digest_bytes(signature)[:16] != match[2]:
        raise DocumentError(
            "its name is not the id of what it signs and its own digest",
            rule="R-4.33",
            where=name,
        )
    return match[1]


def subject_of(name: str) -> str:
    """Return the id that an entry's name states as signed; empty if it states none."""
    match = _NAME.fullmatch(name)
    return match[1] if match else ""


def parse_signature(data: bytes, *, where: str) -> SshSignature:
    """Return what the armoured signature `data` says of itself.

    Raises:
        DocumentError: It is no SSH signature.
    """
    text = data.strip()
    if not (text.startswith(_BEGIN) and text.endswith(_END)):
        raise _no_signature(where)
    body = text[len(_BEGIN) : -len(_END)]
    try:
        blob = base64.b64decode(b"".join(body.split()), validate=True)
    except binascii.Error as error:
        raise _no_signature(where) from error
    if not blob.startswith(_MAGIC + _VERSION.to_bytes(4, "big")):
        raise _no_signature(where)
    key, rest = _string(blob[len(_MAGIC) + 4 :], where)
    namespace, _ = _string(rest, where)
    key_type, _ = _string(key, where)
    return SshSignature(
        _printable(key_type, where),
        fingerprint(key),
        _printable(namespace, where),
    )


def fingerprint(key: bytes) -> str:
    """Return the fingerprint of a public key in SSH's wire form."""
    digest = base64.b64encode(hashlib.sha256(key).digest())
    return f"SHA256:{digest.decode().rstrip('=')}"


def _string(data: bytes, where: str) -> tuple[bytes, bytes]:
    """Split off one string of RFC 4251, section 5."""
    length = int.from_bytes(data[:4], "big")
    if len(data) < 4 + length:
        raise _no_signature(where)
    return data[4 : 4 + length], data[4 + length :]


def _printable(data: bytes, where: str) -> str:
    text = data.decode("ascii", "replace")
    if not text.isprintable() or "\ufffd" in text or len(text) > 100:
        raise _no_signature(where)
    return text


def _no_signature(where: str) -> DocumentError:
    return DocumentError("this is no SSH signature", rule="R-4.33", where=where)
