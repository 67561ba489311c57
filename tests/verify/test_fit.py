"""Whether a bundle fits where it is to go: every limit can be broken."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from reprobundle.errors import BadCallError
from reprobundle.format.citation import Citation, citation_facts
from reprobundle.format.destinations import DESTINATIONS, Limit
from reprobundle.format.fit_report import FitFinding, Offer
from reprobundle.format.parting import split_bundle
from reprobundle.format.reader import open_bundle
from reprobundle.format.record import FileRead, Remark, WithheldFile
from reprobundle.format.writer import Source, write_bundle
from reprobundle.verify.fit.check import _chosen, check_fit
from reprobundle.verify.fit.measures import _MEASURES, measure
from reprobundle.verify.fit.subject import TEXT_BYTES, Subject
from tests.verify.builder import ENVIRONMENT, Bench, Run

ROOT = Path(__file__).parents[2]


PINNED = FileRead(path="external:1/w", origin="~/w", size_bytes=9, blake3="a" * 64)
PRIVATE = WithheldFile(name="private.csv", size_bytes=9, blake3="a" * 64)


def limit(name, most=None, *, refuses=True):
    return Limit(name, "what is asked", most, refuses, "somewhere", "2026-12-03")


@pytest.fixture
def subject(tmp_path):
    """Give a bundle without runs, of the sources given, as a subject."""
    opened = []

    def make(contents, name="small.rpb.zip"):
        sources = [
            Source(path, "input" if path.startswith("inputs/") else "project", data)
            for path, data in contents.items()
        ]
        write_bundle(tmp_path / name, sources)
        opened.append(open_bundle(tmp_path / name))
        return Subject(opened[-1])

    yield make
    for bundle in opened:
        bundle.close()


def outcome(subject, name, most=None, **asked):
    return measure(subject, limit(name, most, **asked)).outcome


SMALL = {"project/train.py": b"print(1)\n"}


def test_every_limit_of_the_table_has_a_measure():
    asked = {one.id for place in DESTINATIONS.values() for one in place.limits}
    assert asked == set(_MEASURES)


def test_every_figure_of_the_table_has_a_source_and_a_day():
    for place in DESTINATIONS.values():
        for one in place.limits:
            assert len(one.source) > 10
            assert len(one.date) == len("2026-12-03")


def test_the_page_shows_the_table_of_the_code(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
    tool = importlib.import_module("destination_table")
    page = tool.PAGE.read_text(encoding="utf-8")
    assert tool.renewed(page) == page, "run: python tools/destination_table.py"
    assert tool.renewed(page.replace("| 25,000,000 |", "| 26,000,000 |")) == page


def test_a_file_of_one_byte_too_many_is_refused(subject):
    small = subject(SMALL)
    size_bytes = small.bundle.size_bytes
    assert outcome(small, "file-bytes", size_bytes) == "pass"
    assert outcome(small, "file-bytes", size_bytes - 1) == "fail"
    assert outcome(small, "file-bytes-advised", size_bytes - 1, refuses=False) == "warn"


def test_a_name_that_is_no_archive_is_refused(subject):
    assert outcome(subject(SMALL), "file-type") == "pass"
    assert outcome(subject(SMALL, "small.rpb"), "file-type") == "fail"


def test_entries_and_folders_are_counted(subject):
    many = subject({f"inputs/{n}": b"x" for n in range(20)})
    assert outcome(many, "entries-shown", 23) == "pass"
    assert outcome(many, "entries-shown", 22) == "fail"
    assert outcome(many, "folder-entries", 20) == "pass"
    assert outcome(many, "folder-entries", 19) == "fail"


def test_the_largest_document_counts(subject):
    many = subject({f"inputs/{n}": b"x" for n in range(60)})
    checksums = many.bundle.members["B3SUMS"].size_bytes
    assert outcome(many, "document-bytes", checksums) == "pass"
    found = measure(many, limit("document-bytes", checksums - 1))
    assert (found.outcome, found.got[:7]) == ("fail", "B3SUMS:")


def test_the_length_as_text_counts(subject):
    small = subject(SMALL)
    characters = small.characters
    assert outcome(small, "text-characters", characters) == "pass"
    assert outcome(small, "text-characters", characters - 1) == "fail"


def test_a_large_bundle_is_no_text_for_an_issue(subject):
    large = subject({"inputs/x": bytes(range(256)) * (TEXT_BYTES // 256 + 9)})
    large.bundle.size_bytes = TEXT_BYTES + 1
    assert outcome(large, "text-characters", 10**9) == "fail"


def test_pickles_are_told_by_name(subject):
    assert outcome(subject(SMALL), "pickles", refuses=False) == "pass"
    held = subject({"inputs/model.pt": b"x"}, "held.rpb.zip")
    assert outcome(held, "pickles", refuses=False) == "warn"


@pytest.mark.parametrize(
    ("name", "file", "good"),
    [("readme", "ReadMe.md", "not-checked"), ("licence", "COPYING", "pass")],
)
def test_files_that_readers_look_for_stand_at_the_top(subject, name, file, good):
    below = subject({f"project/docs/{file}": b"x"})
    assert outcome(below, name, refuses=False) == "warn"
    there = subject({f"project/{file}": b"x"}, "there.rpb.zip")
    assert outcome(there, name, refuses=False) == good


def test_an_empty_readme_says_nothing(subject):
    empty = subject({"project/README.md": b""})
    assert outcome(empty, "readme", refuses=False) == "warn"


def test_what_was_fetched_is_not_contained(tmp_path):
    remark = Remark(id="network-used", severity="warning", where="", text="it did")
    run = Run(changes={"remarks": (remark,)})
    with open_bundle(Bench(tmp_path, reference=run).pack().path) as bundle:
        found = measure(Subject(bundle), limit("self-contained", refuses=False))
    assert found.outcome == "warn"
    assert "network" in found.got


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"reads": (PINNED,)}, "~/w"),
        ({"withheld": (PRIVATE,)}, "private.csv"),
    ],
)
def test_what_the_bundle_does_not_hold_is_not_contained(changes, name, tmp_path):
    bench = Bench(tmp_path, reference=Run(changes=changes)).pack()
    with open_bundle(bench.path) as bundle:
        found = measure(Subject(bundle), limit("self-contained", refuses=False))
    assert (found.outcome, found.got) == ("warn", f"not in the bundle: {name}")


def test_what_lies_in_the_other_part_is_not_contained(tmp_path):
    first, rest = tmp_path / "1.rpb.zip", tmp_path / "2.rpb.zip"
    with open_bundle(Bench(tmp_path).pack().path) as bundle:
        split_bundle(bundle, ["inputs/data.csv"], first=first, rest=rest)
    with open_bundle(first) as part:
        found = measure(Subject(part), limit("self-contained", refuses=False))
    assert (found.outcome, found.got) == ("warn", "in the other part: inputs/data.csv")


def test_a_stated_licence_counts_and_a_stated_doi_is_still_not_checked(tmp_path):
    stated = citation_facts(
        Citation(doi="10.5281/zenodo.1", licenses=("MIT",)), "stated by a test"
    )
    run = Run(changes={"environment": {**ENVIRONMENT, **stated}})
    bench = Bench(tmp_path, reference=run).pack()
    with open_bundle(bench.path) as bundle:
        licence = measure(Subject(bundle), limit("licence", refuses=False))
        doi = measure(Subject(bundle), limit("doi"))
    assert (licence.outcome, licence.got) == ("pass", "MIT, as its author states")
    assert doi.outcome == "not-checked"
    assert doi.got.startswith("https://doi.org/10.5281/zenodo.1 is stated")


@pytest.mark.parametrize(
    "name", ["self-contained", "tolerance-stated", "environments", "purpose", "doi"]
)
def test_what_cannot_be_known_is_not_checked(subject, name):
    assert outcome(subject(SMALL), name) == "not-checked"


def test_offers_are_taken_largest_first_until_they_are_enough():
    found = [
        Offer(what=f"{size}", saves_bytes=size, option="-x", costs="it")
        for size in (500, 300, 200, 1)
    ]
    over = measure_of(1700, most=1000)
    chosen, enough = _chosen(found, over)
    assert [one.what for one in chosen if one.chosen] == ["500", "300"]
    assert [one.what for one in chosen] == ["500", "300", "200"]
    assert enough
    _, enough = _chosen(found, measure_of(2002, most=1000))
    assert not enough
    # How much too large it is, nobody knows: nothing is known to be enough.
    assert _chosen(found, measure_of(None, most=1000)) == (tuple(found), False)


def measure_of(measured, most):
    return FitFinding(
        id="file-bytes",
        outcome="fail",
        text="",
        got="",
        measured=measured,
        most=most,
        source="",
        date="",
    )


def test_a_destination_that_is_not_there_is_a_bad_call(tmp_path):
    with pytest.raises(BadCallError, match="no destination is called 'moon'"):
        check_fit(tmp_path / "x.rpb.zip", ["moon"])
