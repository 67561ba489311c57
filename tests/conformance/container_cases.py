"""The vectors of section 4: one for every way in which the container can lie."""

from __future__ import annotations

from collections.abc import Callable

from tests.conformance import container_files as files
from tests.conformance.case import INTEGRITY, Case
from tests.conformance.container_files import COMPLETE, DEEP, TARGET
from tests.conformance.documents import again
from tests.conformance.signature_files import armoured, signature
from tests.conformance.zstd_frames import frame
from tests.format.forge import Forged


def _valid(
    name: str,
    requirement: str,
    comment: str,
    make: Callable[[], bytes],
    verdict: str = "INTACT",
    arguments: tuple[str, ...] = INTEGRITY,
) -> Case:
    return Case(
        "container", name, requirement, "valid", verdict, comment, make, arguments
    )


def _refused(
    name: str,
    requirement: str,
    comment: str,
    make: Callable[[], bytes],
    verdict: str = "UNREADABLE",
    arguments: tuple[str, ...] = INTEGRITY,
) -> Case:
    return Case(
        "container", name, requirement, "invalid", verdict, comment, make, arguments
    )


def _refused_replay(
    name: str,
    requirement: str,
    comment: str,
    make: Callable[[], bytes],
    verdict: str = "UNREADABLE",
) -> Case:
    return Case(
        "container",
        name,
        requirement,
        "invalid",
        verdict,
        comment,
        make,
        (),
        COMPLETE,
    )


VALID = (
    _valid(
        "smallest",
        "R-7.4",
        "The smallest container: intact, and not complete, for it holds no run.",
        files.smallest,
        "INCOMPLETE",
    ),
    _valid(
        "complete",
        "R-4.11",
        "The smallest bundle that is complete. Most other vectors differ from it in "
        "one place.",
        lambda: files.base().build(),
    ),
    _valid(
        "normal",
        "R-4.26",
        "Inputs, logs, two outputs, two passes, an executable, a compressed member, an "
        "aligned one, and a signature behind the manifest.",
        files.normal,
    ),
    _valid(
        "two_chunks",
        "R-4.21",
        "A member of more than 4 MiB: two frames, two chunk digests, proven by --deep.",
        lambda: files.compressed(files.two_chunks()).build(),
        arguments=DEEP,
    ),
    Case(
        "container",
        "replay_file",
        "R-4.27",
        "valid",
        "REPRODUCED, bit-identical",
        "A replay that travels alone is judged without being attached.",
        lambda: files.replay_file(run=again()),
        (),
        COMPLETE,
    ),
)

ZIP = (
    _refused("text_file", "R-4.1", "Text, no ZIP file.", lambda: b"hello\n"),
    _refused(
        "truncated",
        "R-4.1",
        "The last byte of the end record is missing.",
        lambda: files.base().build()[:-1],
    ),
    _refused(
        "trailing_byte",
        "R-4.2",
        "A line break follows the end record.",
        lambda: files.base().build(trailing=b"\n"),
    ),
    _refused(
        "zip64_without_need",
        "R-4.3",
        "A ZIP64 end record states an offset that fits into the plain one.",
        lambda: files.base().build(offset=0xFFFFFFFF, zip64={}),
    ),
    _refused(
        "ten_million_entries",
        "R-4.4",
        "Ten million entries are stated. A reader refuses before it makes room for "
        "them.",
        lambda: files.base().build(
            total=0xFFFF, zip64={"count": 10**7, "total": 10**7}
        ),
    ),
    _refused(
        "hidden_record",
        "R-4.5",
        "The directory holds one record more than the end record states.",
        lambda: files.base().build(count=7, total=7),
    ),
    _refused(
        "deflated",
        "R-4.6",
        "One entry is compressed by ZIP itself.",
        files.deflated,
    ),
    _refused(
        "data_descriptor",
        "R-4.7",
        "One entry has a data descriptor.",
        lambda: files.changed(both={"flags": 0x808}, after=b"PK\x07\x08" + bytes(12)),
    ),
    _refused(
        "symbolic_link",
        "R-4.8",
        "One entry is a symbolic link.",
        lambda: files.changed(central={"external": 0o120777 << 16}),
    ),
    _refused(
        "unknown_extra_field",
        "R-4.9",
        "The directory has an extra field that is not ZIP64.",
        lambda: files.changed(central_extra=b"UT\x01\0x"),
    ),
    _refused(
        "padding_with_content",
        "R-4.9",
        "The padding of a local header is not zero.",
        lambda: files.changed(local_extra=b"FB\x04\0evil"),
    ),
    _refused(
        "two_names",
        "R-4.10",
        "The local header has another name than the directory.",
        lambda: files.changed(local={"name": b"project/b.py"}),
    ),
    _refused(
        "script_in_front",
        "R-4.11",
        "A shell script lies before the first entry.",
        lambda: files.base().build(prefix=b"#!/bin/sh\n"),
    ),
    _refused(
        "bytes_between_entries",
        "R-4.11",
        "Bytes between two entries belong to none.",
        lambda: files.changed(before=b"hidden"),
    ),
    _refused(
        "zip64_size_without_need",
        "R-4.12",
        "A size of 13 bytes is written as a ZIP64 field.",
        lambda: files.changed(
            central={"size": 0xFFFFFFFF, "csize": 0xFFFFFFFF},
            central_extra=files.zip64_field(13, 13),
        ),
    ),
    _refused(
        "unaligned",
        "R-4.13",
        "Content of more than 16 KiB stored as it is, without padding before it.",
        files.unaligned,
    ),
    _refused(
        "name_not_utf8",
        "R-4.14",
        "An entry name is not UTF-8.",
        files.name_without_utf8,
    ),
)

MEMBERS = (
    _refused(
        "no_manifest",
        "R-4.15",
        "The file has no manifest.json.",
        lambda: files.without("manifest.json"),
    ),
    _refused(
        "member_missing",
        "R-4.15",
        "The manifest lists a member that the file does not hold.",
        lambda: files.without(TARGET),
        "TAMPERED",
    ),
    _refused(
        "entry_not_listed",
        "R-4.16",
        "An entry before the manifest is not listed in it.",
        lambda: files.inserted(Forged("runs/1/outputs/y.json", b"?")),
        "TAMPERED",
    ),
    _refused(
        "entries_swapped",
        "R-4.17",
        "Two entries lie in another order than the manifest lists them.",
        files.swapped,
    ),
    _refused(
        "one_entry_for_two_members",
        "R-4.18",
        "An entry could be a member as it is, or another one compressed.",
        files.one_entry_for_two,
    ),
    _refused(
        "other_size",
        "R-4.19",
        "An entry has another size than its member.",
        lambda: files.other_content(b""),
        "TAMPERED",
    ),
    _refused(
        "frame_without_checksum",
        "R-4.20",
        "A frame has no content checksum. Its content is right.",
        files.badly_stored(lambda content: frame(content, checksum=False)),
        "TAMPERED",
    ),
    _refused(
        "frame_with_wide_window",
        "R-4.20",
        "A frame asks for a window of 16 MiB. Its content is right.",
        files.badly_stored(lambda content: frame(content, window_log=24)),
        "TAMPERED",
    ),
    _refused(
        "two_frames_for_one_chunk",
        "R-4.21",
        "One chunk is cut into two frames. Together they give the right content.",
        files.badly_stored(lambda content: frame(content[:9]) + frame(content[9:])),
        "TAMPERED",
    ),
    _refused(
        "bytes_behind_the_frames",
        "R-4.21",
        "A byte follows the last frame.",
        files.badly_stored(lambda content: frame(content) + b"\0"),
        "TAMPERED",
    ),
    _refused(
        "frame_of_other_size",
        "R-4.22",
        "A frame decodes to one byte less than it states.",
        files.badly_stored(
            lambda content: frame(content[:-1], stated_bytes=len(content)),
        ),
        "TAMPERED",
    ),
    _refused(
        "small_member_compressed",
        "R-4.23",
        "A script of 13 bytes is compressed.",
        files.small_compressed,
    ),
    _refused(
        "manifest_checksum",
        "R-4.24",
        "The CRC-32 of manifest.json is wrong in both headers.",
        lambda: files.changed("manifest.json", both={"crc": 7}),
    ),
    _refused(
        "member_checksum",
        "R-4.24",
        "The CRC-32 of a member is wrong in both headers; its content is right.",
        lambda: files.changed(both={"crc": 7}),
        "TAMPERED",
        DEEP,
    ),
    _refused(
        "content_altered",
        "R-4.25",
        "A member has other content of the same size, with the right CRC-32 of it.",
        lambda: files.other_content(b"import trace\n"),
        "TAMPERED",
    ),
)

UNSEALED = (
    _refused(
        "file_behind_the_seal",
        "R-4.26",
        "An entry behind manifest.json is no signature, no acceptance record and no "
        "part of a replay.",
        lambda: files.behind(Forged("project/b.py", b"?")),
    ),
    _refused_replay(
        "replay_unsorted",
        "R-4.27",
        "The files of a replay are not sorted.",
        files.replay_unsorted,
    ),
    _refused_replay(
        "replay_file_with_more",
        "R-4.27",
        "A replay file holds a file that belongs to no replay.",
        lambda: files.replay_file(Forged("notes.txt", b"?"), run=again()),
    ),
    _refused_replay(
        "replay_file_without_replay",
        "R-4.27",
        "A replay file holds no replay.",
        files.replay_file,
    ),
    _refused_replay(
        "replay_renamed",
        "R-4.28",
        "A replay lies in a folder that is not named by the digest of its record.",
        files.replay_renamed,
        "TAMPERED",
    ),
)

MEMORY = "runs/1/memory.json"

PARTS = (
    _valid(
        "part_1",
        "R-4.41",
        "The first part of a bundle: the memory series lies in the other one. It is "
        "sound, and never more than incomplete.",
        lambda: files.part(MEMORY),
        "INCOMPLETE",
    ),
    _valid(
        "part_2",
        "R-4.41",
        "The second part of a bundle, without the script.",
        lambda: files.part(TARGET, number=2),
        "INCOMPLETE",
    ),
    _refused(
        "part_lacks_more",
        "R-4.15",
        "A part lacks a member that it does not name as absent.",
        lambda: files.part(MEMORY, TARGET, absent=[MEMORY]),
        "TAMPERED",
    ),
    _refused(
        "part_holds_what_it_lacks",
        "R-4.41",
        "A part holds a member that it names as absent.",
        lambda: files.part(MEMORY, absent=[TARGET, MEMORY]),
    ),
    _refused(
        "part_of_nothing",
        "R-4.41",
        "A part that names no absent member.",
        files.part,
    ),
    _refused(
        "part_of_another_bundle",
        "R-4.41",
        "part.json names another bundle.",
        lambda: files.part(MEMORY, bundle="0" * 64),
    ),
    _refused(
        "part_without_the_other",
        "R-4.41",
        "The first part does not name the other one.",
        lambda: files.part(MEMORY, other=None),
    ),
    _refused(
        "part_json_elsewhere",
        "R-4.26",
        "part.json is not the first entry behind the manifest.",
        lambda: files.behind(
            signature(armoured(b"reprobundle"), "0" * 64), Forged("part.json", b"{}")
        ),
    ),
)

CASES = (*VALID, *ZIP, *MEMBERS, *UNSEALED, *PARTS)
