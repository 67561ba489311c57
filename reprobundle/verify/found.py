"""What one verification has found so far, and the report that it comes to."""

from __future__ import annotations

from reprobundle.format.assessment import Assessment, AttachedAcceptance
from reprobundle.format.findings import (
    ExperimentRun,
    Finding,
    Judgement,
    Report,
    SecondOpinion,
)
from reprobundle.format.judged import ClaimResult
from reprobundle.format.reader import Bundle
from reprobundle.format.signed import Assurance, SignatureResult
from reprobundle.verify.verdict import Decision


class Found:
    """What is known so far.

    Attributes:
        findings: About the bundle itself.
        judgements: About each replay, oldest first.
        claims: Every claim of the work and what came of it.
        second_opinion: Under the verifier's own policy, if there is one.
        experiments: Runs that were to differ, and count for nothing.
        acceptances: The attached acceptance records, and whether they hold.
        assessment: What the evidence comes to, where somebody asked.
        signatures: What was found about each signature.
        assurance: Who vouches for the result.
    """

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.judgements: list[Judgement] = []
        self.claims: tuple[ClaimResult, ...] = ()
        self.second_opinion: SecondOpinion | None = None
        self.experiments: tuple[ExperimentRun, ...] = ()
        self.acceptances: tuple[AttachedAcceptance, ...] = ()
        self.assessment: Assessment | None = None
        self.signatures: tuple[SignatureResult, ...] = ()
        self.assurance = Assurance(reason="no signature was looked at")

    def report(self, file: str, decision: Decision, bundle: Bundle | None) -> Report:
        """Return the one report that every rendering is made from.

        Args:
            file: Name of the file.
            decision: The verdict over all that was found.
            bundle: The bundle; None if it could not be opened.
        """
        everything = [
            *self.findings,
            *(found for one in self.judgements for found in one.findings),
        ]
        unchecked = (one.id for one in everything if one.outcome == "not-checked")
        return Report(
            bundle=bundle.id if bundle is not None else "",
            file=file,
            format_version=bundle.manifest.version if bundle is not None else "",
            verdict=decision.verdict.value,
            exit_status=decision.exit_status,
            reasons=decision.reasons,
            not_checked=tuple(dict.fromkeys(unchecked)),
            findings=tuple(self.findings),
            judgements=tuple(self.judgements),
            claims=self.claims,
            second_opinion=self.second_opinion,
            experiments=self.experiments,
            acceptances=self.acceptances,
            assessment=self.assessment,
            signatures=self.signatures,
            assurance=self.assurance,
        )
