"""Values that stand next to a telling name: ``password = "…"``, ``API_KEY=…``."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from reprobundle.run.secrets.shapes import DOCUMENTED, is_placeholder

SECRET = "secret-value"
PASSWORD = "password"

LEAST_TOKEN = 16
LEAST_PASSWORD = 6
# Bits for each character: words have 3 or less, random letters and digits 4 or more.
LEAST_ENTROPY = 3.3
LEAST_HEX_ENTROPY = 2.9

_WORDS = (
    b"password",
    b"passwd",
    b"passphrase",
    b"pwd",
    b"secret",
    b"token",
    b"api_key",
    b"apikey",
    b"api-key",
    b"access_key",
    b"accesskey",
    b"account_key",
    b"private_key",
    b"credential",
)
# A part of several words: where it is not, none of them has to be looked for.
_PARTS = {
    b"password": b"passw",
    b"passwd": b"passw",
    b"api_key": b"api",
    b"apikey": b"api",
    b"api-key": b"api",
    b"access_key": b"_key",
    b"account_key": b"_key",
    b"private_key": b"_key",
}
_PASSWORDS = frozenset({b"password", b"passwd", b"passphrase", b"pwd"})

# After the word the name goes on (``SECRET_ACCESS_KEY``), may be quoted or escaped in a
# notebook, and is followed by a sign and the value.
_ASSIGNED = re.compile(
    rb"(?P<rest>[\w-]{0,24})\\?[\"']?\]?[ \t]{0,4}(?:=>|:=|==?|:)[ \t]{0,4}"
    rb"(?:[rbufRBUF]{0,2}(?P<quote>\\?[\"']))?"
    rb"(?P<value>[^\s\"'\\,;)\]}#&]{6,200})(?P<after>.?)"
)
_NETRC = re.compile(
    rb"(?i)\bpassword[ \t]{1,4}(?P<value>[^\s\"']{8,200})[ \t]{0,4}$", re.MULTILINE
)
# Then the name tells of something about the secret.
_OTHER_THING = re.compile(
    rb"(?i)izer|s?_?(?:id|ids|type|count|len|length|name|file|path|url|uri|hash|size|"
    rb"limit|budget|dim|emb|mask|pos|index|env|var|field|regex|pattern|policy|expir|"
    rb"prefix|digest|sha|label|text|list|set|map|vocab)(?![a-z])|^s$|^s_"
)
_HEX = re.compile(rb"[0-9a-fA-F]+")
_LETTERS_AND_DIGITS = re.compile(rb"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])")


def found_assignments(
    text: bytes, *, is_settings: bool
) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of each value that a telling name is given.

    Args:
        text: Of a file.
        is_settings: Whether values need no quotes there, as in ``.env`` and YAML; in a
            program, what has none is an expression and no value.
    """
    lowered = text.lower()
    for word, end in _words(lowered):
        match = _ASSIGNED.match(text, end)
        if match is None:
            continue
        if not (match["quote"] or is_settings) or _OTHER_THING.search(match["rest"]):
            continue
        if match["quote"] and match["after"] not in (b'"', b"'", b"\\"):
            continue  # The text goes on behind a space: a sentence.
        kind = _kind(word, match["value"], is_settings=is_settings)
        if kind:
            yield kind, match.start("value"), match.end("value")
    if is_settings and b"machine" in lowered:
        for match in _NETRC.finditer(text):
            if not is_placeholder(match["value"]):
                yield PASSWORD, match.start("value"), match.end("value")


def _words(lowered: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield each telling word and where it ends; a search by literal is quickest."""
    missing = {part for part in {*_PARTS.values()} if part not in lowered}
    for word in _WORDS:
        if _PARTS.get(word) in missing:
            continue
        start = lowered.find(word)
        while start >= 0:
            yield word, start + len(word)
            start = lowered.find(word, start + len(word))


def _kind(word: bytes, value: bytes, *, is_settings: bool) -> str:
    if is_placeholder(value) or any(example in value for example in DOCUMENTED):
        return ""
    if is_random(value):
        return SECRET
    if word in _PASSWORDS and _is_password(value, is_settings=is_settings):
        return PASSWORD
    return ""


def _is_password(value: bytes, *, is_settings: bool) -> bool:
    """Whether it could be what a person chose: more than one kind of character."""
    if len(value) < LEAST_PASSWORD or b"(" in value or b"/" in value:
        return False
    kinds = sum(
        bool(re.search(pattern, value))
        for pattern in (rb"[a-z]", rb"[A-Z]", rb"[0-9]", rb"[^\w]")
    )
    identifier = re.fullmatch(rb"[A-Za-z_][\w.]*", value) is not None
    return kinds >= 3 or (kinds >= 2 and not (identifier and not is_settings))


def is_random(value: bytes) -> bool:
    """Whether `value` has the look of having been drawn, not written."""
    if len(value) < LEAST_TOKEN or b"://" in value or value.count(b"/") > 6:
        return False
    if not _LETTERS_AND_DIGITS.match(value):
        return False
    least = LEAST_HEX_ENTROPY if _HEX.fullmatch(value) else LEAST_ENTROPY
    return entropy(value) >= least


def entropy(value: bytes) -> float:
    """Return Shannon's entropy of the characters of `value`, in bits for each."""
    total = len(value)
    counts = Counter(value).values()
    return -sum(count / total * math.log2(count / total) for count in counts)
