"""The product gives every vector the answer that spec.md demands."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

from reprobundle.cli import run
from reprobundle.format.findings import Verdict
from reprobundle.format.rules import DOCUMENT_RULES, RULES
from reprobundle.verify.checks import CHECKS
from tests.conformance import runner
from tests.conformance.case import EXIT_STATUS
from tests.conformance.runner import Answer

SUITE = runner.read_suite()
MOST_BYTES = 1_200_000


@pytest.fixture(autouse=True)
def decoder(request):
    """Skip vectors of images where they cannot be decoded; CI installs a decoder."""
    if "image_" in request.node.name:
        pytest.importorskip("PIL")


@pytest.mark.parametrize("vector", SUITE.vectors, ids=lambda vector: vector.id)
def test_the_product_agrees(vector, capsysbinary):
    status = run(runner.call(vector, SUITE.folder))
    verdict = runner.verdict_of(capsysbinary.readouterr().out)
    assert Answer(status, verdict) == runner.expected(vector), vector.comment


# Where a file that breaks one rule cannot but break another one too, or where the
# product names the check that failed and not the rule behind it.
OTHER_WORDS = {
    "container/content_altered_fail": "member-digest",
    "container/member_checksum_fail": "crc32",
    "container/replay_file_with_more_fail": "[R-4.26]",
    "container/replay_renamed_fail": "replay-name",
    "container/two_frames_for_one_chunk_fail": "[R-4.20]",
    "documents/no_policy_fail": "policy.json",
    "documents/no_reference_fail": "runs/1/record.json",
    "documents/record_names_missing_member_fail": "run-members",
}
BROKEN = [vector for vector in SUITE.vectors if vector.result != "valid"]


@pytest.mark.parametrize("vector", BROKEN, ids=lambda vector: vector.id)
def test_the_product_objects_for_the_right_reason(vector, capsysbinary):
    run(runner.call(vector, SUITE.folder))
    report = json.loads(capsysbinary.readouterr().out)
    findings = [
        *report["findings"],
        *(found for one in report["judgements"] for found in one["findings"]),
    ]
    quiet = ("pass", "not-applicable")
    objections = [one for one in findings if one["outcome"] not in quiet]
    if vector.requirement.startswith("V"):
        assert vector.requirement in {one["check"] for one in objections}
    else:
        words = OTHER_WORDS.get(vector.id, f"[{vector.requirement}]")
        causes = [one for one in objections if one["where"] or one["outcome"] == "fail"]
        assert words in json.dumps(causes)


def test_the_set_is_whole():
    assert list(runner.problems(SUITE, runner.requirements())) == []


def test_the_requirements_of_the_text_are_those_of_the_code():
    numbers = [check.number for check in CHECKS]
    assert runner.requirements() == [*RULES, *DOCUMENT_RULES, *numbers]


def test_every_verdict_is_demanded_by_a_vector():
    assert {vector.verdict for vector in SUITE.vectors} == {v.value for v in Verdict}


def test_the_exit_statuses_are_those_of_the_specification():
    spec = runner.SPEC.read_text(encoding="utf-8")
    rows = dict(
        re.findall(r"^\| ([A-Z][^|]*[a-zA-Z]) \| (\d+) \| ", spec, re.MULTILINE)
    )
    assert {word: int(status) for word, status in rows.items()} == EXIT_STATUS


@pytest.mark.parametrize("vector", SUITE.vectors, ids=lambda vector: vector.id)
def test_the_result_fits_the_status_and_the_name(vector):
    allowed = {"valid": {0, 11}, "warning": {12}, "invalid": {10, 11, 21}}
    assert vector.exit_status in allowed[vector.result]
    assert vector.id.endswith("_fail") == (vector.result == "invalid")


def test_every_area_has_vectors_of_both_kinds_or_only_bad_ones():
    success = {vector.area for vector in SUITE.vectors if vector.exit_status == 0}
    refused = {vector.area for vector in SUITE.vectors if vector.exit_status >= 10}
    assert refused == set(runner.AREAS)
    assert {"container", "names", "integrity", "verdict"} <= success


@pytest.mark.parametrize("vector", SUITE.vectors, ids=lambda vector: vector.id)
def test_a_readme_cites_the_requirement(vector):
    text = (SUITE.folder / vector.id / "README.md").read_text(encoding="utf-8")
    assert text.startswith(vector.comment)
    assert f"{vector.requirement}: {vector.verdict}" in text


def test_the_set_is_small():
    files = [path for path in SUITE.folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES


def schema(name):
    return json.loads((runner.ROOT / "schema" / f"{name}.schema.json").read_text())


DOCUMENTS = {
    "manifest.json": "manifest",
    "policy.json": "policy",
    "lock/environment.json": "lock",
    "record.json": "record",
    "memory.json": "memory",
}


@pytest.mark.parametrize(
    "name", ["container/complete", "container/normal", "verdict/not_yet_replayed_fail"]
)
def test_the_documents_of_a_valid_vector_conform_to_the_schemas(name):
    import zipfile

    seen = set()
    with zipfile.ZipFile(SUITE.folder / name / "bundle.rpb.zip") as archive:
        for path in archive.namelist():
            ending = next((end for end in DOCUMENTS if path.endswith(end)), "")
            if ending:
                document = json.loads(archive.read(path))
                jsonschema.validate(document, schema(DOCUMENTS[ending]))
                seen.add(ending)
    assert seen == DOCUMENTS.keys()
