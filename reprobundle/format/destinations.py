"""Where bundles are attached, and what is taken there: one table with its sources.

Every figure has its source and the date of the state that was read. `check --for` and
`pack --for` enforce the table, and docs/destinations.md is generated from it
(``python tools/destination_table.py``).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

ISSUE_CHARACTERS = 65_536
"""Longest body of an issue or a comment of GitHub."""

ISSUE_ROOM = 8_192
"""Characters kept free for the issue's own text beside an inline bundle."""

ATTACHMENT_BYTES = 25_000_000

LimitId = Literal[
    "file-type",
    "file-bytes",
    "file-bytes-advised",
    "entries-shown",
    "document-bytes",
    "folder-entries",
    "text-characters",
    "self-contained",
    "pickles",
    "tolerance-stated",
    "readme",
    "licence",
    "environments",
    "purpose",
    "doi",
]


class Limit(NamedTuple):
    """One thing that a destination asks of a bundle.

    Attributes:
        id: Stable name; each has one measure in `reprobundle.verify.fit`.
        text: What the destination asks, one sentence without its figure.
        most: The figure, in the unit of `text`; None where there is none.
        refuses: Whether the destination refuses what breaks it; else it only suffers.
        source: Where that stands.
        date: Day on which it was read there, ``YYYY-MM-DD``.
    """

    id: LimitId
    text: str
    most: int | None
    refuses: bool
    source: str
    date: str


class Destination(NamedTuple):
    """One destination.

    Attributes:
        title: As people call it.
        limits: What it asks.
        how: How a bundle gets there, one sentence.
    """

    title: str
    limits: tuple[Limit, ...]
    how: str


_READ = "2026-12-03"
_GITHUB = "github/docs, attaching-files.md at 02ac71cd"
_PYTORCH_FORM = "pytorch/pytorch, .github/ISSUE_TEMPLATE/bug-report.yml at 001fe16d"
_PYTORCH_TRIAGE = "pytorch/pytorch, triaging-issues/SKILL.md at c7d3fbc9 (PR 174113)"
_ZENODO = "help.zenodo.org/docs/deposit/manage-files"
_PREVIEWER = "inveniosoftware/invenio-previewer, config.py at 0456da35"
_HUB = "huggingface/hub-docs, docs/hub/storage-limits.md at 003e04e9"
_ACM = "ACM, Artifact Review and Badging 1.1; conference-publishing.com artifacts"
_EUROSYS = "sysartifacts.github.io, EuroSys checklists"

_GITHUB_ISSUE = (
    Limit(
        "file-type",
        "Of archives only `.zip`, `.gz` and `.tgz` can be attached.",
        None,
        True,
        _GITHUB,
        _READ,
    ),
    Limit(
        "file-bytes",
        "Bytes of one attached file (25MB, taken as 25 million).",
        ATTACHMENT_BYTES,
        True,
        _GITHUB,
        _READ,
    ),
)
_PYTORCH_ISSUE = (
    Limit(
        "text-characters",
        "Characters of the bundle as text: links to archives are taken out of issues, "
        f"and {ISSUE_ROOM:,} of {ISSUE_CHARACTERS:,} are kept for its own text.",
        ISSUE_CHARACTERS - ISSUE_ROOM,
        True,
        f"{_PYTORCH_TRIAGE}; googleapis/release-please#1034",
        _READ,
    ),
    Limit(
        "self-contained",
        "The example relies on nothing that has to be downloaded.",
        None,
        False,
        _PYTORCH_FORM,
        _READ,
    ),
    Limit(
        "tolerance-stated",
        "A numerical difference is justified: why one result is wrong.",
        None,
        False,
        _PYTORCH_FORM,
        _READ,
    ),
)
_ZENODO_RECORD = (
    Limit(
        "file-type",
        "Contents are listed only of files whose name ends in `.zip`.",
        None,
        False,
        _PREVIEWER,
        _READ,
    ),
    Limit(
        "file-bytes",
        "Bytes of one record (50GB; 200GB on request), in at most 100 files.",
        50_000_000_000,
        True,
        _ZENODO,
        _READ,
    ),
    Limit(
        "entries-shown",
        "Entries of a ZIP file that its preview shows.",
        1000,
        False,
        _PREVIEWER,
        _READ,
    ),
    Limit(
        "document-bytes",
        "Bytes of a JSON or text document that a preview shows whole.",
        1 << 20,
        False,
        _PREVIEWER,
        _READ,
    ),
)
_HUGGING_FACE = (
    Limit(
        "file-bytes",
        "Bytes of one file (500GB).",
        500_000_000_000,
        True,
        _HUB,
        _READ,
    ),
    Limit(
        "file-bytes-advised",
        "Bytes of one file that are advised (200GB).",
        200_000_000_000,
        False,
        _HUB,
        _READ,
    ),
    Limit(
        "folder-entries",
        "Entries of one folder, if the bundle is put there unpacked.",
        10_000,
        False,
        _HUB,
        _READ,
    ),
    Limit(
        "pickles",
        "Files are scanned for pickles, in archives too, and flagged.",
        None,
        False,
        "huggingface.co/docs/hub/security-pickle; datasets/hf-doc-build/doc-build",
        _READ,
    ),
)
_PAPER = (
    *_ZENODO_RECORD,
    Limit("readme", "A README says how it is run.", None, False, _EUROSYS, _READ),
    Limit("licence", "A licence says how it may be used.", None, False, _ACM, _READ),
    Limit(
        "environments",
        "The supported environments and hardware are listed.",
        None,
        False,
        _EUROSYS,
        _READ,
    ),
    Limit("purpose", "What it shows is stated.", None, False, _EUROSYS, _READ),
    Limit(
        "doi",
        "It lies in an archive that gives a DOI; a code host is none.",
        None,
        True,
        _ACM,
        _READ,
    ),
)

DESTINATIONS: dict[str, Destination] = {
    "github-issue": Destination(
        "An issue, pull request or discussion of GitHub",
        _GITHUB_ISSUE,
        "Drag the file into the comment box; `reprobundle issue` writes the text.",
    ),
    "pytorch-issue": Destination(
        "An issue of pytorch/pytorch",
        _PYTORCH_ISSUE,
        "`reprobundle issue BUNDLE --inline` writes text and bundle in one.",
    ),
    "zenodo": Destination(
        "A record of Zenodo",
        _ZENODO_RECORD,
        "Upload the file as it is; its README and records show in the preview.",
    ),
    "huggingface": Destination(
        "A repository of the Hugging Face Hub",
        _HUGGING_FACE,
        "Upload the file as it is.",
    ),
    "paper": Destination(
        "The artifact of a paper",
        _PAPER,
        "Deposit the file where it gets a DOI, such as Zenodo.",
    ),
}
