"""Rebuild the table of MPS operators from per-version lists.

    python tools/mps_tables.py LISTS.json

LISTS.json maps a torch version (``2.13``) to five lists of operator names:
``native``, ``composite_implicit``, ``composite_explicit``, ``cpu_fallback_always`` and
``missing``. Such lists follow from the ``native_functions.yaml`` that every wheel of
that version ships (``torchgen/packaged/ATen/native``). ``MPS`` in the operator's own
``dispatch``, or in that of its ``structured_delegate``: native; no ``dispatch``, or
``CompositeImplicitAutograd``: composite implicit; ``CompositeExplicitAutograd`` (also
``NonFunctional``): composite explicit; otherwise missing. The operators that always run
on the CPU are those that ``aten/src/ATen/mps/MPSFallback.mm`` registers by name.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

TARGET = Path(__file__).parents[1] / "reprobundle" / "verify" / "tables"
LETTERS = {
    "native": "n",
    "composite_implicit": "i",
    "composite_explicit": "e",
    "cpu_fallback_always": "a",
    "missing": "m",
}
PROVENANCE = (
    "native_functions.yaml of the torch wheels 2.9.0 to 2.15.0, compared with the "
    "registrations in libtorch_cpu.dylib of the macOS arm64 wheels of the same "
    "versions: every operator listed as native there is registered, and what is "
    "registered besides is listed as always on the CPU. Built by tools/mps_tables.py."
)
# Kernels that leave for the CPU by themselves, from the texts in the same binaries. A
# detour depends on sizes or dtypes, so it is a possibility and not a fallback seen.
DETOURS = {
    "avg_pool2d": "2.9 to 2.15: int64 input with a divisor",
    "nonzero": "2.9: complex input, or macOS 14",
    "linalg_qr": "2.12 and 2.13: more than 512 rows and columns",
    "_linalg_svd": "2.14 and 2.15: too large for threadgroup memory",
    "_linalg_eigh": "2.14 and 2.15: too large for threadgroup memory",
}


def table(lists: dict[str, dict[str, list[str]]]) -> dict[str, object]:
    """Return the compact table: operators by the letters they have in each version."""
    versions = sorted(lists, key=lambda version: tuple(map(int, version.split("."))))
    names = {
        name for kinds in lists.values() for part in kinds.values() for name in part
    }
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        letters = "".join(_letter(lists[version], name) for version in versions)
        groups.setdefault(letters, []).append(name)
    return {
        "provenance": PROVENANCE,
        "versions": versions,
        "letters": {letter: kind for kind, letter in LETTERS.items()},
        "detours": DETOURS,
        "operators": {letters: " ".join(found) for letters, found in groups.items()},
    }


def _letter(kinds: dict[str, list[str]], name: str) -> str:
    found = [letter for kind, letter in LETTERS.items() if name in kinds[kind]]
    return found[-1] if found else "."


def main() -> None:
    """Write the table that the package ships."""
    lists = json.loads(Path(sys.argv[1]).read_text())
    target = TARGET / "mps_operators.json"
    target.write_text(json.dumps(table(lists), indent=1) + "\n")


if __name__ == "__main__":
    main()
