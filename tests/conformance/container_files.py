"""Bundles and replay files that are right, or wrong in one place of the container."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

from blake3 import blake3

from tests.conformance.documents import (
    INPUT,
    METRICS,
    OUTPUT,
    SCRIPT,
    TOLERANT,
    Array,
    Run,
    Story,
    again,
    bundle_id,
    files_digest,
    input_read,
    phase,
    replay_entries,
    replay_files,
)
from tests.conformance.signature_files import armoured, signature
from tests.conformance.zstd_frames import BLOCK_BYTES, CHUNK_BYTES, frames
from tests.format.forge import Forged, ForgedBundle, build_zip, canonical

DEEP = ("--integrity", "--deep")
COMPLETE = "container/complete"
"""Id of the vector that is `base` itself; replay files stand against it."""

ZEROS = "inputs/zeros.bin"
NOISE = blake3(b"noise").digest(length=16_385)
"""Shrinks by no compressor, and is large enough to be aligned."""

TARGET = "project/a.py"


def base() -> ForgedBundle:
    """Return the smallest bundle that is whole and complete."""
    return Story().forge()


def changed(name: str = TARGET, **changes: Any) -> bytes:
    """Return a bundle in which one entry has other fields than it should.

    Args:
        name: The entry.
        changes: Fields of `Forged`; ``local``, ``central`` and ``both`` are header
            fields.
    """
    entries = base().entries()
    target = _entry(entries, name)
    target.both(**changes.pop("both", {}))
    target.local.update(changes.pop("local", {}))
    target.central.update(changes.pop("central", {}))
    for key, value in changes.items():
        setattr(target, key, value)
    return build_zip(entries)


def _entry(entries: list[Forged], name: str) -> Forged:
    return next(entry for entry in entries if entry.name == name)


def inserted(extra: Forged, before: str = "B3SUMS") -> bytes:
    """Return a bundle with a further entry before another one."""
    entries = base().entries()
    place = entries.index(_entry(entries, before))
    return build_zip([*entries[:place], extra, *entries[place:]])


def without(name: str) -> bytes:
    """Return a bundle that lacks an entry."""
    return build_zip([one for one in base().entries() if one.name != name])


def behind(*extra: Forged) -> bytes:
    """Return a bundle with further entries behind the manifest."""
    return build_zip([*base().entries(), *extra])


def part(*absent: str, number: int = 1, **changes: Any) -> bytes:
    """Return a part of the smallest complete bundle.

    Args:
        absent: Members that it does not hold.
        number: Which part it is.
        changes: Fields of ``part.json`` that are not as they should be.
    """
    entries = [one for one in base().entries() if one.name not in absent]
    manifest = _entry(entries, "manifest.json").data
    other = {"name": "rest.rpb.zip", "size_bytes": 9, "blake3": "0" * 64}
    facts = {
        "schema": "reprobundle/part/1",
        "bundle": blake3(manifest).hexdigest(),
        "number": number,
        "absent": list(absent),
        "other": other if number == 1 else None,
        **changes,
    }
    return build_zip([*entries, Forged("part.json", canonical(facts))])


def smallest() -> bytes:
    """Return the container of section 14: no run, no policy, no lock."""
    return ForgedBundle({"README.txt": b"nothing inside\n"}).build()


def normal() -> bytes:
    """Return a bundle with inputs, logs, two outputs, two passes and large members."""
    table = b"0" * 20_000
    inputs = {"noise.bin": NOISE, "x.csv": INPUT, "y.txt": table}
    changes = {
        "files_digest": files_digest({"a.py": SCRIPT, **inputs}),
        "reads": [input_read()],
        "phases": [phase()],
    }
    run = Run({"out/logits.npy": Array(), "out/metrics.json": METRICS}, changes)
    run.beside = {**run.beside, "stdout.txt": b"done\n", "stderr.txt": b""}
    passes = [(run, {}), (run, {"role": "repeat", "pass_name": "repeat"})]
    files = {f"inputs/{name}": content for name, content in inputs.items()}
    bundle = Story(runs=passes, policy=TOLERANT, files=files).forge()
    bundle.change("project/a.py", executable=True)
    bundle.stored["inputs/y.txt"] = ("inputs/y.txt.zst", frames(table))
    bundle.unsealed = [signature(armoured(b"reprobundle"), "0" * 64)]
    return bundle.build()


def compressed(
    content: bytes, stored: bytes | None = None, **facts: object
) -> ForgedBundle:
    """Return a bundle with one compressed member.

    Args:
        content: Its plain content.
        stored: Its stored bytes; None for the right ones.
        facts: Fields of the member in the manifest.
    """
    bundle = Story(files={ZEROS: content}).forge().change(ZEROS, **facts)
    stored = frames(content) if stored is None else stored
    bundle.stored[ZEROS] = (f"{ZEROS}.zst", stored)
    return bundle


def two_chunks() -> bytes:
    """Return a content of two chunks, the second of several blocks."""
    return bytes(CHUNK_BYTES) + bytes(BLOCK_BYTES) + b"the rest"


def badly_stored(stored: Callable[[bytes], bytes]) -> Callable[[], bytes]:
    """Return what makes a bundle in which `stored` compresses a member."""
    content = bytes(20_000)
    return lambda: compressed(content, stored(content)).build()


def unaligned() -> bytes:
    """Return a bundle with large content that is stored without padding."""
    entries = Story(files={"inputs/noise.bin": NOISE}).forge().entries()
    _entry(entries, "inputs/noise.bin").local_extra = b""
    return build_zip(entries)


def deflated() -> bytes:
    """Return a bundle with an entry that ZIP itself compresses."""
    entries = base().entries()
    target = _entry(entries, TARGET)
    plain = target.data
    # One block that is stored as it is: the same bytes with every version of zlib.
    length = struct.pack("<HH", len(plain), len(plain) ^ 0xFFFF)
    target.data = b"\x01" + length + plain
    target.both(method=8, size=len(plain), crc=zlib.crc32(plain))
    return build_zip(entries)


def swapped() -> bytes:
    """Return a bundle in which two entries lie in the wrong order."""
    entries = base().entries()
    entries[1], entries[2] = entries[2], entries[1]
    return build_zip(entries)


def one_entry_for_two() -> bytes:
    """Return a bundle in which the name of an entry fits two members."""
    content = bytes(20_000)
    names = (ZEROS, f"{ZEROS}.zst")
    bundle = Story(files=dict.fromkeys(names, content)).forge()
    for name in names:
        bundle.stored[name] = (f"{name}.zst", frames(content))
    return bundle.build()


def other_content(content: bytes) -> bytes:
    """Return a bundle that holds other content than the manifest says."""
    bundle = base()
    bundle.stored[TARGET] = (TARGET, content)
    return bundle.build()


def small_compressed() -> bytes:
    """Return a bundle in which a small member is compressed."""
    bundle = base()
    bundle.stored[TARGET] = (f"{TARGET}.zst", frames(SCRIPT))
    return bundle.build()


def zip64_field(*values: int) -> bytes:
    """Return the ZIP64 extra field with these values."""
    return struct.pack(f"<HH{len(values)}Q", 1, 8 * len(values), *values)


def name_without_utf8() -> bytes:
    """Return a bundle with an entry name that is not UTF-8."""
    entries = base().entries()
    _entry(entries, TARGET).name = b"project/\xff.py"
    return build_zip(entries)


def replay_file(*extra: Forged, run: Run | None = None) -> bytes:
    """Return a replay file: of `run`, and with further entries."""
    entries = replay_entries(bundle_id(base()), run) if run else []
    return build_zip([*entries, *extra])


def replay_unsorted() -> bytes:
    """Return a replay file in which two entries are swapped."""
    run = again({"a.json": b"1\n", OUTPUT: METRICS})
    record, first, second = replay_entries(bundle_id(base()), run)
    return build_zip([record, second, first])


def replay_renamed() -> bytes:
    """Return a replay file whose folder has another name."""
    files = replay_files(bundle_id(base()), again())
    top = next(iter(files)).partition("/record.json")[0]
    return build_zip(
        [
            Forged(name.replace(top, f"replays/{'0' * 64}"), data)
            for name, data in files.items()
        ]
    )
