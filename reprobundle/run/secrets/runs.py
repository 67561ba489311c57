"""Find the long words of a text: where no token can stand, no expression has to look.

To search for forty literals, or for an expression that starts with a choice, takes a
hundred times as long as to find out that a text of that kind has no word of such a
length.
"""

from __future__ import annotations

from collections.abc import Iterator


class Words:
    """Words made of certain characters, of at least a certain length."""

    def __init__(self, characters: bytes, least: int) -> None:
        """Take what a word is made of, and how many characters it has at least."""
        self._mask = bytes(
            ord("a") if code in characters else ord(" ") for code in range(256)
        )
        self._needle = b"a" * least

    def places(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Yield start and end of each word that is long enough, in order."""
        masked = text.translate(self._mask)
        start = masked.find(self._needle)
        while start >= 0:
            end = masked.find(b" ", start + len(self._needle))
            if end < 0:
                end = len(text)
            yield start, end
            start = masked.find(self._needle, end)
