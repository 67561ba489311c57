"""Whatever cuts off a change of a bundle, the old or the new one is there, whole."""

from __future__ import annotations

import itertools
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from reprobundle.errors import (
    BadCallError,
    BundleError,
    EnvironmentUnusableError,
    StructureError,
)
from reprobundle.format import exclusive
from reprobundle.format.attach import (
    attach_acceptance,
    attach_replay,
    attach_signature,
    detach_replay,
    restore_bundle,
    write_replay_file,
)
from reprobundle.format.canonical import encode
from reprobundle.format.digests import digest_bytes
from reprobundle.format.journal import journal_path
from reprobundle.format.reader import check_digests, open_any, open_bundle
from reprobundle.format.writer import Source, write_bundle

from .conftest import make_sources, pseudo_random
from .replayed_writes import (
    disk_with,
    killed_states,
    powerless_state,
    recorded,
    without_waiting,
)

NAME = "b.rpb.zip"
OLD = (b'{"n": 1}', [Source("stdout.txt", "log", b"hello\n")])
NEW = (b'{"n": 2}', [Source("outputs/a", "output", b"0123456789")])
NEXT: tuple[bytes, list[Source]] = (b'{"n": 3}', [])
ARMOUR = b"-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"


def attach(path):
    attach_replay(path, *NEW)


def sign(path):
    with open_bundle(path) as bundle:
        subject = bundle.id
    attach_signature(path, subject, ARMOUR)


def accept(path):
    with open_bundle(path) as bundle:
        attach_acceptance(path, encode({"bundle": bundle.id}))


def detach(path):
    detach_replay(path, digest_bytes(OLD[0]))


CHANGES = [attach, sign, accept, detach]


def apart_of(change):
    """How many bytes lie between two trials: all changes are written in one way."""
    return 1 if change is attach else 7


@pytest.fixture
def fast_path(tmp_path):
    """A folder in memory where there is one: thousands of states are written to it."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        (tmp_path / "fast").mkdir()
        yield tmp_path / "fast"
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """A folder with one bundle that has one replay."""
    folder = tmp_path_factory.mktemp("before")
    path = folder / NAME
    write_bundle(path, make_sources({"policy.json": b"{}\n"}))
    attach_replay(path, *OLD)
    return folder


def seen(path):
    """What a reader finds: everything but the sealed part, proven and read."""
    with open_bundle(path) as bundle:
        assert check_digests(bundle, deep=True) == []
        contents = bundle.unsealed_contents().items()
        return {name: content.read() for name, content in contents}


class Outcomes:
    """What the bundle is before and after a change, to compare a state with."""

    def __init__(self, before, folder, change):
        shutil.copytree(before, folder)
        self.old = (folder / NAME).read_bytes()
        self.seen_old = seen(folder / NAME)
        self.steps = recorded(folder, lambda: change(folder / NAME))
        self.new = (folder / NAME).read_bytes()
        self.seen_new = seen(folder / NAME)

    def is_old(self, path):
        """Whether a reader finds the old bundle; it must be that or the new one."""
        found = seen(path)
        assert found in (self.seen_old, self.seen_new)
        return found == self.seen_old

    def check_recovery(self, folder):
        """Prove that a state can be changed again, and keeps what a reader saw."""
        path = folder / NAME
        was_old = self.is_old(path)
        attach_replay(path, *NEXT)
        detach_replay(path, digest_bytes(NEXT[0]))
        assert path.read_bytes() == (self.old if was_old else self.new)
        left = {one.name for one in folder.iterdir()}
        assert left <= {NAME, f".{NAME}.journal.part"}


@pytest.mark.parametrize("change", CHANGES, ids=lambda one: one.__name__)
def test_a_kill_at_any_byte_leaves_the_old_bundle_or_the_new(
    before, tmp_path, fast_path, change
):
    outcomes = Outcomes(before, tmp_path / "new", change)
    written = sum(len(step.data) for step in outcomes.steps)
    count = old_count = 0
    with without_waiting():
        for state in killed_states(before, outcomes.steps):
            count += 1
            if count % apart_of(change) and not state.at_border:
                continue
            folder = state.put_into(fast_path)
            old_count += outcomes.is_old(folder / NAME)
            # Where a write begins or ends, and at every 16th byte between.
            if count % 16 == 0 or state.at_border:
                outcomes.check_recovery(folder)
    assert count > written > 500
    assert old_count > written // apart_of(change)


@pytest.mark.parametrize("change", CHANGES, ids=lambda one: one.__name__)
def test_a_loss_of_power_leaves_the_old_bundle_or_the_new(
    before, tmp_path, fast_path, change
):
    outcomes = Outcomes(before, tmp_path / "new", change)
    rng = random.Random(change.__name__)
    with without_waiting():
        for _ in range(100):
            state = powerless_state(before, outcomes.steps, rng)
            outcomes.check_recovery(state.put_into(fast_path))


def test_a_change_without_its_syncs_would_be_noticed_here(before, tmp_path, fast_path):
    """The check above can fail."""
    outcomes = Outcomes(before, tmp_path / "new", attach)
    steps = [step for step in outcomes.steps if step.kind != "sync"]
    rng = random.Random(1)
    broken = 0
    with without_waiting():
        for _ in range(60):
            folder = powerless_state(before, steps, rng).put_into(fast_path)
            try:
                outcomes.check_recovery(folder)
            except (BundleError, AssertionError):
                broken += 1
    assert broken


def test_a_reader_takes_a_cut_off_change_for_not_made(before, tmp_path):
    path, _ = cut_off(before, tmp_path)
    old = path.stat().st_size
    with open_bundle(path) as bundle:
        assert bundle.interrupted
        assert bundle.replay_ids == (digest_bytes(OLD[0]),)
        assert check_digests(bundle, deep=True) == []
    assert journal_path(path).exists()
    assert path.stat().st_size == old
    assert restore_bundle(path)
    with open_bundle(path) as bundle:
        assert not bundle.interrupted
    assert path.read_bytes() == (before / NAME).read_bytes()


def cut_off(before, tmp_path):
    """Return a bundle whose attach was stopped in its last third, and its journal."""
    steps = Outcomes(before, tmp_path / "new", attach).steps
    left = sum(1 for _ in killed_states(before, steps)) - 60
    states = killed_states(before, steps)
    next(itertools.islice(states, left, None)).put_into(tmp_path / "cut")
    return tmp_path / "cut" / NAME, tmp_path / "cut" / f"{NAME}.journal"


def test_what_a_reader_saw_as_new_is_never_undone(before, tmp_path):
    """A change is made at one moment: when its journal goes."""
    steps = Outcomes(before, tmp_path / "new", attach).steps
    *_, last = (n for n, step in enumerate(steps) if step.kind == "remove")
    assert steps[last].name == f"{NAME}.journal"
    assert [step.kind for step in steps[last:]] == ["remove", "sync"]


@pytest.mark.parametrize(
    "field",
    [
        {"offset": 0},
        # The size agrees, and yet the manifest would be overwritten.
        {"offset": 0, "fits": True},
        {"anchor": 1 << 62},
        {"size": 1},
        {"magic": b"X" * 8},
    ],
)
def test_a_journal_with_impossible_numbers_is_not_applied(before, tmp_path, field):
    from blake3 import blake3

    from reprobundle.format.journal import _HEADER

    path, journal = cut_off(before, tmp_path)
    data = journal.read_bytes()
    magic, offset, size, at, length, digest, _ = _HEADER.unpack(data[: _HEADER.size])
    if "fits" in field:
        size = len(data) - _HEADER.size
    fixed = (
        field.get("magic", magic),
        field.get("offset", offset),
        field.get("size", size),
        at,
        field.get("anchor", length),
        digest,
    )
    kept = data[_HEADER.size :]
    proof = blake3(kept + _HEADER.pack(*fixed, bytes(32))).digest()
    journal.write_bytes(_HEADER.pack(*fixed, proof) + kept)
    state = path.read_bytes()
    with pytest.raises(StructureError, match="no journal of such a change") as caught:
        restore_bundle(path)
    assert caught.value.rule == "R-4.32"
    assert path.read_bytes() == state
    with pytest.raises(StructureError, match="cannot be used"):
        open_bundle(path)


# -- a full disk


@pytest.mark.parametrize("change", CHANGES, ids=lambda one: one.__name__)
def test_a_full_disk_at_any_byte_leaves_the_old_bundle(
    before, tmp_path, fast_path, change
):
    outcomes = Outcomes(before, tmp_path / "new", change)
    old, folder, full = outcomes.old, fast_path, 0
    with without_waiting():
        for room in range(0, 10_000, apart_of(change)):
            (folder / NAME).write_bytes(old)
            try:
                with disk_with(room):
                    change(folder / NAME)
            except EnvironmentUnusableError as error:
                full += "no space left" in error.message
                assert (folder / NAME).read_bytes() == old
                assert [one.name for one in folder.iterdir()] == [NAME]
            else:
                break
    assert room == full * apart_of(change) > 100
    assert (folder / NAME).read_bytes() == outcomes.new


def test_a_disk_that_the_kernel_calls_full_leaves_the_old_bundle(before, tmp_path):
    """The same with a limit of the system, which also cuts a write in its middle."""
    path = tmp_path / NAME
    old = (before / NAME).read_bytes()
    big = (b"{}", [Source("outputs/a", "output", pseudo_random(3_000_000))])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit in (len(old) + 1, len(old) + 100_001, 3_000_000):
        path.write_bytes(old)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            with pytest.raises(EnvironmentUnusableError, match="file too large"):
                attach_replay(path, *big)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert path.read_bytes() == old
        assert not journal_path(path).exists()


def test_a_file_that_cannot_be_changed_is_told_and_left(before, tmp_path):
    path = tmp_path / "ro" / NAME
    shutil.copytree(before, path.parent)
    path.chmod(0o444)
    if os.geteuid() == 0:
        # Nothing is read-only for root but what is mounted so.
        command = ["unshare", "-m", "sh", "-c", READ_ONLY, path.parent, sys.executable]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "OLD" not in done.stdout:
            pytest.skip(f"cannot mount here: {done.stderr.strip()[-80:]}")
        assert "cannot change" in done.stdout
        assert "read-only file system" in done.stdout
    else:
        with pytest.raises(EnvironmentUnusableError, match="permission denied"):
            attach_replay(path, *NEW)
    assert path.read_bytes() == (before / NAME).read_bytes()


READ_ONLY = textwrap.dedent(
    """
    mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && cd "$0" && "$1" -c '
    from pathlib import Path
    from reprobundle.errors import ReprobundleError
    from reprobundle.format.attach import attach_replay
    from reprobundle.format.reader import open_bundle
    try:
        attach_replay(Path("b.rpb.zip"), b"{}", [])
    except ReprobundleError as error:
        print("OLD", error)
    '
    """
)


# -- several processes


ATTACHING = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from reprobundle.format.attach import attach_replay, detach_replay
    from reprobundle.format.writer import Source
    path, who = Path(sys.argv[1]), sys.argv[2]
    for number in range(12):
        record = b'{"by": "%s", "n": %d}' % (who.encode(), number)
        attach_replay(path, record, [Source("a", "output", b"x" * 5000)])
    for number in range(2):
        passing = attach_replay(path, b'{"t": "%s%d"}' % (who.encode(), number), [])
        detach_replay(path, passing)
    """
)


def test_two_processes_that_attach_at_once_lose_nothing(before, tmp_path):
    path = tmp_path / NAME
    shutil.copy(before / NAME, path)
    running = [
        subprocess.Popen([sys.executable, "-c", ATTACHING, path, who])
        for who in ("first", "second")
    ]
    looks = 0
    while any(one.poll() is None for one in running):
        # A reader meets the bundle of some moment, never half of a change.
        with open_bundle(path) as bundle:
            assert bundle.replay_ids[0] == digest_bytes(OLD[0])
        looks += 1
    assert [one.wait() for one in running] == [0, 0]
    records = {
        b'{"by": "%s", "n": %d}' % (who, number)
        for who in (b"first", b"second")
        for number in range(12)
    }
    with open_bundle(path) as bundle:
        expected = {digest_bytes(one) for one in (*records, OLD[0])}
        assert set(bundle.replay_ids) == expected
        assert check_digests(bundle, deep=True) == []
    assert looks > 3


def test_a_change_that_does_not_end_is_not_waited_for_forever(
    before, tmp_path, monkeypatch
):
    import fcntl

    monkeypatch.setattr(exclusive, "LOCK_SECONDS", 0.1)
    path = tmp_path / NAME
    shutil.copy(before / NAME, path)
    with path.open("r+b") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(BadCallError, match="changed by another process"):
            attach_replay(path, *NEW)
    attach_replay(path, *NEW)


def test_a_bundle_that_was_replaced_while_we_waited_gets_the_replay(
    before, tmp_path, monkeypatch
):
    path = tmp_path / NAME
    shutil.copy(before / NAME, path)
    shutil.copy(before / NAME, tmp_path / "other")
    real = exclusive.try_lock

    def replaced(descriptor):
        if (tmp_path / "other").exists():
            (tmp_path / "other").replace(path)
        return real(descriptor)

    monkeypatch.setattr(exclusive, "try_lock", replaced)
    attach_replay(path, *NEW)
    with open_bundle(path) as bundle:
        assert digest_bytes(NEW[0]) in bundle.replay_ids


# -- what a killed writer leaves


def test_the_next_writer_of_a_file_takes_what_a_killed_one_left(tmp_path):
    from reprobundle.format.atomic import part_path

    target = tmp_path / "a.rpr.zip"
    part_path(target).write_bytes(b"x" * 100_000)
    write_replay_file(target, [NEW])
    assert [one.name for one in tmp_path.iterdir()] == [target.name]
    with open_any(target) as replays:
        assert replays.replay_ids == (digest_bytes(NEW[0]),)


def test_a_part_that_is_being_written_or_leads_elsewhere_is_left_alone(tmp_path):
    import fcntl

    from reprobundle.format.atomic import part_path

    target, other = tmp_path / "a.rpr.zip", tmp_path / "other"
    other.write_bytes(b"precious")
    part_path(target).symlink_to(other)
    write_replay_file(target, [NEW])
    assert other.read_bytes() == b"precious"
    part_path(target).unlink()
    os.link(other, part_path(target))
    write_replay_file(target, [NEW])
    assert other.read_bytes() == b"precious"
    part_path(target).unlink()
    part_path(target).write_bytes(b"half")
    with part_path(target).open("rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        write_replay_file(target, [NEW])
        assert Path(part_path(target)).read_bytes() == b"half"


# -- the size of the bundle


def test_attaching_reads_and_writes_no_more_to_a_larger_bundle(tmp_path, monkeypatch):
    counts = []
    for size_bytes in (5_000_000, 50_000_000):
        path = tmp_path / f"{size_bytes}.rpb.zip"
        contents = {"policy.json": b"{}\n", "inputs/x": pseudo_random(size_bytes)}
        write_bundle(path, make_sources(contents))
        moved = {"pread": 0, "pwrite": 0}
        with monkeypatch.context() as patch:
            for name in moved:
                patch.setattr(os, name, counting(getattr(os, name), moved, name))
            attach(path)
        counts.append(moved)
    small, large = counts
    # The manifest has one more digest for each chunk of 4 MiB, and is read.
    assert 0 < small["pwrite"] <= large["pwrite"] < small["pwrite"] + 100
    assert large["pread"] < small["pread"] + 11 * 100 * 2


def counting(real, moved, name):
    def call(descriptor, data, offset):
        result = real(descriptor, data, offset)
        moved[name] += result if name == "pwrite" else len(result)
        return result

    return call


def test_no_larger_manifest_is_read_for_a_journal_than_for_a_bundle(
    before, tmp_path, monkeypatch
):
    from reprobundle.format import limits
    from reprobundle.format.journal import _HEADER

    path, journal = cut_off(before, tmp_path)
    length = _HEADER.unpack(journal.read_bytes()[: _HEADER.size])[4]
    monkeypatch.setattr(limits, "DOCUMENT_BYTES", length - 1)
    with pytest.raises(StructureError, match="no journal of such a change"):
        restore_bundle(path)
