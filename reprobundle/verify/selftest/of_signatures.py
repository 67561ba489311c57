"""Mutations of signatures: one that vouches for something else than what is there.

The key is made for the occasion. What it signs is honest; what lies beside the
signature is not, or the list of signers says that the key does not count.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from reprobundle.format.acceptance_record import AcceptanceRecord
from reprobundle.format.attach import attach_replay, attach_signature
from reprobundle.format.canonical import encode
from reprobundle.format.digests import digest_bytes
from reprobundle.format.manifest import MANIFEST_PATH
from reprobundle.format.pairing import acceptance_name
from reprobundle.format.reader import open_bundle
from reprobundle.format.signature import NAMESPACE, signature_name
from reprobundle.sign import ssh_keygen
from reprobundle.sign.signers import Signers
from reprobundle.verify.selftest.altered_replay import ids
from reprobundle.verify.selftest.mutation import Made, Mutation, NotPossibleError
from reprobundle.verify.selftest.of_acceptance import (
    honest,
    put_behind,
    with_other_recommendation,
)
from reprobundle.verify.selftest.subject import Subject

_WHO = "selftest@here"


class _Desk(NamedTuple):
    """A copy of the bundle to put signatures in, and a key to make them with."""

    copy: Path
    key: Path
    manifest: bytes

    @property
    def signers(self) -> Signers:
        """The list that says whose key it is."""
        return Signers(f"{_WHO} {self.public}\n".encode())

    @property
    def public(self) -> str:
        """Type and public half of the key."""
        return self.key.with_suffix(".pub").read_text("ascii").strip()

    def signature(self, document: bytes, namespace: str = NAMESPACE) -> bytes:
        """Return the signature over a document."""
        made = ssh_keygen.make_signature(self.key, document, namespace=namespace)
        if not made.is_good:
            raise NotPossibleError(f"ssh-keygen could not sign: {made.complaint}")
        return made.printed


def _signed(
    make: Callable[[Subject, _Desk], Made],
) -> Callable[[Subject], Iterator[Made]]:
    """Return what makes one altered copy with a key at hand."""

    def made(subject: Subject) -> Iterator[Made]:
        if not ssh_keygen.has_ssh_keygen():
            raise NotPossibleError("there is no ssh-keygen on the path")
        copy = subject.folder / "signed.rpb.zip"
        shutil.copy(subject.path, copy)
        key = subject.folder / "key"
        if not ssh_keygen.make_key(key).is_good:
            raise NotPossibleError("ssh-keygen makes no ed25519 key")
        with open_bundle(copy) as bundle:
            manifest = bundle.read(MANIFEST_PATH)
        yield make(subject, _Desk(copy, key, manifest))

    return made


def _over_another(subject: Subject, desk: _Desk) -> Made:
    """Give the signature over another bundle's manifest as one over this one."""
    attach_signature(desk.copy, subject.id, desk.signature(desk.manifest + b" "))
    return Made(desk.copy, "another bundle's signature", signers=desk.signers)


def _for_another(_: Subject, desk: _Desk) -> Made:
    """Leave the signature over another bundle under that bundle's id."""
    other = desk.manifest + b" "
    attach_signature(desk.copy, digest_bytes(other), desk.signature(other))
    return Made(desk.copy, "another bundle's signature", signers=desk.signers)


def _revoked(subject: Subject, desk: _Desk) -> Made:
    attach_signature(desk.copy, subject.id, desk.signature(desk.manifest))
    withdrawn = subject.folder / "withdrawn"
    withdrawn.write_text(f"{desk.public}\n", encoding="ascii")
    signers = desk.signers._replace(revoked=withdrawn)
    return Made(desk.copy, "the key", signers=signers)


def _expired(subject: Subject, desk: _Desk) -> Made:
    attach_signature(desk.copy, subject.id, desk.signature(desk.manifest))
    line = f'{_WHO} valid-before="20200101" {desk.public}\n'
    return Made(desk.copy, "the key", signers=Signers(line.encode()))


def _unlisted(subject: Subject, desk: _Desk) -> Made:
    attach_signature(desk.copy, subject.id, desk.signature(desk.manifest))
    other = subject.folder / "other"
    ssh_keygen.make_key(other)
    stranger = desk._replace(key=other)
    return Made(desk.copy, "the key", signers=stranger.signers)


def _renamed(subject: Subject, desk: _Desk) -> Made:
    data = desk.signature(desk.manifest)
    name = signature_name(subject.id, data + b" ")
    put_behind(desk.copy, name, data)
    return Made(desk.copy, name, signers=desk.signers)


def _for_git(subject: Subject, desk: _Desk) -> Made:
    data = desk.signature(desk.manifest, "git")
    attach_signature(desk.copy, subject.id, data)
    return Made(desk.copy, "its purpose", signers=desk.signers)


def _replay_altered(subject: Subject, desk: _Desk) -> Made:
    """Alter a signed replay, and give it the signature over the true one."""
    draft = subject.echo().main
    data = desk.signature(draft.tree()[0])
    record, sources = draft.saying(started="2026-01-01T00:00:00Z").tree()
    attach_signature(desk.copy, attach_replay(desk.copy, record, sources), data)
    return Made(desk.copy, "the record under it", signers=desk.signers)


def _acceptance_altered(subject: Subject, desk: _Desk) -> Made:
    """Put another name on a signed acceptance record, which no derivation shows."""
    record = honest(subject.path)
    data = desk.signature(encode(record))
    other = msgspec.structs.replace(record, by="somebody else")
    attach_signature(desk.copy, _accepted(desk, other), data)
    return Made(desk.copy, "who accepted it", signers=desk.signers)


def _acceptance_false(subject: Subject, desk: _Desk) -> Made:
    """Sign an acceptance that does not follow from the evidence."""
    record = with_other_recommendation(honest(subject.path))
    signature = desk.signature(encode(record))
    attach_signature(desk.copy, _accepted(desk, record), signature)
    return Made(desk.copy, "its recommendation")


def _accepted(desk: _Desk, record: AcceptanceRecord) -> str:
    """Attach an acceptance record and return its id."""
    data = encode(record)
    identifier = digest_bytes(data)
    put_behind(desk.copy, acceptance_name(identifier), data)
    return identifier


SIGNATURE_MUTATIONS = (
    Mutation(
        "signature-over-another",
        "the signature over another bundle as one over this",
        ids("signature-holds"),
        _signed(_over_another),
    ),
    Mutation(
        "signature-for-another",
        "the signature over another bundle alone",
        ids("author-signed"),
        _signed(_for_another),
    ),
    Mutation(
        "signature-revoked",
        "a signature by a key that was withdrawn",
        ids("signer-known"),
        _signed(_revoked),
    ),
    Mutation(
        "signature-expired",
        "a signature by a key that is no longer valid",
        ids("signer-known"),
        _signed(_expired),
    ),
    Mutation(
        "signature-unlisted",
        "a signature by a key that nobody listed",
        ids("author-signed"),
        _signed(_unlisted),
    ),
    Mutation(
        "signature-renamed",
        "a signature under another name",
        ids("signature-form"),
        _signed(_renamed),
    ),
    Mutation(
        "signature-for-git",
        "a signature made for another purpose",
        ids("signature-form"),
        _signed(_for_git),
    ),
    Mutation(
        "replay-altered-when-signed",
        "a replay altered after it was signed, under its new name",
        ids("signature-holds"),
        _signed(_replay_altered),
    ),
    Mutation(
        "acceptance-altered-when-signed",
        "another person's name on a signed acceptance record",
        ids("signature-holds"),
        _signed(_acceptance_altered),
    ),
    Mutation(
        "acceptance-false-and-signed",
        "a signed acceptance record with another recommendation than the rules give",
        ids("acceptance-derived"),
        _signed(_acceptance_false),
    ),
)
