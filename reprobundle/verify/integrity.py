"""Whether a bundle's bytes are what was sealed, and its replays what they say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from reprobundle.errors import (
    BadCallError,
    BundleError,
    DigestError,
    DocumentError,
    LimitError,
    MissingMemberError,
    UnsafeNameError,
    UnsupportedVersionError,
)
from reprobundle.format.findings import Finding
from reprobundle.format.reader import Bundle, check_digests
from reprobundle.verify.checks import finding

_ID = re.compile("[0-9a-f]{64}")

_BY_ERROR: tuple[tuple[type[BundleError], str], ...] = (
    (UnsupportedVersionError, "format-version"),
    (LimitError, "limits"),
    (DocumentError, "manifest"),
    (UnsafeNameError, "member-names"),
    (MissingMemberError, "membership"),
    (DigestError, "member-digest"),
    (BundleError, "container"),
)


# The structure is sound, but file and manifest do not name the same members.
_BY_RULE = {"R-4.16": "membership", "R-4.19": "member-digest"}


def refusal(error: BundleError, file: str = "") -> Finding:
    """Return the finding for an error that opening a bundle raised.

    Args:
        error: What was raised.
        file: Name of the file, if it is not the bundle itself.
    """
    kind = next(name for kind, name in _BY_ERROR if isinstance(error, kind))
    name = _BY_RULE.get(error.rule, kind)
    where = " ".join(part for part in (file, error.where) if part)
    return finding(name, "fail", bare_message(error), where=where, advice=error.advice)


def bare_message(error: BundleError) -> str:
    """Return the message of an error without the place it starts with."""
    return error.message.removeprefix(f"{error.where}: ")


def check_opened(bundle: Bundle) -> Iterator[Finding]:
    """Yield what opening `bundle` has proven already (V1 to V3)."""
    count = len(bundle.members)
    how = f"{bundle.size_bytes:,} bytes"
    if bundle.interrupted:
        how += ", as before a change that was cut off (attach --restore) or goes on"
    yield finding("container", "pass", how)
    yield finding("limits", "pass")
    version = bundle.manifest.version
    if bundle.newer_minor:
        yield finding(
            "format-version",
            "not-checked",
            f"format {version} may state facts that this reader does not know",
            got=version,
            advice="update reprobundle",
        )
    else:
        yield finding("format-version", "pass", got=version)
    yield finding("manifest", "pass")
    yield finding("member-names", "pass", f"{count:,} members")
    yield finding("membership", "pass", f"{count:,} members")
    if bundle.part is not None:
        yield _absent(bundle)


def _absent(bundle: Bundle) -> Finding:
    """Return the finding about a part: what of the bundle was not looked at."""
    size_bytes = sum(bundle.members[path].size_bytes for path in bundle.absent)
    named = ", ".join(sorted(bundle.absent)[:4])
    more = f" and {len(bundle.absent) - 4:,} more" if len(bundle.absent) > 4 else ""
    other = bundle.part.other if bundle.part else None
    where = f"in {other.name}, blake3 {other.blake3}" if other else "in part 1"
    return finding(
        "all-parts",
        "not-checked",
        f"this is one part of a bundle: {len(bundle.absent):,} of "
        f"{len(bundle.members):,} members ({size_bytes:,} bytes) lie {where}: "
        f"{named}{more}",
        advice="reprobundle join PART1 PART2 -o BUNDLE",
    )


def check_sealed_digests(
    bundle: Bundle,
    *,
    deep: bool,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Finding]:
    """Yield the findings of V4.

    Args:
        bundle: An open bundle.
        deep: Whether to prove the chunk digests too.
        progress: Called with the number of plain bytes just checked.
    """
    damages = [
        damage
        for damage in check_digests(bundle, deep=deep, progress=progress)
        # Records outside the seal are the business of V6 and V24, which say what a
        # wrong digest means.
        if not damage.path.startswith(("replays/", "acceptance/"))
    ]
    for damage in damages:
        yield finding(
            "member-digest",
            "fail",
            f"bytes {damage.byte_start:,} to {damage.byte_end:,} are not what was "
            "sealed",
            where=damage.path,
            expected=damage.expected,
            got=damage.got,
            advice="obtain the bundle again",
        )
    here = [one for path, one in bundle.members.items() if path not in bundle.absent]
    chunked = sum(bool(member.chunks) for member in here)
    if not damages:
        yield finding("member-digest", "pass", f"{len(here):,} members")
    if not chunked:
        yield finding("chunk-digests", "not-applicable", "no member has chunks")
    elif deep and not damages:
        yield finding("chunk-digests", "pass", f"{chunked:,} members in chunks")
    elif deep:
        reason = "the members themselves differ"
        yield finding("chunk-digests", "not-checked", reason)
    else:
        yield finding(
            "chunk-digests",
            "not-checked",
            f"the chunk digests of {chunked:,} members were not compared; their "
            "whole digests were",
            advice="use --deep",
        )


def whole_id(text: str) -> str:
    """Return a bundle id as it is stored.

    Raises:
        BadCallError: It is not the whole of one. Empty text is what an unset variable
            leaves, and must not read as "nothing was asked for".
    """
    told = text.strip().lower()
    if not _ID.fullmatch(told):
        raise BadCallError(
            f"a bundle id has 64 hexadecimal digits, got {text[:80]!r}",
            advice="give all of the id that pack printed behind 'id'",
        )
    return told


def check_identity(bundle: Bundle, expected: str | None) -> Finding:
    """Return the finding of V7: is it the bundle the caller means?"""
    if not expected:
        return finding(
            "expect-id",
            "not-checked",
            "the bundle id was not compared with one obtained elsewhere: digests show "
            "that nothing was damaged, not who made it",
            got=bundle.id,
            advice="use --expect-id with the id the author states",
        )
    if bundle.id == expected.strip().lower():
        return finding("expect-id", "pass", got=bundle.id)
    return finding(
        "expect-id",
        "fail",
        "this is another bundle than the one expected",
        expected=expected,
        got=bundle.id,
    )
