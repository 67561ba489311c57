"""Let nothing that looks like a secret out in a text that is to be published."""

from __future__ import annotations

from reprobundle.errors import LimitError, SensitiveContentError
from reprobundle.format.destinations import ISSUE_CHARACTERS
from reprobundle.run.secrets.scan import redacted, scan_text

MOST_NAMED = 5


def without_secrets(text: str, *, redact: bool, but_not: str = "") -> str:
    """Return `text`, scanned again as a whole.

    Args:
        text: What is to be published.
        redact: Replace what is found by its kind instead of refusing.
        but_not: A part of it that is no text, such as base64.

    Raises:
        SensitiveContentError: Something looks like a secret; it is told by line and
            kind, never itself.
    """
    before, part, behind = text.partition(but_not) if but_not else (text, "", "")
    if redact:
        return _within(f"{redacted(before)}{part}{redacted(behind)}")
    first = 1 + before.count("\n") + part.count("\n")
    found = scan_text("issue.txt", before.encode())
    found += scan_text("issue.txt", behind.encode(), first_line=first)
    if found:
        named = ", ".join(f"line {one.line} ({one.kind})" for one in found[:MOST_NAMED])
        more = len(found) - MOST_NAMED
        rest = f" and {more} more" if more > 0 else ""
        raise SensitiveContentError(
            f"{named}{rest} of the issue looks like a secret; nothing was written",
            places=tuple(f"{one.kind}@issue:{one.line}" for one in found),
            advice="pass a --snippet without it, or --redact",
        )
    return text


def _within(text: str) -> str:
    """Refuse a text that became too long: a kind can be longer than a secret."""
    if len(text.encode()) > ISSUE_CHARACTERS:
        message = f"{len(text.encode()):,} bytes without its secrets, too many"
        raise LimitError(message, rule="R-4.40", advice="pass a shorter --snippet")
    return text
