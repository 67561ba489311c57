"""Replace the paths of one machine in a text by what stands for them."""

from __future__ import annotations

import re


def replace_all(text: str, pairs: list[tuple[str, str]]) -> str:
    """Return `text` with each path of `pairs` replaced by its stand-in.

    Only whole path components count: a folder ``/tmp/a`` is not part of ``/tmp/ab``.
    """
    for old, new in pairs:
        if old and old in text:
            # ``/root`` alone is also the end of ``/data/root``; a longer path is not
            # likely to be, and may stand right behind an option: ``-I/home/a``.
            start = r"(?<![\w.~}-])" if old.count("/") == 1 else ""
            pattern = start + re.escape(old) + r"(?![\w.+-])"
            text = re.sub(pattern, new.replace("\\", r"\\"), text)
    return text
