"""The statement as in-toto's own bindings read it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from reprobundle.errors import BadCallError
from reprobundle.export.statement import statement_of_tests, statement_of_verdict
from reprobundle.format.attestation import VerdictPredicate
from reprobundle.format.findings import EXIT_STATUS, Verdict
from tests.export.conftest import KINDS, other_reader

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")
SCHEMA = Path(__file__).parents[2] / "schema/predicate.schema.json"
SURE = {Verdict.BIT_IDENTICAL, Verdict.WITHIN_TOLERANCE}
NO = {Verdict.NOT_REPRODUCED, Verdict.DIFFERENT_FAILURE}


def parsed(data):
    """Return the statement as in-toto's own protobuf message, checked by it."""
    other_reader("in_toto_attestation")
    from google.protobuf import json_format
    from in_toto_attestation.v1.statement import Statement
    from in_toto_attestation.v1.statement_pb2 import Statement as Message

    message = Message()
    json_format.Parse(data, message)
    Statement.copy_from_pb(message).validate()
    return message


def with_verdict(what, verdict):
    report = msgspec.structs.replace(
        what.report,
        verdict=verdict.value,
        exit_status=EXIT_STATUS[verdict],
        judgements=tuple(
            msgspec.structs.replace(
                one, verdict=verdict.value, exit_status=EXIT_STATUS[verdict]
            )
            for one in what.report.judgements
        ),
    )
    return what._replace(report=report)


@pytest.mark.parametrize("kind", KINDS)
def test_in_toto_takes_it_whatever_the_verdict(kind, opened):
    with opened(kind) as what:
        data = statement_of_verdict(what)
        message = parsed(data)
        assert message.predicate["verdict"] == what.report.verdict
        assert message.predicate["exitStatus"] == what.report.exit_status
    assert message.type == "https://in-toto.io/Statement/v1"
    assert message.predicate_type == "urn:reprobundle:predicate:verdict:1"


def test_the_subjects_are_the_file_and_what_is_sealed(opened, benches):
    bench = benches["reproduced"]
    with opened("reproduced") as what:
        message = parsed(statement_of_verdict(what))
        manifest = what.bundle.read("manifest.json")
    file, sealed = message.subject
    assert file.name == "digits.rpb.zip"
    assert file.digest["sha256"] == hashlib.sha256(bench.path.read_bytes()).hexdigest()
    assert sealed.digest["blake3"] == bench.id
    assert sealed.digest["sha256"] == hashlib.sha256(manifest).hexdigest()


def test_the_predicate_keeps_to_its_schema(opened):
    schema = json.loads(SCHEMA.read_text())
    with opened("not reproduced") as what:
        predicate = json.loads(statement_of_verdict(what))["predicate"]
    jsonschema.Draft202012Validator(schema).validate(predicate)
    told = msgspec.convert(predicate, VerdictPredicate)
    assert [one.verdict for one in told.replays] == [
        "REPRODUCED, bit-identical",
        "NOT REPRODUCED",
    ]
    assert "lists-second-person" in told.not_checked


@pytest.mark.parametrize("verdict", Verdict)
def test_only_an_answer_has_a_test_result(verdict, opened):
    with opened("reproduced") as what:
        told = with_verdict(what, verdict)
        if verdict not in {*SURE, *NO, Verdict.WITH_WARNINGS}:
            with pytest.raises(BadCallError, match="has no word for it"):
                statement_of_tests(told)
            return
        predicate = json.loads(statement_of_tests(told))["predicate"]
    wanted = "PASSED" if verdict in SURE else "FAILED" if verdict in NO else "WARNED"
    assert predicate["result"] == wanted
    assert bool(predicate["passedTests"]) is (verdict in SURE)
    assert bool(predicate["warnedTests"]) is (verdict is Verdict.WITH_WARNINGS)
    assert bool(predicate["failedTests"]) is (verdict in NO)


def test_a_replay_without_a_verdict_is_in_no_list(opened):
    with opened("not reproduced") as what:
        first, second = what.report.judgements
        judged = (msgspec.structs.replace(first, verdict="INCOMPLETE"), second)
        report = msgspec.structs.replace(what.report, judgements=judged)
        predicate = json.loads(statement_of_tests(what._replace(report=report)))[
            "predicate"
        ]
    assert predicate["passedTests"] == predicate["warnedTests"] == []
    assert len(predicate["failedTests"]) == 1


def test_in_totos_own_predicate_has_its_published_fields(opened):
    other_reader("in_toto_attestation")
    from google.protobuf import json_format
    from in_toto_attestation.predicates.test_result.v0 import test_result_pb2

    with opened("not reproduced") as what:
        data = statement_of_tests(what)
    assert parsed(data).predicate_type == (
        "https://in-toto.io/attestation/test-result/v0.1"
    )
    message = test_result_pb2.TestResult()
    # A field that is not published is an error of the parser.
    json_format.ParseDict(json.loads(data)["predicate"], message)
    assert message.result == "FAILED"
    assert message.configuration[0].name == "policy.json"
