"""A bundle as an RO-Crate: unpacked, with what was run told in JSON-LD.

The graph is built with `rocrate`; contents go past it, so that a bundle of any size is
written once and every byte is compared with its digest.

Sources: RO-Crate 1.3, https://w3id.org/ro/crate/1.3; Process Run Crate 0.6,
https://w3id.org/ro/wfrun/process/0.6.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from reprobundle.errors import EnvironmentUnusableError
from reprobundle.export.crate_graph import describe
from reprobundle.export.tree import REPORT_NAME, Item, items
from reprobundle.export.verified import Verified
from reprobundle.export.writing import new_tree, write_items, write_text
from reprobundle.report.json import report_json

if TYPE_CHECKING:
    from rocrate.rocrate import ROCrate

METADATA_NAME = "ro-crate-metadata.json"
_OLDEST = (1, 3)
_METADATA_BYTES = 1 << 20


def write_ro_crate(
    what: Verified,
    target: Path,
    *,
    with_bundle: bool = False,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Write a new RO-Crate, a folder or a ZIP file.

    Args:
        what: The verified bundle.
        target: The folder, or the file if it ends in ``.zip``.
        with_bundle: Put the bundle file into it too.
        progress: Called with the number of bytes just written.

    Raises:
        EnvironmentUnusableError: `rocrate` is missing or too old, or there is no room.
        BadCallError: `target` exists.
        DigestError: Content is not what was sealed.
    """
    crate = _new_crate()
    content = [*items(what, with_bundle=with_bundle), _report(what)]
    needed = sum(item.size_bytes for item in content) + _METADATA_BYTES
    with new_tree(target, needed_bytes=needed) as sink:
        written = list(write_items(sink, content, progress))
        describe(crate, what, content, written)
        text = b"".join(piece for _, piece in crate.metadata.stream())
        write_text(sink, METADATA_NAME, text + b"\n")


def _report(what: Verified) -> Item:
    data = report_json(what.report)
    return Item(REPORT_NAME, len(data), "report", lambda: io.BytesIO(data))


def _new_crate() -> ROCrate:
    try:
        from rocrate.rocrate import ROCrate
    except ImportError as error:
        raise EnvironmentUnusableError(
            "the Python package rocrate is not installed",
            advice="pip install 'reprobundle[export]'",
        ) from error
    crate = ROCrate()
    if tuple(int(part) for part in crate.version.split(".")[:2]) < _OLDEST:
        raise EnvironmentUnusableError(
            f"the installed rocrate writes RO-Crate {crate.version}, 1.3 is needed",
            advice="pip install --upgrade 'reprobundle[export]'",
        )
    return crate
