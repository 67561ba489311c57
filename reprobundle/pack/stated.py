"""Facts that the user states about a run: recorded as stated, never as observed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reprobundle.errors import BadCallError
from reprobundle.format.record import Fact

PREFIX = "stated."
SOURCE = "stated by the user with pack --fact"
LONGEST_VALUE = 1000
_KEY = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*")
_LONGEST_KEY = 64


def parse_facts(texts: Iterable[str]) -> dict[str, Fact]:
    """Return the facts that texts of the form ``KEY=VALUE`` state, by name.

    Raises:
        BadCallError: A text has another form, or a key is stated twice.
    """
    facts: dict[str, Fact] = {}
    for text in texts:
        key, value = _pair(text)
        name = PREFIX + key
        if name in facts:
            raise BadCallError(
                f"fact {key!r} is stated twice, once as {facts[name].value!r} and once "
                f"as {value!r}",
                advice="state it once",
            )
        facts[name] = Fact(value=value, source=SOURCE)
    return facts


def _pair(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or len(key) > _LONGEST_KEY or not _KEY.fullmatch(key):
        raise BadCallError(
            f"fact {text[:80]!r} is not of the form KEY=VALUE, the key in lower case",
            advice="for example --fact batch_size=32",
        )
    if not value or len(value) > LONGEST_VALUE or not value.isprintable():
        raise BadCallError(
            f"fact {key!r} needs a value of 1 to {LONGEST_VALUE} printable characters, "
            f"it has {len(value)}",
            advice="for example --fact batch_size=32",
        )
    return key, value
