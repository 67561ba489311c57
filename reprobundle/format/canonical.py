"""One form for every JSON document in a bundle, and strict reading of strangers' ones.

Canonical form: keys sorted, an indent of one space, UTF-8 without escapes that JSON
does not require, one line break at the end. The stored bytes are what is hashed; no
reader ever writes a document anew in order to check a digest.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Any, TypeVar

import msgspec

from reprobundle.errors import BadCallError, DocumentError, LimitError
from reprobundle.format import limits

T = TypeVar("T")

_NOT_STRUCTURE = bytes(set(range(256)) - set(b'"[]{},'))
_ALIKE = bytes.maketrans(b"{}", b"[]")
_STEPS = tuple((byte in b"[{") - (byte in b"]}") for byte in range(256))
_SLICE_BYTES = 1 << 16
_TURNS = 8


def encode(obj: object) -> bytes:
    """Return `obj` as canonical JSON.

    Raises:
        BadCallError: It holds a NaN or an infinity (callers store the strings
            ``nan``, ``inf``, ``-inf``), a lone surrogate or a type without a JSON
            form.
    """
    try:
        data = msgspec.json.encode(obj, order="sorted")
        # msgspec writes NaN and infinities as null without a word.
        if b"null" in data:
            json.dumps(msgspec.to_builtins(obj), allow_nan=False)
    except UnicodeEncodeError as error:
        text = ascii(error.object)
        raise BadCallError(
            f"{text} is not UTF-8, and a bundle holds no other text",
            advice="rename the file, or give another argument",
        ) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise BadCallError(f"no canonical JSON for this value: {error}") from error
    return msgspec.json.format(data, indent=1) + b"\n"


def decode(
    data: bytes,
    type: type[T],
    *,
    where: str,
    rule: str,
    limit_bytes: int = limits.DOCUMENT_BYTES,
    canonical: bool = False,
) -> T:
    """Return `data` as `type`, or refuse it; every field is checked.

    Args:
        data: One JSON document from an untrusted source.
        type: A msgspec type.
        where: Name of the member or file, for the message.
        rule: Rule that a breach of the schema breaks.
        limit_bytes: Largest size that is read.
        canonical: Whether it must be in canonical form, byte for byte.

    Raises:
        LimitError: The document is too large or too deep.
        DocumentError: It is no JSON, repeats a key, breaks the schema or is not in the
            form asked for; the message names the place.
    """
    check_size_and_depth(data, where=where, limit_bytes=limit_bytes)
    try:
        value = msgspec.json.decode(data, type=type)
        # A repeated key cannot be in a document that is equal to its canonical form.
        if not canonical or encode(value) != data:
            json.loads(data.decode(), object_pairs_hook=_refuse_repeated_keys)
            if canonical:
                raise DocumentError("not in canonical form", rule="R-6.7", where=where)
    except _RepeatedKeyError as error:
        message = f"key {error.args[0]!r} occurs twice in one object"
        raise DocumentError(message, rule="R-6.3", where=where) from error
    except msgspec.ValidationError as error:
        raise DocumentError(reason(error), rule=rule, where=where) from error
    except RecursionError as error:
        raise _too_deep(where) from error
    except ValueError as error:
        message = f"no valid JSON: {reason(error)}"
        raise DocumentError(message, rule="R-6.4", where=where) from error
    return value


def check_form(data: bytes, *, where: str, rule: str) -> None:
    """Refuse a JSON document that is not written in canonical form.

    Whether a field is left out that has its default is not asked: a later release may
    know more fields, and the bytes are what is signed.

    Raises:
        DocumentError: It is another text than the canonical one of the same value.
    """
    try:
        plain = msgspec.json.encode(msgspec.json.decode(data), order="sorted")
    except (ValueError, RecursionError) as error:
        raise DocumentError(reason(error), rule=rule, where=where) from error
    if msgspec.json.format(plain, indent=1) + b"\n" != data:
        raise DocumentError("not in canonical form", rule=rule, where=where)


def check_size_and_depth(data: bytes, *, where: str, limit_bytes: int) -> None:
    """Refuse a document that a parser should not even see.

    Raises:
        LimitError: It is larger than `limit_bytes`, nests deeper than allowed, or holds
            more values.
    """
    if len(data) > limit_bytes:
        message = f"{len(data):,} bytes, at most {limit_bytes:,} are read"
        raise LimitError(message, rule="R-6.1", where=where)
    depth, values = measure(data)
    if depth > limits.DOCUMENT_DEPTH:
        raise _too_deep(where)
    if values > limits.DOCUMENT_VALUES:
        message = f"{values:,} values, at most {limits.DOCUMENT_VALUES:,} are read"
        raise LimitError(message, rule="R-6.1", where=where)


def measure(data: bytes) -> tuple[int, int]:
    """Return how deep a document nests, and about how many values it holds.

    Nothing is parsed: a value takes 50 times its bytes in memory, so that is asked
    before. Counted are brackets that open, and commas. The depth of a document with
    too many of them is not looked at, and told as 0.
    """
    # What is left are brackets and commas outside of strings, counted in C: a loop over
    # every byte of a large document would take longer than to parse it.
    brackets = data
    if b"\\" in brackets:
        brackets = re.sub(rb"\\.", b"", brackets, flags=re.DOTALL)
    brackets = brackets.translate(None, _NOT_STRUCTURE).replace(b'""', b"")
    if b'"' in brackets:
        brackets = re.sub(rb'"[^"]*"', b"", brackets)
    values = sum(brackets.count(mark) for mark in b"[{,")
    if values > limits.DOCUMENT_VALUES:
        return 0, values
    brackets = brackets.translate(_ALIKE, b",")
    return _depth(brackets), values


def _depth(brackets: bytes) -> int:
    """Return how deep brackets nest that open and close anything."""
    # Each turn takes the innermost ones away, in C: a manifest takes three turns.
    peeled = brackets
    for turn in range(_TURNS):
        if not peeled:
            return turn
        peeled = peeled.replace(b"[]", b"")
    depth = deepest = 0
    for start in range(0, len(brackets), _SLICE_BYTES):
        steps = map(_STEPS.__getitem__, brackets[start : start + _SLICE_BYTES])
        depths = list(accumulate(steps, initial=depth))
        deepest = max(deepest, *depths)
        depth = depths[-1]
    return deepest


def _too_deep(where: str) -> LimitError:
    message = f"nests deeper than {limits.DOCUMENT_DEPTH} levels"
    return LimitError(message, rule="R-6.2", where=where)


class _RepeatedKeyError(ValueError):
    """A key occurs twice; the message is the key."""


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> None:
    # Returning nothing keeps the memory flat: only the keys matter here.
    seen = set()
    for key, _ in pairs:
        if key in seen:
            raise _RepeatedKeyError(key)
        seen.add(key)


def reason(error: Exception) -> str:
    """Return an error's text as one short line that is safe to print."""
    text = "".join(
        c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(error)
    )
    # Our messages start in lower case; an abbreviation such as JSON stays what it is.
    first = text[:1] if text[1:2].isupper() else text[:1].lower()
    return first + text[1:300]
