"""Tell an address from a path, and show it without the secrets it may hold."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from reprobundle.errors import BadCallError

SCHEMES = ("https", "http", "s3", "gs")

_BEGINNING = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_UNSHOWN = re.compile(r"[^!-~]")


@dataclass(frozen=True)
class Address:
    """Where a file lies on a server.

    Attributes:
        url: The whole address. A user's name, a password, the signature of a link: it
            is given to the server and to nobody else.
        scheme: ``https``, ``http``, ``s3`` or ``gs``.
        shown: The address without these, for messages.
        name: Its last part, fit to name a file.
    """

    url: str = field(repr=False)
    scheme: str
    shown: str
    name: str

    def __str__(self) -> str:
        return self.shown


def is_address(text: str) -> bool:
    """Return whether `text` is an address of any kind and no path."""
    return _BEGINNING.match(text) is not None


def parse_address(text: str) -> Address:
    """Return the address that `text` is.

    Raises:
        BadCallError: It is of a kind that is not read, or names no host.
    """
    scheme = text.partition("://")[0].lower()
    if scheme not in SCHEMES:
        known = ", ".join(f"{one}://" for one in SCHEMES)
        raise BadCallError(
            f"{_UNSHOWN.sub('', scheme)}:// is not read, only {known}",
            advice="fetch the file and name it by its path",
        )
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError as error:
        # Its text could repeat what must not be shown.
        raise BadCallError(f"no {scheme}:// address that can be read") from error
    if not host:
        what = "host" if scheme in {"http", "https"} else "bucket"
        raise BadCallError(f"the {scheme}:// address names no {what}")
    more = "?…" if parts.query else ""
    path = _UNSHOWN.sub("?", parts.path)
    shown = f"{scheme}://{_UNSHOWN.sub('?', host)}{port}{path}{more}"
    return Address(text, scheme, shown, _name(parts.path) or host)


def _name(path: str) -> str:
    """Return the last part of a path, with nothing that leads into another folder."""
    name = re.split(r"[/\\]", unquote(path))[-1]
    name = "".join(one for one in name if one.isprintable())
    return "" if name in {".", ".."} else name
