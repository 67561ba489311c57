"""Make folders of installed packages, as an installer leaves them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def add_distribution(
    site: Path,
    name: str,
    version: str,
    *,
    requires: tuple[str, ...] = (),
    direct_url: Mapping[str, Any] | None = None,
    record: str | None = "",
    installer: str = "pip",
    files: Mapping[str, str] | None = None,
) -> Path:
    """Add a distribution to `site` and return its metadata folder.

    Args:
        site: A folder for ``sys.path``.
        name, version, requires: For its metadata.
        direct_url: Content of ``direct_url.json``, if any.
        record: More lines for its RECORD; None for no RECORD at all.
        installer: Content of INSTALLER.
        files: More files by their path below `site`; they get a line in the RECORD.
    """
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"]
    lines += [f"Requires-Dist: {one}\n" for one in requires]
    (folder / "METADATA").write_text("".join(lines))
    (folder / "INSTALLER").write_text(f"{installer}\n")
    if direct_url is not None:
        (folder / "direct_url.json").write_text(json.dumps(direct_url))
    for path, text in (files or {}).items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
        record = f"{record}{path},,{len(text)}\n"
    if record is not None:
        (folder / "RECORD").write_text(f"{folder.name}/METADATA,sha256=m,100\n{record}")
    return folder
