"""How numbers, sizes, times, digests and foreign text are written for a person.

Everything that leaves this package for a terminal goes through `safe`: names and
messages come out of bundles that strangers made.
"""

from __future__ import annotations

import unicodedata

from reprobundle.format.record import Number

NOTHING = "-"
SHORT_DIGEST = 12

_SIZE_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")
_SHORT_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"))
_MINUTE_NS = 60 * 1_000_000_000
# What our own messages use beyond ASCII, for streams that cannot carry it.
_ASCII = str.maketrans(
    {
        "…": "...",
        "–": "-",
        "—": "-",
        "·": "|",
        "×": "x",
        "≤": "<=",
        "≥": ">=",
        "≠": "!=",
        "→": "->",
        "‘": "'",
        "’": "'",
        "“": '"',
        "”": '"',
    }
)


def size(size_bytes: int) -> str:
    """Return a size in binary units with three significant digits, ``24.6 KiB``."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    units = iter(_SIZE_UNITS)
    value, unit = size_bytes / 1024, next(units)
    while value >= 999.5 and unit != _SIZE_UNITS[-1]:
        value, unit = value / 1024, next(units)
    return f"{_digits(value, 3)} {unit}"


def duration(elapsed_ns: int) -> str:
    """Return a duration: ``832 ns``, ``4.21 ms``, ``12.3 s``, ``2 min 05 s``."""
    if elapsed_ns >= _MINUTE_NS:
        return _long_duration(round(elapsed_ns / 1_000_000_000))
    for unit_ns, unit in _SHORT_UNITS:
        if elapsed_ns >= unit_ns:
            return f"{_digits(elapsed_ns / unit_ns, 3)} {unit}"
    return f"{elapsed_ns} ns"


def _long_duration(seconds: int) -> str:
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min"


def _digits(value: float, significant: int) -> str:
    """Return `value` without exponent, rounded to that many significant digits."""
    whole = len(str(int(value)))
    return f"{value:.{max(significant - whole, 0)}f}"


def count(number: int) -> str:
    """Return a count with thousands separated, ``20,000``."""
    return f"{number:,}"


def plural(number: int, noun: str) -> str:
    """Return ``1 file``, ``2 files``, ``20,000 files``."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def number(value: Number | None) -> str:
    """Return a float with four significant digits; ``-`` where there is none.

    A value other than zero never comes out as zero.
    """
    if value is None:
        return NOTHING
    return f"{float(value):.4g}"


def digest(value: str) -> str:
    """Return the first 12 digits of a hexadecimal digest or id."""
    return value[:SHORT_DIGEST]


def safe(text: str, encoding: str = "utf-8") -> str:
    r"""Return `text` with all that could steer or deceive a terminal made visible.

    Control and format characters (escape sequences, line ends, bidirectional
    overrides, zero-width characters), lone surrogates, private and unassigned code
    points, and spaces other than U+0020 become ``\xNN`` or ``\uNNNN``; so do the
    characters that `encoding` cannot carry.
    """
    if not text.isprintable():
        text = "".join(char if char.isprintable() else _escape(char) for char in text)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_ASCII)
        return text.encode(encoding, "backslashreplace").decode(encoding)
    return text


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def cells(text: str) -> int:
    """Return how many terminal cells the printable `text` takes."""
    if text.isascii():
        return len(text)
    return sum(_cell(char) for char in text)


def _cell(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def shorten(text: str, width: int, ellipsis: str = "…") -> str:
    """Return `text` in at most `width` cells, cut in its middle where it is longer.

    The end is kept longer than the start: it tells file names apart.
    """
    if cells(text) <= width:
        return text
    room = max(width - cells(ellipsis), 0)
    head = take(text, room // 3)
    tail = take(text[::-1], room - cells(head))[::-1]
    return f"{head}{ellipsis}{tail}" if room else take(text, width)


def take(text: str, width: int) -> str:
    """Return the longest start of `text` that fits into `width` cells."""
    if text.isascii():
        return text[: max(width, 0)]
    used = 0
    for position, char in enumerate(text):
        used += _cell(char)
        if used > width:
            return text[:position]
    return text


def wrap(text: str, width: int) -> list[str]:
    """Return the words of `text` in lines of at most `width` cells each.

    A word that is longer than a line is cut hard.
    """
    lines = [""]
    for word in text.split():
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if cells(joined) <= width:
            lines[-1] = joined
            continue
        if lines[-1]:
            lines.append("")
        lines[-1:] = _pieces(word, max(width, 2))
    return lines


def _pieces(word: str, width: int) -> list[str]:
    pieces = []
    start = used = 0
    for position, char in enumerate(word):
        needed = _cell(char)
        if used + needed > width:
            pieces.append(word[start:position])
            start, used = position, 0
        used += needed
    return [*pieces, word[start:]]
