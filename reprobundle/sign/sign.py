"""Sign a bundle or a replay with the user's own SSH key, and attach the signature."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import NamedTuple

from reprobundle.errors import (
    BadCallError,
    BundleError,
    DigestError,
    EnvironmentUnusableError,
)
from reprobundle.format.attach import attach_signature
from reprobundle.format.integrity import check_digests, check_replay_digests
from reprobundle.format.reader import Bundle, ReplayFile, open_any
from reprobundle.format.signature import (
    LIMIT_BYTES,
    SshSignature,
    parse_signature,
    subject_of,
)
from reprobundle.sign import ssh_keygen
from reprobundle.sign.subjects import (
    Subject,
    bundle_subject,
    choose_acceptance,
    choose_replays,
    replay_subject,
)

# As ssh tries them, those that OpenSSH no longer makes signatures with left out.
_KEY_NAMES = ("id_ed25519", "id_ed25519_sk", "id_ecdsa", "id_ecdsa_sk", "id_rsa")


class Signed(NamedTuple):
    """A signature that was made.

    Attributes:
        subject: What was signed.
        name: Name of the signature's entry in the file.
        key: What the signature says of itself.
    """

    subject: Subject
    name: str
    key: SshSignature


def sign(
    path: Path,
    key: Path,
    *,
    replays: tuple[str, ...] = (),
    acceptances: tuple[str, ...] = (),
) -> list[Signed]:
    """Sign what is in the file at `path`, and attach the signatures to it.

    Args:
        path: A bundle or a replay file.
        key: An SSH key: private, or public with its other half in an agent or on a
            security key.
        replays: The replays to sign, ``newest`` (all that the newest call recorded) or
            first digits of an id. Without any, a bundle itself is signed, and of a
            replay file all of its replays.
        acceptances: The acceptance records to sign, named in the same way.

    Raises:
        BadCallError: A replay is not there, or this key signed all of them
            already.
        DigestError: The content is not what was sealed: nobody should vouch for it.
        EnvironmentUnusableError: There is no ssh-keygen, or it could not sign.
        BundleError: The file is not as it must be.
    """
    with open_any(path) as file:
        _refuse_damaged(file)
        subjects = _subjects(file, replays, acceptances)
        there = _signers(file)
    made = []
    for subject in subjects:
        signature = _make(key, subject)
        stated = parse_signature(signature, where=str(key))
        if (subject.id, stated.fingerprint) not in there:
            made.append((subject, signature, stated))
    if not made and subjects:
        raise BadCallError(
            f"this key signed {subjects[0].kind} {subjects[0].id[:12]}… already",
            advice="one signature of a key is enough",
        )
    return [
        Signed(subject, attach_signature(path, subject.id, signature), stated)
        for subject, signature, stated in made
    ]


def default_key() -> Path:
    """Return the user's SSH key that ssh itself would try first.

    Raises:
        BadCallError: There is none at the usual places.
    """
    folder = Path.home() / ".ssh"
    for name in _KEY_NAMES:
        for path in (folder / name, folder / f"{name}.pub"):
            if path.is_file():
                return path
    raise BadCallError(
        "no SSH key at the usual places",
        advice="name one with --key, or make one: ssh-keygen -t ed25519",
    )


def _subjects(
    file: ReplayFile, replays: tuple[str, ...], acceptances: tuple[str, ...]
) -> list[Subject]:
    if replays or acceptances:
        chosen = [
            *(it for one in replays for it in choose_replays(file, one)),
            *(choose_acceptance(file, one) for one in acceptances),
        ]
        return list(dict.fromkeys(chosen))
    if isinstance(file, Bundle):
        return [bundle_subject(file)]
    return [replay_subject(file, one) for one in file.replay_ids]


def _refuse_damaged(file: ReplayFile) -> None:
    """Refuse content that does not have its digests: a signature would vouch for it."""
    if isinstance(file, Bundle):
        damages = check_digests(file)
    else:
        damages = check_replay_digests(file)
    for damage in damages:
        raise DigestError(
            damage.path, expected=damage.expected, got=damage.got, rule="R-4.25"
        )


def _signers(file: ReplayFile) -> set[tuple[str, str]]:
    """Return who signed what already: ids and fingerprints as the signatures say."""
    there = set()
    for name in file.signatures:
        # What is no signature is for verify to tell.
        with contextlib.suppress(BundleError):
            data = file.read_unsealed(name, limit_bytes=LIMIT_BYTES)
            stated = parse_signature(data, where=name)
            there.add((subject_of(name), stated.fingerprint))
    return there


def _make(key: Path, subject: Subject) -> bytes:
    """Return the signature, proven by ssh-keygen itself.

    Raises:
        EnvironmentUnusableError: It could not be made or does not hold.
    """
    if not key.is_file():
        raise BadCallError(f"no key at {str(key)!r}", advice="name one with --key")
    made = ssh_keygen.make_signature(key, subject.document)
    if not made.is_good:
        raise EnvironmentUnusableError(
            f"ssh-keygen could not sign with {str(key)!r}: {made.complaint[:300]}",
            advice="check the key, its passphrase and the agent",
        )
    with ssh_keygen.scratch() as folder:
        file = ssh_keygen.written(made.printed, folder, "signature")
        proof = ssh_keygen.matches(file, subject.document)
    if not proof.is_good:
        raise EnvironmentUnusableError(
            f"the new signature does not hold: {proof.complaint[:300]}",
            advice="nothing was attached; try another key",
        )
    return made.printed
