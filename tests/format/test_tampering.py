"""Whatever is done to the bytes of a bundle, it is refused or its damage is found."""

from __future__ import annotations

import contextlib
import random
import struct

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reprobundle.errors import BundleError
from reprobundle.format.attach import attach_replay
from reprobundle.format.reader import check_digests, open_bundle
from reprobundle.format.writer import Source, write_bundle

from .conftest import csv_text, make_sources, pseudo_random
from .forge import ForgedBundle, build_zip

CONTENTS = {
    "project/train.py": b"print('hello')\n",
    "inputs/x.csv": csv_text(40_000),
    "inputs/w.bin": pseudo_random(20_000),
    "policy.json": b"{}\n",
}

places = st.floats(0, 1, exclude_max=True)
changes = st.one_of(
    st.tuples(st.just("flip"), places, st.integers(1, 255)),
    st.tuples(st.just("insert"), places, st.integers(1, 40)),
    st.tuples(st.just("delete"), places, st.integers(1, 40)),
    st.tuples(st.just("zero"), places, st.integers(1, 2000)),
    st.tuples(st.just("repeat"), places, st.integers(1, 400)),
    st.tuples(st.just("cut"), places, st.just(0)),
)


def tamper(data: bytes, kind: str, where: float, amount: int) -> bytes:
    place = int(where * len(data))
    before, after = data[:place], data[place:]
    if kind == "flip":
        return before + bytes([after[0] ^ amount]) + after[1:]
    if kind == "insert":
        return before + random.Random(amount).randbytes(amount) + after
    if kind == "delete":
        return before + after[amount:]
    if kind == "zero":
        return before + bytes(min(amount, len(after))) + after[amount:]
    if kind == "repeat":
        return before + after[:amount] + after
    return before


SHORTS = ("version", "flags", "method", "time", "date")
LONGS = ("crc", "csize", "size", "signature")
numbers = st.one_of(st.sampled_from([0, 1, 2**16 - 1]), st.integers(0, 2**16 - 1))
large = st.one_of(st.sampled_from([0, 2**31, 2**32 - 1]), st.integers(0, 2**32 - 1))
huge = st.one_of(st.sampled_from([2**63 - 1, 2**63, 2**64 - 1]), st.integers(0, 2**40))
headers = st.fixed_dictionaries(
    {},
    optional={**dict.fromkeys(SHORTS, numbers), **dict.fromkeys(LONGS, large)},
)
records = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(SHORTS, numbers),
        **dict.fromkeys(("made_by", "disk", "internal"), numbers),
        **dict.fromkeys((*LONGS, "external", "offset"), large),
    },
)
ends = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("disk", "count", "total", "comment_bytes"), numbers),
        **dict.fromkeys(("size", "offset"), large),
        "zip64": st.fixed_dictionaries(
            {}, optional=dict.fromkeys(("count", "total", "size", "offset"), huge)
        ),
    },
)


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    number=st.integers(0, 7),
    local=headers,
    central=records,
    extra=st.lists(huge, max_size=3),
    end=ends,
)
def test_no_value_of_a_header_field_raises_anything_but_our_own_errors(
    number, local, central, extra, end, tmp_path
):
    entries = ForgedBundle().entries()
    entries[number].local.update(local)
    entries[number].central.update(central)
    if extra:
        values = struct.pack(f"<HH{len(extra)}Q", 1, 8 * len(extra), *extra)
        entries[number].central_extra = values
    path = tmp_path / "x.rpb.zip"
    path.write_bytes(build_zip(entries, **end))
    with contextlib.suppress(BundleError), open_bundle(path) as bundle:
        check_digests(bundle, deep=True)


def is_found(path) -> bool:
    try:
        with open_bundle(path) as bundle:
            return check_digests(bundle, deep=True) != []
    except BundleError as error:
        return str(error).isprintable()


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(edits=st.lists(changes, min_size=1, max_size=3))
def test_no_change_of_a_sealed_bundle_passes(edits, tmp_path):
    path = tmp_path / "x.rpb.zip"
    if not path.exists():
        write_bundle(path, make_sources(CONTENTS))
    original = path.read_bytes()
    data = original
    for kind, where, amount in edits:
        data = tamper(data, kind, where, amount) if data else data
    changed = tmp_path / "changed.rpb.zip"
    changed.write_bytes(data)
    assert is_found(changed) == (data != original)


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(edit=changes)
def test_no_change_of_an_attached_replay_passes_the_deep_check(edit, tmp_path):
    path = tmp_path / "x.rpb.zip"
    if not path.exists():
        write_bundle(path, make_sources({"policy.json": b"{}\n"}))
        attach_replay(path, b'{"n": 1}', [Source("a.bin", "output", b"1" * 900)])
    original = path.read_bytes()
    data = tamper(original, *edit)
    changed = tmp_path / "changed.rpb.zip"
    changed.write_bytes(data)
    assert is_found(changed) == (data != original)
