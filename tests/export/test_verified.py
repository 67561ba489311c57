"""What is exported is what was verified, byte for byte."""

from __future__ import annotations

import io

import pytest

from reprobundle.errors import BadCallError, DigestError, NotExportedError
from reprobundle.export import verified as module
from reprobundle.export.bag import write_bag
from reprobundle.export.tree import Item, items
from reprobundle.export.verified import verified
from reprobundle.export.writing import new_tree, write_items
from reprobundle.sign.sign import sign
from reprobundle.verify.verify import verify_bundle
from tests.verify.builder import Bench


def test_every_file_of_a_replay_has_the_digest_its_record_states(opened):
    with opened("reproduced") as what:
        told = {item.name: item.blake3 for item in items(what)}
    assert all(digest for digest in told.values())
    assert sum(name.startswith("replays/") for name in told) == 6


@pytest.mark.parametrize("target", ["tree", "tree.zip"])
def test_content_that_changed_since_is_not_written(target, tmp_path):
    item = Item("a.txt", 1, "project", lambda: io.BytesIO(b"x"), blake3="0" * 64)
    with (
        pytest.raises(DigestError, match="blake3 is"),
        new_tree(tmp_path / target, needed_bytes=1) as sink,
    ):
        list(write_items(sink, [item]))
    assert not list(tmp_path.iterdir())


def test_a_file_that_was_replaced_meanwhile_is_refused(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    bench = Bench(tmp_path).pack()
    other = Bench(tmp_path / "other", repeat=None).pack()

    def verify_and_lose(path, **options):
        report = verify_bundle(path, **options)
        path.write_bytes(other.path.read_bytes())
        return report

    monkeypatch.setattr(module, "verify_bundle", verify_and_lose)
    with pytest.raises(BadCallError, match="replaced while"), verified(bench.path):
        pytest.fail("it was given open")


def test_a_bundle_without_its_documents_is_refused(tmp_path):
    bench = Bench(tmp_path, left_out=("policy.json",)).pack()
    message = "is INCOMPLETE: .*nothing was exported"
    with pytest.raises(NotExportedError, match=message), verified(bench.path):
        pytest.fail("it was given open")


def test_a_replay_that_is_none_makes_it_tampered(tmp_path):
    bench = Bench(tmp_path).pack()
    bench.replay(role="repeat")
    with pytest.raises(NotExportedError, match="is TAMPERED"), verified(bench.path):
        pytest.fail("it was given open")


def test_signatures_come_along(tmp_path, keys):
    bench = Bench(tmp_path).pack()
    (signed,) = sign(bench.path, keys["alice"])
    with verified(bench.path) as what:
        write_bag(what, tmp_path / "bag")
        told = what.bundle.read_unsealed(signed.name)
    assert (tmp_path / "bag/data" / signed.name).read_bytes() == told
