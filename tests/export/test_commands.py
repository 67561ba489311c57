"""The four forms on the command line: what they print, write and end with."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from reprobundle.cli.group import run
from tests.export.conftest import other_reader

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")


def call(capfd, *arguments):
    status = run([str(one) for one in arguments])
    said = capfd.readouterr()
    return status, said.out, said.err


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("reproduced", 0),
        ("not reproduced", 10),
        ("not replayed", 11),
        ("incomplete", 11),
    ],
)
def test_badge_and_statement_end_as_verify_does(kind, status, benches, capfd):
    path = benches[kind].path
    ended, out, _ = call(capfd, "export", "badge", path)
    assert ended == status
    assert out.startswith("<svg ")
    ended, out, _ = call(capfd, "export", "in-toto", path)
    assert ended == status
    assert json.loads(out)["predicate"]["exitStatus"] == status


def test_a_tree_is_written_whatever_the_verdict(benches, tmp_path, capfd):
    other_reader("rocrate")
    path = benches["not replayed"].path
    for form in ("ro-crate", "bagit"):
        ended, out, _ = call(capfd, "export", form, path, "-o", tmp_path / form)
        assert ended == 0
        assert out.endswith("verdict INTACT, NOT YET REPLAYED (exit 11)\n")
        assert (tmp_path / form).is_dir()


def test_no_test_result_is_written_without_an_answer(benches, tmp_path, capfd):
    path, target = benches["incomplete"].path, tmp_path / "statement.json"
    ended, out, err = call(
        capfd, "export", "in-toto", "--predicate", "test-result", path, "-o", target
    )
    assert ended == 20
    assert not out
    assert "the verdict is INCOMPLETE" in err
    assert err.count("\n") == 1
    assert not target.exists()


def test_a_badge_goes_to_a_file(benches, tmp_path, capfd):
    target = tmp_path / "badge.svg"
    ended, out, err = call(
        capfd, "export", "badge", benches["reproduced"].path, "-o", target
    )
    assert (ended, out) == (0, "")
    assert err == f"REPRODUCED, bit-identical (exit 0); wrote {target}\n"
    assert "REPRODUCED, bit-identical" in target.read_text()


def test_a_badge_of_another_bundle_than_expected_is_red(benches, capfd):
    path = benches["reproduced"].path
    ended, out, _ = call(capfd, "export", "badge", path, "--expect-id", "0" * 64)
    assert ended == 21
    assert "TAMPERED" in out
    assert "#1a6b33" not in out


@pytest.mark.parametrize("form", ["ro-crate", "bagit", "in-toto", "badge"])
def test_what_is_no_bundle_is_told_in_one_line(form, tmp_path, capfd):
    path = tmp_path / "a.rpb.zip"
    path.write_bytes(b"no zip")
    output = ["-o", tmp_path / "out"] if form in ("ro-crate", "bagit") else []
    ended, out, err = call(capfd, "export", form, path, *output)
    assert ended == 21
    assert "Traceback" not in err
    if form == "badge":
        assert "UNREADABLE" in out
    else:
        assert not out
        assert "is UNREADABLE: " in err
        assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--doi", "zenodo"], "'zenodo' is no DOI"),
        (["--citation", "nothing.cff"], "cannot read 'nothing.cff'"),
        (["--revoked", "x"], "need --signers"),
    ],
)
def test_a_bad_call_is_told_in_one_line(options, message, benches, tmp_path, capfd):
    path = benches["reproduced"].path
    ended, _, err = call(
        capfd, "export", "ro-crate", path, "-o", tmp_path / "crate", *options
    )
    assert ended == 20
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "crate").exists()


def test_a_doi_that_came_later_is_told_and_changes_nothing(benches, tmp_path, capfd):
    other_reader("rocrate")
    path = benches["reproduced"].path
    before = path.read_bytes()
    ended, _, _ = call(
        capfd,
        "export",
        "ro-crate",
        path,
        "-o",
        tmp_path / "crate",
        "--doi",
        "10.5281/zenodo.9",
    )
    assert ended == 0
    assert path.read_bytes() == before
    told = (tmp_path / "crate/ro-crate-metadata.json").read_text()
    assert '"cite-as": "https://doi.org/10.5281/zenodo.9"' in told


def test_only_the_form_that_needs_them_imports_the_extra_packages():
    code = (
        "import sys; from reprobundle.cli.group import run; run(['export', '--help']); "
        "import reprobundle.cli.export_papers; "
        "print(sorted({'rocrate', 'yaml', 'jsonschema'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("[]\n")
    assert "ro-crate" in done.stdout
