"""The bag as bagit validates it."""

from __future__ import annotations

import zipfile

import pytest

from reprobundle.errors import BadCallError
from reprobundle.export.bag import write_bag
from reprobundle.export.verified import verified
from reprobundle.format.citation import Author, Citation
from reprobundle.format.writer import Source
from tests.export.conftest import KINDS, other_reader
from tests.verify.builder import Bench

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")


@pytest.fixture
def bag(opened, tmp_path):
    with opened("reproduced") as what:
        write_bag(what, tmp_path / "bag")
    return tmp_path / "bag"


def info(folder):
    return other_reader("bagit").Bag(str(folder)).info


@pytest.mark.parametrize("kind", KINDS)
def test_bagit_finds_it_valid(kind, opened, tmp_path):
    bagit = other_reader("bagit")
    with opened(kind) as what:
        write_bag(what, tmp_path / "bag", with_bundle=True)
    bag = bagit.Bag(str(tmp_path / "bag"))
    bag.validate()
    assert (tmp_path / "bag/data/project/train.py").is_file()
    assert "data/bundle.rpb.zip" in bag.payload_entries()


def test_bagit_finds_an_altered_file(bag):
    bagit = other_reader("bagit")
    (bag / "data/project/train.py").write_text("import torch\n#\n")
    with pytest.raises(bagit.BagValidationError):
        bagit.Bag(str(bag)).validate()


def test_bagit_finds_an_altered_tag(bag):
    bagit = other_reader("bagit")
    text = (bag / "bag-info.txt").read_text()
    (bag / "bag-info.txt").write_text(text.replace("REPRODUCED", "PERFECT"))
    with pytest.raises(bagit.BagValidationError, match="bag-info"):
        bagit.Bag(str(bag)).validate()


def test_nothing_has_to_be_fetched(bag):
    assert not (bag / "fetch.txt").exists()
    assert {path.name for path in bag.iterdir()} == {
        "bagit.txt",
        "bag-info.txt",
        "manifest-sha256.txt",
        "tagmanifest-sha256.txt",
        "reprobundle-report.json",
        "data",
    }


def test_the_tags_tell_the_bundle_and_the_verdict(bag, benches):
    told = info(bag)
    bundle = benches["reproduced"].id
    assert told["Reprobundle-Id"] == bundle
    assert told["External-Identifier"] == f"urn:blake3:{bundle}"
    assert told["Reprobundle-Verdict"] == "REPRODUCED, bit-identical (exit 0)"
    assert "lists-second-person" in told["Reprobundle-Not-Checked"]


def test_a_verdict_that_was_not_made_is_told_as_it_is(opened, tmp_path):
    with opened("incomplete") as what:
        write_bag(what, tmp_path / "bag")
    told = info(tmp_path / "bag")
    assert told["Reprobundle-Verdict"] == "INCOMPLETE (exit 11)"
    assert "nothing-entered" in str(told["Reprobundle-Reason"])


def test_two_bags_of_one_bundle_are_equal(opened, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        with opened("not reproduced") as what:
            write_bag(what, tmp_path / name / "bag.zip")
    first, second = (tmp_path / name / "bag.zip" for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    names = zipfile.ZipFile(first).namelist()
    assert all(name.startswith("bag/") for name in names)


def test_a_zipped_bag_is_valid_once_unpacked(opened, tmp_path):
    bagit = other_reader("bagit")
    with opened("reproduced") as what:
        write_bag(what, tmp_path / "points.zip")
    zipfile.ZipFile(tmp_path / "points.zip").extractall(tmp_path)
    bagit.Bag(str(tmp_path / "points")).validate()


def test_foreign_words_stay_in_their_line(opened, tmp_path):
    title = "a\r\nReprobundle-Verdict: REPRODUCED, bit-identical (exit 0)\x1b[2J"
    with opened("not reproduced", citation=Citation(title=title)) as what:
        write_bag(what, tmp_path / "bag")
    told = info(tmp_path / "bag")
    assert told["Reprobundle-Verdict"] == "NOT REPRODUCED (exit 10)"
    assert "\x1b" not in told["External-Description"]


def test_a_citation_is_told(opened, tmp_path):
    citation = Citation(
        title="Digits", authors=(Author("Ada"),), doi="10.5281/zenodo.1"
    )
    with opened("reproduced", citation=citation) as what:
        write_bag(what, tmp_path / "bag")
    told = info(tmp_path / "bag")
    assert told["External-Identifier"][1] == "https://doi.org/10.5281/zenodo.1"
    assert told["External-Description"] == "Digits"
    assert told["Contact-Name"] == "Ada"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("project/a%0Ab", "reads as a line break"),
        ("project/a%0db", "reads as a line break"),
        ("project/a\u00a0", "ends in white space"),
    ],
)
def test_a_name_that_no_manifest_holds_is_refused(name, why, tmp_path):
    bench = Bench(tmp_path, extra=(Source(name, "project", b"x"),)).pack()
    with verified(bench.path) as what, pytest.raises(BadCallError, match=why):
        write_bag(what, tmp_path / "bag")
    assert not (tmp_path / "bag").exists()


@pytest.mark.parametrize("name", ["project/100%25 a", "project/*a", "project/ü 1"])
def test_odd_names_are_valid(name, tmp_path):
    bagit = other_reader("bagit")
    bench = Bench(tmp_path, extra=(Source(name, "project", b"x"),)).pack()
    with verified(bench.path) as what:
        write_bag(what, tmp_path / "bag")
    bagit.Bag(str(tmp_path / "bag")).validate()
