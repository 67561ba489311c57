"""Rebuild columns of the table of MPS operators from torch wheels.

    python tools/mps_tables.py TORCH… [--write]

TORCH is a torch wheel of any system, or a folder that holds an unpacked or installed
one (``site-packages``). The column of its version is made anew from the
``native_functions.yaml`` in it (``torchgen/packaged/ATen/native``), and what differs
from the table that the package ships is printed; ``--write`` puts it into the table.

``MPS`` in an operator's own ``dispatch``, or in that of its ``structured_delegate``:
native; no ``dispatch``, or ``CompositeImplicitAutograd``: composite implicit;
``CompositeExplicitAutograd`` (also ``NonFunctional``): composite explicit; otherwise
missing. What ``autogen`` names is left out: nobody calls it by hand. Two things the
file does not say, and stand here: the operators that MPSFallback.mm (``aten/src/ATen/
mps``) registers to run on the CPU, and those that torch's Python registers at import;
both were read out of the macOS arm64 wheels 2.9 to 2.15.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

TARGET = Path(__file__).parents[1] / "reprobundle/verify/tables/mps_operators.json"
YAML = "torchgen/packaged/ATen/native/native_functions.yaml"
VERSION = "torch/version.py"
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
_SVD = ("linalg_svd", "linalg_svd.U")
_GROUP_NORM = ("native_group_norm", "native_group_norm_backward")
# Name → first and last version in which it is registered by hand, both included.
ALWAYS = {
    "embedding_renorm_": ((2, 9), (2, 15)),
    **dict.fromkeys(_SVD, ((2, 8), (2, 13))),
}
FROM_PYTHON = {
    **dict.fromkeys(_GROUP_NORM, ((2, 3), (2, 12))),
    "linalg_lu_solve.out": ((2, 10), (2, 13)),
}
KNOWN = ((2, 9), (2, 15))
_EXPLICIT = {
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
}
Version = tuple[int, int]


class Function(NamedTuple):
    """One entry of native_functions.yaml.

    Attributes:
        name: With overload.
        fields: Its other keys, as text.
        dispatch: Keys of its dispatch table.
    """

    name: str
    fields: dict[str, str]
    dispatch: set[str]


class UnreadableTorchError(Exception):
    """What was named holds no torch that can be read."""


def functions(text: str) -> dict[str, Function]:
    """Return the entries of a native_functions.yaml by name.

    The file is read line by line, for torch does not ship a YAML parser. The form it
    relies on: an entry begins with ``- func:``, and what is indented deeper than
    ``dispatch:`` belongs to it.
    """
    found: dict[str, Function] = {}
    entry: Function | None = None
    inside = -1
    for line in text.splitlines():
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        if match := re.match(r"- func:\s*([^\s(]+)", line):
            entry = found[match[1]] = Function(match[1], {}, set())
            inside = -1
            continue
        if entry is None:
            continue
        indent = len(line) - len(line.lstrip())
        key, _, value = bare.partition(":")
        value = re.sub(r"\s+#.*", "", value).strip()
        if 0 <= inside < indent:
            entry.dispatch.update(part.strip() for part in key.split(","))
        elif key == "dispatch":
            inside = indent if not value else -1
            entry.fields["dispatch"] = value
            entry.dispatch.update(re.findall(r"(\w+)\s*:", value))
        else:
            inside = -1
            entry.fields[key] = value
    return found


def column(text: str, version: Version) -> dict[str, str]:
    """Return operator → letter for one version.

    Args:
        text: Its native_functions.yaml.
        version: Such as ``(2, 13)``.
    """
    known = functions(text)
    return {name: _letter(one, known, version) for name, one in known.items()}


def _letter(one: Function, known: Mapping[str, Function], version: Version) -> str:
    delegate = known.get(one.fields.get("structured_delegate", ""))
    if _holds(ALWAYS, one.name, version):
        return LETTERS["cpu_fallback_always"]
    native = "MPS" in one.dispatch or (delegate and "MPS" in delegate.dispatch)
    if native or _holds(FROM_PYTHON, one.name, version):
        return LETTERS["native"]
    plain = "dispatch" not in one.fields and delegate is None
    if plain or "CompositeImplicitAutograd" in one.dispatch:
        return LETTERS["composite_implicit"]
    if _EXPLICIT & one.dispatch:
        return LETTERS["composite_explicit"]
    return LETTERS["missing"]


def _holds(
    table: Mapping[str, tuple[Version, Version]], name: str, version: Version
) -> bool:
    first, last = table.get(name, ((9, 9), (0, 0)))
    return first <= version <= last


def read_torch(place: Path) -> tuple[Version, str]:
    """Return version and native_functions.yaml of a wheel or folder.

    Raises:
        UnreadableTorchError: It holds no torch.
    """
    try:
        if place.is_dir():
            texts = [(place / name).read_text() for name in (VERSION, YAML)]
        else:
            with zipfile.ZipFile(place) as wheel:
                texts = [wheel.read(name).decode() for name in (VERSION, YAML)]
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        message = f"{place} holds no torch with {YAML}: {error}"
        raise UnreadableTorchError(message) from error
    match = re.search(r"__version__ = ['\"](\d+)\.(\d+)", texts[0])
    if match is None:
        message = f"{place}: {VERSION} names no version"
        raise UnreadableTorchError(message)
    return (int(match[1]), int(match[2])), texts[1]


def columns(table: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return version → operator → letter of a shipped table."""
    return {
        version: {
            name: letters[index]
            for letters, names in table["operators"].items()
            for name in names.split()
            if letters[index] != "."
        }
        for index, version in enumerate(table["versions"])
    }


def compact(found: Mapping[str, Mapping[str, str]]) -> dict[str, object]:
    """Return the table as it is shipped: operators by their letters in each version."""
    versions = sorted(found, key=lambda one: tuple(map(int, one.split("."))))
    groups: dict[str, list[str]] = {}
    for name in sorted({name for letters in found.values() for name in letters}):
        letters = "".join(found[version].get(name, ".") for version in versions)
        groups.setdefault(letters, []).append(name)
    return {
        "provenance": PROVENANCE,
        "versions": versions,
        "letters": {letter: kind for kind, letter in LETTERS.items()},
        "detours": DETOURS,
        "operators": {letters: " ".join(names) for letters, names in groups.items()},
    }


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """Yield one line for each operator that stands otherwise."""
    for name in sorted({*old, *new}):
        before, after = old.get(name, "absent"), new.get(name, "absent")
        if before != after:
            yield f"  {name}: {before} in the table, {after} in this torch"


def main(arguments: list[str] | None = None) -> int:
    """Compare or rebuild; return 1 if something differs and was not written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("torch", type=Path, nargs="+")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args(arguments)
    found = columns(json.loads(TARGET.read_text()))
    told = 0
    for place in given.torch:
        try:
            version, text = read_torch(place)
        except UnreadableTorchError as error:
            sys.stderr.write(f"{error}\n")
            return 2
        if not KNOWN[0] <= version <= KNOWN[1]:
            sys.stderr.write(
                f"{place}: what torch {version[0]}.{version[1]} registers by hand is "
                "not known; read MPSFallback.mm of it and extend ALWAYS\n"
            )
            return 2
        name = f"{version[0]}.{version[1]}"
        new = column(text, version)
        lines = list(differences(found.get(name, {}), new))
        told += len(lines)
        sys.stdout.write(f"{name}: {len(new)} operators, {len(lines)} differ\n")
        sys.stdout.writelines(f"{line}\n" for line in lines)
        found[name] = new
    if given.write:
        TARGET.write_text(json.dumps(compact(found), indent=1) + "\n")
        return 0
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
