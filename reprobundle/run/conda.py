"""Environments that conda made: recorded as an explicit list, made again from it.

conda, mamba and micromamba all take such a list and check the digest of every archive;
it holds for one kind of machine. Source: conda documentation, "Identical conda
environments"; the metadata lie in ``conda-meta/*.json`` of the environment.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from reprobundle.run.package_origin import clean_address, is_private

CONDA_MEMBER = "lock/conda-explicit.txt"
TOOLS = ("micromamba", "mamba", "conda")
HEAD = (
    "# made again by: conda create --name NAME --file conda-explicit.txt\n@EXPLICIT\n"
)


def explicit_list(prefix: Path) -> bytes | None:
    """Return the explicit list of the environment at `prefix`; None if conda made none.

    An archive that no stranger can fetch stands as a comment.
    """
    lines = sorted(_lines(prefix / "conda-meta"))
    return (HEAD + "".join(f"{line}\n" for line in lines)).encode() if lines else None


def _lines(folder: Path) -> Iterator[str]:
    for path in folder.glob("*.json"):
        try:
            told = json.loads(path.read_bytes())
            address = clean_address(str(told["url"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue
        digest = str(told.get("md5", ""))
        public = urlsplit(address).scheme == "https" and not is_private(address)
        line = f"{address}#{digest}" if digest else address
        yield line if public else f"# from a private place: {line.rpartition('/')[2]}"


def find_conda() -> Path | None:
    """Return a program that makes conda environments."""
    found = next(filter(None, map(shutil.which, TOOLS)), None)
    return Path(found) if found else None


def package_count(explicit: bytes) -> int:
    """Return how many archives an explicit list names."""
    lines = explicit.decode(errors="replace").splitlines()
    return sum(line.startswith("http") for line in lines)
