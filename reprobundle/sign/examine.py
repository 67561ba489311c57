"""Examine signatures with the system's ssh-keygen: does one hold, and whose is it?

Whether a signature holds is asked without any list; whose key it is, only where the
caller names a list of signers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reprobundle.errors import BundleError, EnvironmentUnusableError
from reprobundle.format.reader import ReplayFile
from reprobundle.format.signature import (
    LIMIT_BYTES,
    NAMESPACE,
    SshSignature,
    parse_signature,
    signed_subject,
)
from reprobundle.format.signed import SignatureResult, Standing
from reprobundle.sign import ssh_keygen
from reprobundle.sign.signers import Signers
from reprobundle.sign.subjects import Subject, find_subject


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
        return [
            desk.examine(source, name)
            for source in sources
            for name in source.signatures
        ]


class _Desk:
    """What is needed to examine one signature after another."""

    def __init__(
        self, sources: tuple[ReplayFile, ...], signers: Signers | None, folder: str
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
        return self._owner(file, subject, self.signers, self.list)

    def _owner(
        self, file: Path, subject: Subject, signers: Signers, listed: Path
    ) -> tuple[Standing, str, str]:
        """Return the standing of a signature that holds, by the list of signers."""
        found = ssh_keygen.find_principals(file, listed, signers.at)
        names = found.printed.decode("utf-8", "replace").splitlines()
        if not found.is_good or not names:
            return _unlisted(found.complaint)
        answer = ssh_keygen.verify_signature(
            file,
            subject.document,
            signers=listed,
            principal=names[0],
            revoked=signers.revoked,
            at=signers.at,
        )
        if answer.is_good:
            return "known", names[0], ""
        if signers.revoked is not None and self._is_revoked(file, subject, names[0]):
            return "revoked", "", f"the key of {names[0]} was withdrawn"
        if "not permitted" in answer.complaint:
            reason = f"the list does not permit the key of {names[0]} for this purpose"
            return "not-permitted", "", reason
        return "unknown", "", answer.complaint or "ssh-keygen does not accept the key"

    def _is_revoked(self, file: Path, subject: Subject, principal: str) -> bool:
        """Return whether the list of withdrawn keys alone is why it is refused."""
        if self.signers is None or self.list is None:
            return False
        return ssh_keygen.verify_signature(
            file,
            subject.document,
            signers=self.list,
            principal=principal,
            at=self.signers.at,
        ).is_good


def _unlisted(complaint: str) -> tuple[Standing, str, str]:
    """Return why no line of the list is for this key, in the words of ssh-keygen."""
    for sign, text in (
        ("expired", "the key is listed, but its time was over"),
        ("not yet valid", "the key is listed, but its time has not come"),
    ):
        if sign in complaint:
            return "expired", "", text
    return "unknown", "", "the key is not in the list of signers"
