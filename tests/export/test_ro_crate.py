"""The crate as rocrate, runcrate and the two specifications see it."""

from __future__ import annotations

import datetime
import hashlib
import json
import shutil
import subprocess
import sys

import pytest

from reprobundle.errors import BadCallError, EnvironmentUnusableError, NotExportedError
from reprobundle.export import ro_crate
from reprobundle.export.ro_crate import write_ro_crate
from reprobundle.export.verified import verified
from reprobundle.format.citation import Author, Citation
from reprobundle.format.record import FileRead
from reprobundle.format.writer import Source
from reprobundle.sign.sign import sign
from reprobundle.sign.signers import stated_signers
from tests.export.conftest import KINDS, other_reader
from tests.verify.builder import Bench, Run

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")
COMPLETED = "http://schema.org/CompletedActionStatus"
_RUNCRATE = "from runcrate.cli import cli; cli()"
AT = datetime.datetime(2026, 2, 3, 4, 5, 6, tzinfo=datetime.timezone.utc)


@pytest.fixture(scope="module")
def crates(opened, tmp_path_factory):
    """Return the folder of a crate of each kind of verdict."""
    other_reader("rocrate")
    folder = tmp_path_factory.mktemp("crates")
    for kind in KINDS:
        with opened(kind) as what:
            write_ro_crate(what, folder / kind)
    return folder


def graph(folder):
    document = json.loads((folder / "ro-crate-metadata.json").read_text())
    return {one["@id"]: one for one in document["@graph"]}


def actions(folder):
    return {
        name: one
        for name, one in graph(folder).items()
        if one["@type"] == "CreateAction"
    }


def refs(*values):
    """Return the identifiers that properties refer to, one or a list of them."""
    lists = [one if isinstance(one, list) else [one] for one in values]
    return [ref["@id"] for one in lists for ref in one]


def statuses(folder):
    return {
        name: one["actionStatus"]["@id"] == COMPLETED
        for name, one in actions(folder).items()
    }


def only_replay(folder):
    (found,) = (name for name in actions(folder) if name.startswith("#replay-"))
    return actions(folder)[found]


def test_rocrate_opens_it_and_finds_every_file(crates):
    from rocrate.rocrate import ROCrate

    folder = crates / "reproduced"
    crate = ROCrate(folder)
    files = {one.id for one in crate.data_entities}
    there = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert files == there - {"ro-crate-metadata.json"}
    assert crate.version == "1.3"
    profile = crate.root_dataset["conformsTo"]
    assert profile.id == "https://w3id.org/ro/wfrun/process/0.6"
    # RO-Crate 1.2 and later: what conformsTo names has to be a Profile.
    assert "Profile" in profile.type
    assert {one.id for one in crate.root_dataset["mentions"]} == set(actions(folder))


def test_runcrate_reports_every_action(crates):
    other_reader("runcrate")
    done = subprocess.run(
        [sys.executable, "-c", _RUNCRATE, "report", str(crates / "reproduced")],
        capture_output=True,
        text=True,
        check=True,
    )
    told = done.stdout
    assert told.count("action: ") == len(actions(crates / "reproduced")) == 4
    assert "runs/1/outputs/out/logits.npy" in told
    assert "inputs/data.csv" in told
    assert "REPRODUCED, bit-identical" in told


def test_every_file_has_its_size_and_both_digests(crates, benches):
    folder = crates / "reproduced"
    files = [one for one in graph(folder).values() if one["@type"] == "File"]
    for one in files:
        data = (folder / one["@id"]).read_bytes()
        assert one["contentSize"] == str(len(data))
        assert one["sha256"] == hashlib.sha256(data).hexdigest()
    sums = (folder / "B3SUMS").read_text().splitlines()
    told = {one["name"]: one["blake3"] for one in files}
    assert all(told[line[66:]] == line[:64] for line in sums)
    assert (folder / "project/train.py").stat().st_mode & 0o777 == 0o644
    assert told["manifest.json"] == benches["reproduced"].id


def test_an_action_has_what_the_profile_asks_for(crates):
    folder = crates / "reproduced"
    everything = graph(folder)
    for one in actions(folder).values():
        assert everything[one["instrument"]["@id"]]["@type"] == "SoftwareApplication"
        assert everything[one["agent"]["@id"]]["@type"] == "Person"
        assert everything[one["instrument"]["@id"]]["version"]
        assert everything[one["instrument"]["@id"]]["url"]
        assert all(ref in everything for ref in refs(one["object"], one["result"]))
        assert {"name", "description", "endTime", "actionStatus"} <= set(one)
    replay = only_replay(folder)
    assert replay["startTime"] == "2025-01-01T00:00:00+00:00"
    assert replay["exitStatus"] == 0
    assert replay["name"].endswith("on cpu: REPRODUCED, bit-identical")
    program = everything[replay["instrument"]["@id"]]
    versions = {everything[it["@id"]]["name"] for it in program["softwareRequirements"]}
    assert versions == {"python", "torch"}
    assert program["hasPart"] == {"@id": "project/train.py"}


def test_what_was_verified_is_complete_only_with_an_answer(crates):
    told = {kind: statuses(crates / kind)["#verification"] for kind in KINDS}
    assert told == {
        "reproduced": True,
        "not reproduced": True,
        "failing": True,
        "not replayed": False,
        "incomplete": False,
    }
    error = actions(crates / "not replayed")["#verification"]["error"]
    assert error.startswith("no answer: INTACT, NOT YET REPLAYED")


def test_a_replay_without_a_verdict_is_never_complete(crates):
    replay = only_replay(crates / "incomplete")
    assert replay["exitStatus"] == 0
    assert replay["actionStatus"]["@id"].endswith("FailedActionStatus")
    assert replay["error"].startswith("no verdict was made: INCOMPLETE")
    assert replay["name"].endswith(": INCOMPLETE")


def test_an_experiment_is_never_complete(tmp_path):
    other_reader("rocrate")
    from reprobundle.format.record import Experiment

    bench = Bench(tmp_path).pack()
    bench.replay(experiment=Experiment(id="a" * 16))
    with verified(bench.path) as what:
        write_ro_crate(what, tmp_path / "crate")
    replay = only_replay(tmp_path / "crate")
    assert replay["actionStatus"]["@id"] != COMPLETED
    assert "an experiment decides nothing" in replay["error"]


def test_a_process_that_failed_says_why(crates):
    replay = only_replay(crates / "failing")
    assert replay["actionStatus"]["@id"] != COMPLETED
    assert replay["error"] == "expected RuntimeError: out of memory: 12 MB"
    assert replay["name"].endswith("REPRODUCED, bit-identical")


def test_the_verdict_stands_in_the_crate_in_its_own_words(crates):
    for kind, verdict in (
        ("reproduced", "REPRODUCED, bit-identical"),
        ("not reproduced", "NOT REPRODUCED"),
        ("not replayed", "INTACT, NOT YET REPLAYED"),
        ("incomplete", "INCOMPLETE"),
    ):
        everything = graph(crates / kind)
        assert everything["#verdict"]["value"] == verdict
        assert everything["./"]["description"].endswith(f": {verdict}.")
        report = json.loads((crates / kind / "reprobundle-report.json").read_text())
        assert report["verdict"] == verdict


def test_what_the_bundle_does_not_hold_is_told_with_its_digest(tmp_path):
    other_reader("rocrate")
    gone = FileRead(
        path="external:1/big.bin", origin="~/big.bin", size_bytes=9, blake3="8" * 64
    )
    missing = FileRead(path="missing:gone.csv", size_bytes=0, blake3="")
    run = Run(stored="none", changes={"reads": (gone, missing)})
    bench = Bench(tmp_path, reference=run).pack()
    with verified(bench.path) as what:
        write_ro_crate(what, tmp_path / "crate")
    everything = graph(tmp_path / "crate")
    action = everything["#run-1"]
    (read,) = (everything[one] for one in refs(action["object"]))
    made = [everything[one] for one in refs(action["result"])]
    assert (read["name"], read["blake3"]) == ("~/big.bin", "8" * 64)
    assert read["description"].startswith("not in the crate")
    assert [one["name"] for one in made] == ["out/logits.npy", "out/metrics.json"]
    assert all(one["@type"] == "CreativeWork" for one in [read, *made])


def test_odd_names_are_found_by_rocrate(tmp_path):
    other_reader("rocrate")
    from rocrate.rocrate import ROCrate

    name = "project/100%25 a#b ü?.txt"
    bench = Bench(tmp_path, extra=(Source(name, "project", b"x"),)).pack()
    for target in ("crate", "crate.zip"):
        with verified(bench.path) as what:
            write_ro_crate(what, tmp_path / target)
        crate = ROCrate(tmp_path / target)
        (found,) = (one for one in crate.data_entities if one["name"] == name)
        assert found.source.read_bytes() == b"x"


def test_a_citation_is_told(opened, tmp_path):
    other_reader("rocrate")
    citation = Citation(
        title="Digits",
        authors=(Author("Ada", "https://orcid.org/0000-0001-2345-6789"), Author("B")),
        doi="10.5281/zenodo.1",
        version="2",
        released="2026-01-02",
        licenses=("MIT",),
    )
    with opened("reproduced", citation=citation) as what:
        write_ro_crate(what, tmp_path / "crate")
    everything = graph(tmp_path / "crate")
    root = everything["./"]
    assert root["name"] == "Digits"
    assert root["datePublished"] == "2026-01-02"
    assert root["cite-as"] == "https://doi.org/10.5281/zenodo.1"
    assert "https://doi.org/10.5281/zenodo.1" in refs(root["identifier"])
    assert [everything[one["@id"]]["name"] for one in root["author"]] == ["Ada", "B"]
    assert root["license"] == {"@id": "https://spdx.org/licenses/MIT"}


def test_a_signed_replay_names_its_signer(tmp_path, keys, listed):
    other_reader("rocrate")
    bench = Bench(tmp_path).pack()
    replay = bench.replay()
    sign(bench.path, keys["alice"])
    sign(bench.path, keys["bob"], replays=(replay,))
    signers = stated_signers((listed(alice="", bob=""),), revoked=None, at="")
    with verified(bench.path, signers=signers) as what:
        write_ro_crate(what, tmp_path / "crate")
    everything = graph(tmp_path / "crate")
    agent = everything[only_replay(tmp_path / "crate")["agent"]["@id"]]
    assert agent["name"] == "bob@lab"
    reference = everything[everything["#run-1"]["agent"]["@id"]]
    assert reference["name"] == "alice@lab"


def test_two_zip_files_of_one_moment_are_equal(opened, tmp_path):
    other_reader("rocrate")
    for name in ("a.zip", "b.zip"):
        with opened("not reproduced", at=AT) as what:
            write_ro_crate(what, tmp_path / name, with_bundle=True)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    from rocrate.rocrate import ROCrate

    names = {one.id for one in ROCrate(tmp_path / "a.zip").data_entities}
    assert "bundle.rpb.zip" in names


def test_the_bundle_inside_verifies(opened, benches, tmp_path):
    other_reader("rocrate")
    with opened("reproduced") as what:
        write_ro_crate(what, tmp_path / "crate", with_bundle=True)
    copy = tmp_path / "crate/bundle.rpb.zip"
    assert copy.read_bytes() == benches["reproduced"].path.read_bytes()
    verification = actions(tmp_path / "crate")["#verification"]
    assert verification["object"] == {"@id": "bundle.rpb.zip"}


def test_an_altered_bundle_is_not_exported(benches, tmp_path):
    path = tmp_path / "digits.rpb.zip"
    data = bytearray(benches["reproduced"].path.read_bytes())
    at = data.index(b"import torch")
    data[at] ^= 1
    path.write_bytes(data)
    message = r"is TAMPERED: .*nothing was exported"
    with pytest.raises(NotExportedError, match=message), verified(path):
        pytest.fail("it was given open")


def test_nothing_is_overwritten_and_nothing_left_half(opened, tmp_path, monkeypatch):
    other_reader("rocrate")
    (tmp_path / "there").mkdir()
    with opened("reproduced") as what:
        with pytest.raises(BadCallError, match="exists already"):
            write_ro_crate(what, tmp_path / "there")
        monkeypatch.setattr(ro_crate, "describe", _breaks)
        for name in ("crate", "crate.zip"):
            with pytest.raises(
                EnvironmentUnusableError, match="no space left on device"
            ):
                write_ro_crate(what, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def _breaks(*_):
    raise OSError(28, "No space left on device")


def test_without_rocrate_one_line_says_what_to_install(opened, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rocrate.rocrate", None)
    with (
        opened("reproduced") as what,
        pytest.raises(EnvironmentUnusableError) as caught,
    ):
        write_ro_crate(what, tmp_path / "crate")
    assert str(caught.value) == (
        "the Python package rocrate is not installed; pip install 'reprobundle[export]'"
    )
    assert not (tmp_path / "crate").exists()


def test_a_full_disk_is_told_before_anything_is_written(opened, tmp_path, monkeypatch):
    other_reader("rocrate")
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10))
    too_full = pytest.raises(EnvironmentUnusableError, match="do not fit on the disk")
    with opened("reproduced") as what, too_full:
        write_ro_crate(what, tmp_path / "crate")
