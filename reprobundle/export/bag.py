"""A bundle as a BagIt bag: its files, with SHA-256 digests that any archive checks.

The bag is complete: it has no fetch file, so nothing has to be downloaded. Two bags of
one bundle, made by one release, are equal byte for byte; so it states no date of its
own.

Source: RFC 8493, and BagIt 0.97 where they differ. `bagit`, like most tools, reads a
percent sign in a name as itself, which is the rule of 0.97 and not of 1.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from reprobundle import __version__
from reprobundle.errors import BadCallError
from reprobundle.export.tree import REPORT_NAME, Item, items
from reprobundle.export.verified import Verified
from reprobundle.export.writing import Written, new_tree, write_items, write_text
from reprobundle.outputs.text import printable
from reprobundle.report.json import report_json
from reprobundle.report.vouched import assurance_words

_BAGIT = b"BagIt-Version: 0.97\nTag-File-Character-Encoding: UTF-8\n"
_TAGS_BYTES = 1 << 20


def write_bag(
    what: Verified,
    target: Path,
    *,
    with_bundle: bool = False,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Write a new bag, a folder or a ZIP file with one folder in it.

    Args:
        what: The verified bundle.
        target: The folder, or the file if it ends in ``.zip``.
        with_bundle: Put the bundle file into it too.
        progress: Called with the number of bytes just written.

    Raises:
        BadCallError: `target` exists, or a name means another one in a manifest.
        EnvironmentUnusableError: There is no room, or writing failed.
        DigestError: Content is not what was sealed.
    """
    content = [
        item._replace(name=f"data/{item.name}")
        for item in items(what, with_bundle=with_bundle)
    ]
    _check_names(content)
    needed = sum(item.size_bytes for item in content) + _TAGS_BYTES
    top = target.name.removesuffix(".zip")
    with new_tree(target, needed_bytes=needed, top=top) as sink:
        payload = list(write_items(sink, content, progress))
        tags = [
            write_text(sink, "bagit.txt", _BAGIT),
            write_text(sink, "bag-info.txt", _info(what, payload).encode()),
            write_text(sink, "manifest-sha256.txt", _manifest(payload).encode()),
            write_text(sink, REPORT_NAME, report_json(what.report)),
        ]
        write_text(sink, "tagmanifest-sha256.txt", _manifest(tags).encode())


def _check_names(content: Iterable[Item]) -> None:
    """Refuse names that a line of a manifest cannot hold.

    Readers take ``%0A`` and ``%0D`` for line breaks, and drop white space at the end.
    """
    for item in content:
        if "%0a" in item.name.lower() or "%0d" in item.name.lower():
            why = "holds %0A or %0D, which BagIt reads as a line break"
        elif item.name != item.name.rstrip():
            why = "ends in white space, which BagIt drops"
        else:
            continue
        raise BadCallError(
            f"{item.name.removeprefix('data/')!r} {why}",
            advice="use export ro-crate, or rename the file and pack again",
        )


def _manifest(files: Sequence[Written]) -> str:
    return "".join(
        f"{one.sha256}  {one.name}\n" for one in sorted(files, key=lambda it: it.name)
    )


def _info(what: Verified, payload: Sequence[Written]) -> str:
    total = sum(one.size_bytes for one in payload)
    lines = [*_described(what), ("Payload-Oxum", f"{total}.{len(payload)}")]
    return "".join(f"{label}: {_one_line(value)}\n" for label, value in lines)


def _described(what: Verified) -> Iterator[tuple[str, str]]:
    """Yield what bag-info.txt says; the first labels are those of BagIt."""
    report, citation = what.report, what.citation
    title = citation.title or report.file.removesuffix(".rpb.zip")
    yield "External-Identifier", f"urn:blake3:{what.bundle.id}"
    if citation.doi:
        yield "External-Identifier", citation.doi_url
    yield "External-Description", title
    yield "Internal-Sender-Identifier", what.bundle.id
    yield "Bag-Software-Agent", f"reprobundle {__version__}"
    for author in citation.authors:
        yield "Contact-Name", str(author)
    yield "Reprobundle-Id", what.bundle.id
    yield "Reprobundle-Verdict", f"{report.verdict} (exit {report.exit_status})"
    for reason in report.reasons[:12]:
        yield "Reprobundle-Reason", reason
    yield "Reprobundle-Assurance", assurance_words(report.assurance)
    if report.not_checked:
        yield "Reprobundle-Not-Checked", ", ".join(report.not_checked)


def _one_line(value: str) -> str:
    return printable(" ".join(value.split()), longest=2000) or "none"
