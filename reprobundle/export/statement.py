"""The verdict on a bundle as an in-toto statement, for others to sign and to demand.

Two predicates. Our own says what the verdict is, in its own words, with what was not
checked. ``test-result`` knows PASSED, WARNED and FAILED only: it is written where the
verdict is one of them, and refused where it is none. What was not checked never reads
as passed, and neither as failed.

Sources: in-toto Statement v1,
https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md; Test Result v0.1,
https://github.com/in-toto/attestation/blob/main/spec/predicates/test-result.md.
"""

from __future__ import annotations

import hashlib
from typing import Any

from reprobundle import __version__
from reprobundle.errors import BadCallError
from reprobundle.export.verified import Verified, rfc3339
from reprobundle.format.attestation import (
    PREDICATE_TYPE,
    ReplayVerdict,
    VerdictPredicate,
    Verifier,
)
from reprobundle.format.canonical import encode
from reprobundle.format.findings import Judgement, Verdict
from reprobundle.format.manifest import MANIFEST_PATH

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
TEST_RESULT_TYPE = "https://in-toto.io/attestation/test-result/v0.1"
POLICY_NAME = "policy.json"

_RESULTS: dict[str, str] = {
    Verdict.BIT_IDENTICAL.value: "PASSED",
    Verdict.WITHIN_TOLERANCE.value: "PASSED",
    Verdict.WITH_WARNINGS.value: "WARNED",
    Verdict.NOT_REPRODUCED.value: "FAILED",
    Verdict.DIFFERENT_FAILURE.value: "FAILED",
}
_LISTS = {"PASSED": "passedTests", "WARNED": "warnedTests", "FAILED": "failedTests"}
_PIECE_BYTES = 1 << 20


def statement_of_verdict(what: Verified) -> bytes:
    """Return a statement with our predicate, whatever the verdict."""
    report = what.report
    predicate = VerdictPredicate(
        verifier=Verifier(name="reprobundle", version=__version__),
        time_verified=rfc3339(what.at),
        bundle=what.bundle.id,
        format_version=report.format_version,
        policy_blake3=what.bundle.members[POLICY_NAME].blake3,
        verdict=report.verdict,
        exit_status=report.exit_status,
        reasons=report.reasons,
        not_checked=report.not_checked,
        replays=tuple(map(_replay, report.judgements)),
        assurance=report.assurance.level,
        authors=report.assurance.authors,
        reproduced_by=report.assurance.reproduced_by,
    )
    return _statement(what, PREDICATE_TYPE, predicate)


def statement_of_tests(what: Verified) -> bytes:
    """Return a statement with the predicate ``test-result``.

    Raises:
        BadCallError: The verdict is no answer: that predicate has no word for it. A
            replay without an answer stands in none of its three lists.
    """
    report = what.report
    if report.verdict not in _RESULTS:
        raise BadCallError(
            f"the verdict is {report.verdict}, and the predicate test-result has no "
            "word for it: it knows PASSED, WARNED and FAILED",
            advice="leave out --predicate: our own predicate says it as it is",
        )
    lists: dict[str, list[str]] = {name: [] for name in _LISTS.values()}
    for one in report.judgements:
        result = _RESULTS.get(one.verdict)
        if result is not None:
            lists[_LISTS[result]].append(_name(one))
    predicate: dict[str, Any] = {
        "result": _RESULTS[report.verdict],
        "configuration": [
            {
                "name": POLICY_NAME,
                "digest": _digests(what, POLICY_NAME),
                "annotations": {
                    "verifier": f"reprobundle {__version__}",
                    "verdict": report.verdict,
                    "notChecked": list(report.not_checked),
                    "timeVerified": rfc3339(what.at),
                },
            }
        ],
        **lists,
    }
    return _statement(what, TEST_RESULT_TYPE, predicate)


def _replay(one: Judgement) -> ReplayVerdict:
    return ReplayVerdict(
        id=one.replay,
        claim=one.claim,
        pass_name=one.pass_name,
        device=one.device,
        verdict=one.verdict,
        exit_status=one.exit_status,
    )


def _name(one: Judgement) -> str:
    where = one.device or "no device"
    return f"replay {one.replay} ({one.claim}, {one.pass_name}, {where})"


def _statement(what: Verified, kind: str, predicate: object) -> bytes:
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [
            {
                "name": what.report.file,
                "digest": {"sha256": _file_sha256(what)},
            },
            {
                # What is sealed: this one stays the same when replays are attached.
                "name": MANIFEST_PATH,
                "digest": _digests(what, MANIFEST_PATH),
            },
        ],
        "predicateType": kind,
        "predicate": predicate,
    }
    return encode(statement)


def _digests(what: Verified, path: str) -> dict[str, str]:
    content = what.bundle.content(path)
    return {
        "sha256": hashlib.sha256(what.bundle.read(path)).hexdigest(),
        "blake3": content.digest,
    }


def _file_sha256(what: Verified) -> str:
    hasher = hashlib.sha256()
    with what.path.open("rb") as stream:
        while piece := stream.read(_PIECE_BYTES):
            hasher.update(piece)
    return hasher.hexdigest()
