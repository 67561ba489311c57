"""Which member names are safe on every system (spec.md, "Names").

A name is a relative path with ``/`` between its components. It must mean the same
file on Linux, macOS and Windows, and must not leave the folder it is unpacked into.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from reprobundle.errors import LimitError, UnsafeNameError
from reprobundle.format import limits

# Microsoft, "Naming Files, Paths, and Namespaces": reserved with any extension, and
# the superscript digits count as digits.
_DEVICE = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])\s*(\..*)?",
    re.IGNORECASE | re.DOTALL,
)
# The common last component, decided at once: no device has a fifth character before
# its extension, but for two that hold a dollar sign.
_PLAIN = re.compile(r"[A-Za-z0-9_-]{5,100}(\.[A-Za-z0-9_-]{1,50})?")
_PLAIN_NAME_BYTES = 500
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def check_name(name: str) -> None:
    """Refuse `name` unless it is safe to create on every system.

    Raises:
        UnsafeNameError: It is absolute, leaves its folder, is too long, or holds a
            character or component that some system reads otherwise.

    Source: spec.md, "Names".
    """
    if not name:
        raise UnsafeNameError(name, "it is empty", rule="R-5.1")
    _check_length(name)
    if name.startswith("/"):
        raise UnsafeNameError(name, "it is absolute", rule="R-5.2")
    if "\\" in name or ":" in name:
        bad = "\\" if "\\" in name else ":"
        raise UnsafeNameError(
            name, f"{bad!r} separates or names drives elsewhere", rule="R-5.3"
        )
    _check_characters(name)
    if name.endswith("/") and len(name) > 1:
        raise UnsafeNameError(
            name,
            "an entry for a folder, which no bundle has",
            rule="R-5.2",
            advice="another program zipped it again; use the original file",
        )
    for component in name.split("/"):
        _check_component(name, component)


def check_names(names: Iterable[str]) -> None:
    """Refuse a set of names that is unsafe or that another system would merge.

    Args:
        names: All names that are to lie in one folder.

    Raises:
        UnsafeNameError: A name is unsafe, occurs twice, differs from another only by
            case or Unicode form, or is both a file and a folder.
        LimitError: They lie in more folders than are allowed.
    """
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    checked: set[str] = set()
    for name in names:
        folder, _, last = name.rpartition("/")
        # Most names differ from a checked one by a plain last component alone.
        if not (
            folder in checked
            and _PLAIN.fullmatch(last)
            and len(folder) < _PLAIN_NAME_BYTES
        ):
            check_name(name)
            _add_folders(name, folders)
            if folder.isascii() and folder.count("/") < limits.NAME_LEVELS - 1:
                checked.add(folder)
        key = twin_key(name)
        if key in files:
            other = files[key]
            how = "occurs twice" if other == name else f"is a twin of {other!r}"
            raise UnsafeNameError(name, f"it {how}", rule="R-5.8")
        files[key] = name
    for key in files.keys() & folders.keys():
        raise UnsafeNameError(
            files[key], f"{folders[key]!r} is a folder too", rule="R-5.9"
        )


def twin_key(name: str) -> str:
    """Return what a file system that ignores case and Unicode form compares.

    Source: Unicode 15.1, section 3.13, D145 (canonical caseless match).
    """
    if name.isascii():
        return name.lower()
    folded = unicodedata.normalize("NFD", name).casefold()
    return unicodedata.normalize("NFD", folded)


def is_name_length_safe(name: str) -> bool:
    """Return whether `name` keeps to the limits of length and depth."""
    if len(name) <= limits.COMPONENT_BYTES and name.isascii():
        return name.count("/") < limits.NAME_LEVELS
    try:
        _check_length(name)
    except UnsafeNameError:
        return False
    return all(
        len(component.encode()) <= limits.COMPONENT_BYTES
        for component in name.split("/")
    )


def _add_folders(name: str, folders: dict[str, str]) -> None:
    end = name.rfind("/")
    while end > 0:
        folder = name[:end]
        key = twin_key(folder)
        known = folders.get(key)
        if known == folder:
            return  # and so are all folders above it
        if known is not None:
            raise UnsafeNameError(
                name, f"its folder is a twin of {known!r}", rule="R-5.8"
            )
        folders[key] = folder
        if len(folders) > limits.FOLDER_COUNT:
            message = f"more than {limits.FOLDER_COUNT:,} folders"
            raise LimitError(message, rule="R-5.7")
        end = name.rfind("/", 0, end)


def _check_length(name: str) -> None:
    size_bytes = len(name.encode("utf-8", "surrogatepass"))
    if size_bytes > limits.NAME_BYTES:
        message = f"{size_bytes} bytes, at most {limits.NAME_BYTES} are allowed"
        raise UnsafeNameError(_shortened(name), message, rule="R-5.7")
    levels = name.count("/") + 1
    if levels > limits.NAME_LEVELS:
        message = f"{levels} levels, at most {limits.NAME_LEVELS} are allowed"
        raise UnsafeNameError(_shortened(name), message, rule="R-5.7")


def _check_characters(name: str) -> None:
    if name.isascii():
        if not name.isprintable():
            raise UnsafeNameError(name, "it holds a control character", rule="R-5.4")
        return
    for character in name:
        if unicodedata.category(character) in _INVISIBLE:
            raise UnsafeNameError(
                name,
                f"U+{ord(character):04X} is invisible or turns the text",
                rule="R-5.4",
            )
    if not unicodedata.is_normalized("NFC", name):
        raise UnsafeNameError(name, "it is not in Unicode form NFC", rule="R-5.5")


def _check_component(name: str, component: str) -> None:
    if component in {"", ".", ".."}:
        raise UnsafeNameError(
            name, f"component {component!r} is not allowed", rule="R-5.2"
        )
    if len(component.encode()) > limits.COMPONENT_BYTES:
        message = f"a component exceeds {limits.COMPONENT_BYTES} bytes"
        raise UnsafeNameError(_shortened(name), message, rule="R-5.7")
    if component[-1] in ". ":
        raise UnsafeNameError(
            name, "a component ends in a dot or a space", rule="R-5.6"
        )
    if _DEVICE.fullmatch(component):
        raise UnsafeNameError(
            name, f"{component!r} is a device on Windows", rule="R-5.6"
        )


def _shortened(name: str) -> str:
    return name if len(name) <= 80 else f"{name[:60]}…"
