"""The verbs at an address: what they read, what they say they did not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import import_module

import msgspec
import pytest

from reprobundle.cli import run
from reprobundle.format.policy import DataRules
from reprobundle.format.writer import Source
from tests.remote.conftest import TAIL_BYTES
from tests.remote.server import serving
from tests.verify.builder import Bench


def test_inspect_reads_a_few_hundred_kilobytes_of_20_gib(huge, call):
    with serving(huge) as served:
        status, out, err = call("inspect", served.url)
    assert status == 0
    assert len(served.asked) == 2
    assert served.sent_bytes < 1 << 20
    sent = served.sent_bytes // 1024
    told = re.search(r": 2 requests, (\d+) KiB of 20\.0 GiB\n", err)
    assert told is not None
    assert int(told[1]) == sent
    assert "20.0 GiB" in out


def test_inspect_says_what_it_did_not_check(served, call):
    _, out, _ = call("inspect", served.url)
    words = " ".join(out.split())
    assert "NOT CHECKED, because it was not read: the content of 13 of 19 mem" in words
    assert "the ZIP headers before what was not read" in words
    assert "reprobundle verify reads all of it" in words


def test_inspect_says_so_also_where_all_bytes_came_along(bundle, call):
    with serving(bundle) as served:
        _, out, err = call("inspect", served.url)
        assert served.asked == ["bytes=-524288"]
    assert "NOT CHECKED, because it was not read" in " ".join(out.split())
    # Nobody who reads both lines is to take what came along for what was looked at.
    assert err.startswith(f"fetched from {served.url}: 1 request, ")


def test_inspect_as_json_has_what_was_not_checked(served, bundle, call):
    _, out, _ = call("inspect", "--json", served.url)
    _, here, _ = call("inspect", "--json", str(bundle))
    there, local = json.loads(out), json.loads(here)
    header = "the ZIP headers before what was not read"
    assert header in there.pop("not_checked")
    assert header not in local["not_checked"]
    assert local.pop("not_checked")[0].startswith("the content of 13 of 19 members")
    assert there == local


def test_verify_there_is_verify_here(served, bundle, call):
    status, out, err = call("verify", "--deep", "--json", served.url)
    assert (status, out) == call("verify", "--deep", "--json", str(bundle))[:2]
    assert json.loads(out)["exit_status"] == 0
    # The end, the policy, what lies before it, and what lies between.
    assert served.asked[0] == f"bytes=-{TAIL_BYTES}"
    assert len(served.asked) <= 4
    assert served.sent_bytes == bundle.stat().st_size
    assert f"{len(served.asked)} requests" in err


def test_verify_finds_one_altered_byte_there(served, bundle, tmp_path, call):
    data = bytearray(bundle.read_bytes())
    data[100_000] ^= 1
    served.path = tmp_path / "altered.rpb.zip"
    served.path.write_bytes(data)
    status, out, _ = call("verify", served.url)
    assert status == 21
    assert "TAMPERED" in out


def test_verify_does_not_fetch_what_is_no_bundle(served, tmp_path, call):
    served.path = tmp_path / "other.zip"
    served.path.write_bytes(b"x" * (1 << 20))
    status, out, _ = call("verify", served.url)
    assert status == 21
    assert "UNREADABLE" in out
    # Its end, the stretch in which a comment could lie, and its beginning.
    assert served.sent_bytes < 200_000


def test_report_is_made_from_one_reading(served, bundle, tmp_path, call):
    page = tmp_path / "page.md"
    arguments = ("--format", "markdown", "-o", str(page))
    status, _, err = call("report", served.url, *arguments)
    there = page.read_text()
    assert (status, f"{len(served.asked)} requests" in err) == (0, True)
    assert served.sent_bytes == bundle.stat().st_size
    call("report", str(bundle), *arguments)
    assert there == page.read_text()


def test_extract_reads_the_wanted_members_only(served, bundle, tmp_path, call):
    status, *_ = call(
        "extract", served.url, "project/train.py", "--into", str(tmp_path / "x")
    )
    assert status == 0
    assert (tmp_path / "x/project/train.py").read_bytes().startswith(b"import torch")
    assert served.sent_bytes < TAIL_BYTES + 20_000
    status, *_ = call("extract", served.url, "--into", str(tmp_path / "all"))
    assert status == 0
    run(["extract", str(bundle), "--into", str(tmp_path / "here")])
    there = {it.name: it.read_bytes() for it in (tmp_path / "all/project").iterdir()}
    assert there == {
        it.name: it.read_bytes() for it in (tmp_path / "here/project").iterdir()
    }


def test_a_header_that_hides_something_is_found_when_its_member_is_read(
    served, bundle, tmp_path, call
):
    data = bytearray(bundle.read_bytes())
    assert data[:4] == b"PK\3\4"
    data[10] ^= 1  # the time in the local header of the first entry, README.txt
    served.path = tmp_path / "altered.rpb.zip"
    served.path.write_bytes(data)
    status, _, err = call("cat", served.url, "README.txt")
    assert (status, "[R-4.8]" in err) == (21, True)
    status, out, _ = call("inspect", served.url)
    assert (status, "ZIP headers" in out) == (0, True)
    status, out, _ = call("verify", served.url)
    assert (status, "container" in out) == (21, True)


def test_a_directory_that_leaves_room_is_refused_by_its_own_words(bundle, served, call):
    data = bundle.read_bytes()
    served.path = bundle.with_name("gap.rpb.zip")
    start = data.rindex(b"PK\1\2")
    directory = data.index(b"PK\1\2", data.index(b'"members"'))
    assert directory < start
    # The offset in the record of the last entry: eight bytes further than it lies.
    place = start + 42
    offset = int.from_bytes(data[place : place + 4], "little") + 8
    changed = data[:place] + offset.to_bytes(4, "little") + data[place + 4 :]
    served.path.write_bytes(changed)
    status, _, err = call("inspect", served.url)
    assert (status, "[R-4.11]" in err) == (21, True)


def test_a_directory_that_hides_something_is_found_at_once(bundle, served, call):
    data = bytearray(bundle.read_bytes())
    data[data.rindex(b"PK\1\2") + 12] ^= 1  # the time in the record of the last entry
    served.path = bundle.with_name("altered.rpb.zip")
    served.path.write_bytes(data)
    status, _, err = call("inspect", served.url)
    assert (status, "[R-4.8]" in err) == (21, True)


@pytest.mark.parametrize(
    "verb", ["replay", "accept", "selftest", "scan", "doctor", "diff"]
)
def test_other_verbs_say_that_they_read_files_only(verb, served, call):
    more = ("--by", "A", "--where", "B") if verb == "accept" else ()
    status, _, err = call(verb, served.url, *more)
    assert status == 20
    assert "only inspect, verify, report, cat and extract read a bundle at an" in err
    assert not served.asked


@pytest.mark.parametrize("verb", ["inspect", "replay"])
def test_an_address_of_another_kind_is_refused(verb, call):
    status, _, err = call(verb, "ftp://example.org/x.rpb.zip")
    assert status == 20
    assert "ftp:// is not read, only https://, http://, s3://, gs://" in err


def test_nothing_of_it_is_imported_for_a_file_that_is_here(bundle):
    code = (
        "import sys; from reprobundle.cli import run; status = run(['inspect', "
        f"{str(bundle)!r}, '--json']); "
        "print([m for m in sys.modules if m.split('.')[0] in ('fsspec', 'aiohttp', "
        "'asyncio') or m.startswith('reprobundle.remote')], file=sys.stderr); "
        "sys.exit(status)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "[]\n")


@pytest.mark.parametrize(
    ("url", "package"),
    [
        ("https://example.org/x.rpb.zip", "aiohttp"),
        ("s3://bucket/x.rpb.zip", "s3fs"),
        ("gs://bucket/x.rpb.zip", "gcsfs"),
    ],
)
def test_a_missing_package_is_named_with_its_remedy(url, package, call, monkeypatch):
    registry = import_module("fsspec.registry")
    # One dictionary under both names, as there: `registry` is a view of the other.
    known: dict[str, type] = {}
    monkeypatch.setattr(registry, "_registry", known)
    monkeypatch.setattr(registry, "registry", known)
    # Else a file system that another test made is handed out again.
    import_module("fsspec.implementations.http").HTTPFileSystem.clear_instance_cache()
    monkeypatch.delitem(sys.modules, "fsspec.implementations.http", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    status, _, err = call("inspect", url)
    assert status == 20
    scheme = url.partition(":")[0]
    assert f"reading {scheme}:// needs the package {package}; pip install" in err


def test_nothing_is_left_in_the_folder_for_temporary_files(
    served, call, tmp_path, monkeypatch
):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert call("verify", served.url)[0] == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["verify", "report", "extract"])
def test_rules_about_data_are_asked_before_all_of_it_is_fetched(
    verb, tmp_path, short_tail, call, monkeypatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Bench(tmp_path)
    made.extra = (Source("project/noise.bin", "project", os.urandom(250_000)),)
    rules = DataRules(data_class="clinical", processors=("nobody@nowhere",))
    made.policy = msgspec.structs.replace(made.policy, data=rules)
    target = str(tmp_path / "x")
    more = {"extract": ["--into", target], "report": ["-o", target]}.get(verb, [])
    with serving(made.pack().path) as served:
        status, _, err = call(verb, served.url, *more)
        assert (status, "is against fetching it here" in err) == (20, True)
        assert served.sent_bytes < 100_000
        status, *_ = call(verb, served.url, *more, "--override-policy", "agreed")
    assert status in {0, 11}
    _, out, _ = call("copies")
    assert f"bundle in a nameless temporary file, of {served.url}, made" in out
    assert "overridden: agreed" in out
