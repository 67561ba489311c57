"""Where an operator runs on MPS, by version of torch: the table, and how to read it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Literal, NamedTuple

Placement = Literal["native", "composite", "always-cpu", "missing", "unknown"]
_PLACEMENTS: dict[str, Placement] = {
    "n": "native",
    "i": "composite",
    "e": "composite",
    "a": "always-cpu",
    "m": "missing",
}
ON_CPU = ("always-cpu", "missing")


class OperatorTable(NamedTuple):
    """The operators of one version of torch.

    Attributes:
        version: Such as ``2.13``.
        letters: Operator name without namespace → its letter in the data.
        detours: Operator → when its kernel leaves for the CPU by itself.
    """

    version: str
    letters: Mapping[str, str]
    detours: Mapping[str, str]

    def placement(self, name: str) -> Placement:
        """Return where the operator `name` runs.

        Args:
            name: As a dispatch mode shows it: ``aten.heaviside.default``.

        A functional or in-place operator that torch derives from its ``out`` form calls
        that form; it is missing where that one is missing.
        """
        namespace, _, rest = name.partition(".")
        if namespace != "aten":
            return "unknown"
        base, _, overload = rest.partition(".")
        plain = base if overload in ("", "default") else f"{base}.{overload}"
        letter = self.letters.get(plain, ".")
        if letter == "e" and self._lacks_out(base, overload):
            return "missing"
        return _PLACEMENTS.get(letter, "unknown")

    def _lacks_out(self, base: str, overload: str) -> bool:
        stem = base.removesuffix("_")
        part = "" if overload in ("", "default") else f"{overload}_"
        forms = (f"{stem}.{part}out", f"{stem}.out")
        found = [self.letters[form] for form in forms if form in self.letters]
        return bool(found) and found[0] == "m"

    def missing(self) -> frozenset[str]:
        """Return all operators that have no kernel for MPS."""
        return frozenset(name for name, letter in self.letters.items() if letter == "m")


def base_name(name: str) -> str:
    """Return an operator's name without namespace, overload and in-place mark.

    The witnesses name one operator differently: ``aten::heaviside.out`` in a warning,
    ``aten::heaviside`` in a profile, ``aten.heaviside.default`` in a census.
    """
    bare = name.replace("::", ".").removeprefix("aten.").partition(".")[0]
    return bare if bare.startswith("__") else bare.removesuffix("_")


def table_of(torch_version: str) -> OperatorTable | None:
    """Return the table for a version such as ``2.13.0+cpu``, or None."""
    release = ".".join(torch_version.partition("+")[0].split(".")[:2])
    return _tables().get(release)


def table_versions() -> tuple[str, ...]:
    """Return the versions of torch that there are tables of, oldest first."""
    return tuple(_tables())


@lru_cache(maxsize=1)
def _tables() -> dict[str, OperatorTable]:
    place = resources.files("reprobundle.verify").joinpath("tables/mps_operators.json")
    data = json.loads(place.read_text(encoding="utf-8"))
    tables: dict[str, OperatorTable] = {}
    for index, version in enumerate(data["versions"]):
        letters = {
            name: group[index]
            for group, names in data["operators"].items()
            for name in names.split()
            if group[index] != "."
        }
        tables[version] = OperatorTable(version, letters, data["detours"])
    return tables
