"""Examine signatures with the system's ssh-keygen: does one hold, and whose is it?

Whether a signature holds is asked without any list; whose key it is, only where the
caller names a list of signers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from reprobundle.errors import BundleError, DigestError, EnvironmentUnusableError
from reprobundle.format.reader import ReplayFile
from reprobundle.format.signature import (
    LIMIT_BYTES,
    NAMESPACE,
    SshSignature,
    parse_signature,
    signed_subject,
    subject_of,
)
from reprobundle.format.signed import SignatureResult, Standing
from reprobundle.sign import ssh_keygen
from reprobundle.sign.signers import Signers, names_of_key
from reprobundle.sign.subjects import Subject, find_subject

# Each costs up to three calls of ssh-keygen, some 15 ms.
MOST_SIGNATURES = 256


def examine_signatures(
    sources: Sequence[ReplayFile], signers: Signers | None
) -> list[SignatureResult]:
    """Return what each signature of `sources` is, in the order in which they lie.

    Args:
        sources: The bundle, and the file of replays beside it if there is one.
        signers: Whose keys are whose; None if the caller did not say.

    Raises:
        EnvironmentUnusableError: Whose keys are whose was said, and there is no
            ssh-keygen to ask.
    """
    if signers is not None and not ssh_keygen.has_ssh_keygen():
        raise EnvironmentUnusableError(
            "signers cannot be checked: there is no ssh-keygen on the path",
            advice="install OpenSSH 8.9 or newer",
        )
    with ssh_keygen.scratch() as folder:
        desk = _Desk(tuple(sources), signers, folder)
        places = [(one, name) for one in sources for name in one.signatures]
        looked_at = [desk.examine(*place) for place in places[:MOST_SIGNATURES]]
        return [*looked_at, *(_left(name) for _, name in places[MOST_SIGNATURES:])]


class _Desk:
    """What is needed to examine one signature after another."""

    def __init__(
        self, sources: tuple[ReplayFile, ...], signers: Signers | None, folder: Path
    ) -> None:
        self.sources = sources
        self.signers = signers
        self.folder = folder
        self.list: Path | None = None
        if signers is not None:
            self.list = ssh_keygen.written(signers.document, folder, "signers")

    def examine(self, source: ReplayFile, name: str) -> SignatureResult:
        """Return what one signature is."""
        try:
            data = source.read_unsealed(name, limit_bytes=LIMIT_BYTES)
            stated = parse_signature(data, where=name)
            subject = signed_subject(name, data)
        except BundleError as error:
            message = error.message.removeprefix(f"{name}: ")
            return SignatureResult(
                name=name,
                subject="",
                kind="unknown",
                standing="malformed",
                reason=message,
            )
        found = self._find(subject)
        standing, signer, reason = self._stand(data, stated, found)
        return SignatureResult(
            name=name,
            subject=subject,
            kind=found.kind if found else "unknown",
            key_type=stated.key_type,
            fingerprint=stated.fingerprint,
            standing=standing,
            signer=signer,
            reason=reason,
        )

    def _find(self, subject: str) -> Subject | None:
        for source in self.sources:
            # What does not have its digest is not what was signed; V6 says the rest.
            with contextlib.suppress(DigestError):
                found = find_subject(source, subject)
                if found is not None:
                    return found
        return None

    def _stand(
        self, data: bytes, stated: SshSignature, subject: Subject | None
    ) -> tuple[Standing, str, str]:
        """Return the standing of a well-formed signature, its signer and the reason."""
        if stated.namespace != NAMESPACE:
            reason = f"it was made for {stated.namespace!r}, not for {NAMESPACE!r}"
            return "other-namespace", "", reason
        if subject is None:
            return "without-subject", "", "what it signs is not in this file"
        if not ssh_keygen.has_ssh_keygen():
            return "not-tested", "", "there is no ssh-keygen here to check it"
        file = ssh_keygen.written(data, self.folder, "signature")
        answer = ssh_keygen.matches(file, subject.document)
        if not answer.is_good:
            reason = f"it is no signature over this {subject.kind}: {answer.complaint}"
            return "changed", "", reason
        if self.signers is None or self.list is None:
            reason = "the signature holds, but nobody said whose key it is"
            return "not-asked", "", reason
        known = names_of_key(self.signers.document, stated.fingerprint)
        return self._owner(file, subject, self.signers, self.list, known)

    def _owner(
        self,
        file: Path,
        subject: Subject,
        signers: Signers,
        listed: Path,
        known: Sequence[str],
    ) -> tuple[Standing, str, str]:
        """Return the standing of a signature that holds, by the list of signers.

        Args:
            file: The signature.
            subject: What it signs.
            signers: What the caller said.
            listed: The list as a file.
            known: All names that the list gives its key.
        """
        found = ssh_keygen.find_principals(file, listed, signers.at)
        names = _names(found.printed)
        if not found.is_good or not names:
            return _unlisted(found.complaint)
        checks = [
            ssh_keygen.verify_signature(
                file,
                subject.document,
                signers=listed,
                principal=name,
                revoked=signers.revoked,
                at=signers.at,
            )
            for name in names
        ]
        if any(check.is_good for check in checks):
            return "known", ", ".join(dict.fromkeys((*names, *known))), ""
        if signers.revoked is not None and self._is_revoked(file, subject, names):
            return "revoked", "", f"the key of {names[0]} was withdrawn"
        if any("not permitted" in check.complaint for check in checks):
            reason = f"the list does not permit the key of {names[0]} for this purpose"
            return "not-permitted", "", reason
        complaint = checks[0].complaint
        return "unknown", "", complaint or "ssh-keygen does not accept the key"

    def _is_revoked(self, file: Path, subject: Subject, names: Sequence[str]) -> bool:
        """Return whether the list of withdrawn keys alone is why it is refused."""
        signers, listed = self.signers, self.list
        if signers is None or listed is None:
            return False
        return any(
            ssh_keygen.verify_signature(
                file, subject.document, signers=listed, principal=name, at=signers.at
            ).is_good
            for name in names
        )


def _names(printed: bytes) -> list[str]:
    """Return the names of the first line of the list that is for a key."""
    lines = printed.decode("utf-8", "replace").splitlines()
    names = (name.strip() for line in lines for name in line.split(","))
    return list(dict.fromkeys(name for name in names if name))


def _left(name: str) -> SignatureResult:
    """Return the result for a signature that nobody looked at."""
    return SignatureResult(
        name=name,
        subject=subject_of(name),
        kind="unknown",
        standing="not-tested",
        reason=f"only the first {MOST_SIGNATURES:,} signatures are looked at",
    )


def _unlisted(complaint: str) -> tuple[Standing, str, str]:
    """Return why no line of the list is for this key, in the words of ssh-keygen."""
    for sign, text in (
        ("expired", "the key is listed, but its time was over"),
        ("not yet valid", "the key is listed, but its time has not come"),
    ):
        if sign in complaint:
            return "expired", "", text
    return "unknown", "", "the key is not in the list of signers"
