import msgspec
import pytest

from reprobundle.errors import DocumentError, MissingMemberError
from reprobundle.format.canonical import encode
from reprobundle.format.manifest import Manifest, Member, Role
from reprobundle.format.reader import Bundle, open_bundle
from reprobundle.format.record import MemorySample, MemorySeries
from reprobundle.format.writer import Source, write_bundle
from reprobundle.report.view import BundleView, MemoryPoint, memory_points, view
from tests.report import bundles

ROLES: dict[str, Role] = {
    "policy.json": "policy",
    "environment.json": "lock",
    "record.json": "record",
    "memory.json": "series",
}


class HeldBundle(Bundle):
    """A bundle that lies in memory: sealed and unsealed files by name."""

    def __init__(
        self, sealed: dict[str, bytes], unsealed: dict[str, bytes] | None = None
    ) -> None:
        self.sealed, self.unsealed = sealed, unsealed or {}
        self.id = bundles.BUNDLE
        self.size_bytes = 1234
        self.newer_minor = False
        self.proven = True
        self.part = None
        self.signatures = ("signatures/author.sig",)
        self.acceptance_ids = ("a" * 64,)
        self.members = {path: member(path, data) for path, data in sealed.items()}
        self.manifest = Manifest(members=tuple(self.members.values()))
        self.replay_ids = tuple(name.split("/")[1] for name in self.unsealed)
        self._replays = {name.split("/")[1]: (name,) for name in self.unsealed}

    def read(self, path: str, *, limit_bytes: int = 0) -> bytes:
        if path not in self.sealed:
            raise MissingMemberError("it is not there", rule="R", where=path)
        return self.sealed[path]

    def read_unsealed(self, name: str, *, limit_bytes: int = 0) -> bytes:
        return self.unsealed[name]


def member(path: str, data: bytes) -> Member:
    role = ROLES[path.rpartition("/")[2]]
    return Member(path=path, size_bytes=len(data), blake3="a" * 64, role=role)


SERIES = MemorySeries(
    samples=(
        MemorySample(t_ns=30, point="step", pid=1, bytes={"rss": 5, "cuda": 7}),
        MemorySample(t_ns=10, point="start", pid=1, bytes={"rss": 9}),
        MemorySample(t_ns=20, point="step", pid=2, bytes={"rss": 8}),
    )
)
SEALED = {
    "policy.json": encode(bundles.POLICY),
    "lock/environment.json": encode(bundles.LOCK),
    "runs/2/record.json": encode(bundles.RECORD),
    "runs/10/record.json": encode(bundles.RECORD),
    "runs/2/memory.json": encode(SERIES),
}


def test_it_reads_every_document_of_the_bundle():
    seen = view(HeldBundle(SEALED))
    assert (seen.bundle, seen.size_bytes) == (bundles.BUNDLE, 1234)
    assert (seen.policy, seen.lock) == (bundles.POLICY, bundles.LOCK)
    assert [run.number for run in seen.runs] == [2, 10]
    assert seen.runs[0].record == bundles.RECORD
    assert seen.signatures == ("signatures/author.sig",)
    assert seen.acceptances == ("a" * 64,)
    assert seen.manifest.members[0].path == "policy.json"


def test_memory_samples_are_gathered_by_point_in_the_order_of_time():
    assert memory_points(SERIES) == (
        MemoryPoint(point="start", samples=1, first_ns=10, peak_bytes={"rss": 9}),
        MemoryPoint(
            point="step", samples=2, first_ns=20, peak_bytes={"rss": 8, "cuda": 7}
        ),
    )
    runs = view(HeldBundle(SEALED)).runs
    assert runs[0].memory_points == memory_points(SERIES)
    assert runs[1].memory_points == ()


def test_a_replay_that_cannot_be_read_does_not_hide_the_others():
    unsealed = {
        f"replays/{'1' * 64}/record.json": b"{",
        f"replays/{'2' * 64}/record.json": encode(bundles.RECORD),
    }
    broken, whole = view(HeldBundle(SEALED, unsealed)).replays
    assert broken.record is None
    assert "no valid JSON" in broken.problem
    assert (whole.record, whole.problem) == (bundles.RECORD, "")


def test_a_broken_sealed_document_is_an_error_that_names_it():
    with pytest.raises(DocumentError, match=r"policy\.json"):
        view(HeldBundle({**SEALED, "policy.json": b'{"profile": 3}'}))


def test_a_bundle_without_policy_is_an_error_and_without_lock_is_not():
    without_lock = {k: v for k, v in SEALED.items() if k != "lock/environment.json"}
    assert view(HeldBundle(without_lock)).lock is None
    without_policy = {k: v for k, v in SEALED.items() if k != "policy.json"}
    with pytest.raises(MissingMemberError):
        view(HeldBundle(without_policy))


def test_a_view_is_canonical_json_that_comes_back_equal():
    seen = view(HeldBundle(SEALED))
    assert msgspec.json.decode(encode(seen), type=BundleView) == seen


def test_a_written_bundle_is_read_back_whole(tmp_path):
    roles = {path: ROLES[path.rpartition("/")[2]] for path in SEALED}
    target = tmp_path / "digits.rpb.zip"
    sealed = write_bundle(
        target, [Source(path, roles[path], data) for path, data in SEALED.items()]
    )
    with open_bundle(target) as bundle:
        seen = view(bundle)
    assert (seen.bundle, seen.size_bytes) == (sealed.id, target.stat().st_size)
    assert seen.manifest.members == sealed.members
    assert (seen.policy, seen.lock) == (bundles.POLICY, bundles.LOCK)
    assert seen.runs[0].memory_points == memory_points(SERIES)
    assert seen.replays == ()
