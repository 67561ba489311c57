"""Bundles with signatures behind the seal, written by hand.

Source: OpenSSH, PROTOCOL.sshsig.
"""

from __future__ import annotations

import base64
import textwrap

from blake3 import blake3

from tests.conformance.documents import Story, bundle_id
from tests.format.forge import Forged


def armoured(namespace: bytes) -> bytes:
    """Return a well-formed signature of a key and a hand that nobody has."""
    key = _string(b"ssh-ed25519") + _string(bytes(range(32)))
    hand = _string(b"ssh-ed25519") + _string(bytes(64))
    blob = b"SSHSIG" + (1).to_bytes(4, "big")
    for part in (key, namespace, b"", b"sha512", hand):
        blob += _string(part)
    lines = textwrap.wrap(base64.b64encode(blob).decode(), 70)
    text = "\n".join(
        ["-----BEGIN SSH SIGNATURE-----", *lines, "-----END SSH SIGNATURE-----", ""]
    )
    return text.encode()


def signature(data: bytes, subject: str) -> Forged:
    """Return `data` as the entry of a signature over what has the id `subject`."""
    name = f"signatures/{subject}.{blake3(data).hexdigest()[:16]}.sig"
    return Forged(name, data)


def signed(data: bytes, *, subject: str = "") -> bytes:
    """Return the smallest complete bundle with `data` as a signature over it."""
    bundle = Story().forge()
    bundle.unsealed.append(signature(data, subject or bundle_id(bundle)))
    return bundle.build()


def _string(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data
