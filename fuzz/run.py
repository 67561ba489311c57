"""Fuzz one target with coverage as the guide: ``python -m fuzz.run TARGET SECONDS``.

Needs ``atheris`` (not a dependency of the project). Inputs that reached new code are
kept in ``build/fuzz/TARGET/``, findings in ``build/fuzz/findings/TARGET-…``. Further
words are options of libFuzzer. ``fuzz/README.md`` says how to go on from a finding.
"""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from pathlib import Path

import atheris

WATCHED = ["reprobundle", "tomllib", "packaging"]
with atheris.instrument_imports(include=WATCHED):
    from fuzz.targets import TARGET_FUNCTIONS, TREES
from fuzz.mutations import cross_documents, mutate_document
from fuzz.seeds import seeds

BUILD = Path(__file__).parent.parent / "build" / "fuzz"
COMMITTED = Path(__file__).parent / "corpus"
LONGEST_BYTES = 200_000


def main() -> None:
    """Fuzz the target named on the command line."""
    target, seconds, *options = sys.argv[1:]
    _import_all()
    folder, findings = BUILD / target, BUILD / "findings"
    for one in (folder, findings):
        one.mkdir(parents=True, exist_ok=True)
    start = BUILD / f"{target}-seeds"
    start.mkdir(exist_ok=True)
    for data in seeds(target):
        name = hashlib.sha256(data).hexdigest()[:16]
        (start / name).write_bytes(data)
    folders = [folder, start]
    if (COMMITTED / target).is_dir():
        folders.append(COMMITTED / target)
    trees = target in TREES
    warnings.simplefilter("ignore")
    atheris.Setup(
        [
            sys.argv[0],
            *map(str, folders),
            f"-max_total_time={seconds}",
            f"-max_len={LONGEST_BYTES}",
            f"-artifact_prefix={findings}/{target}-",
            "-timeout=30",
            "-rss_limit_mb=2048",
            "-print_final_stats=1",
            *options,
        ],
        TARGET_FUNCTIONS[target],
        custom_mutator=_mutated if trees else None,
        custom_crossover=_crossed if trees else None,
    )
    atheris.Fuzz()


def _import_all() -> None:
    """Import what verbs import late, so that its code is watched too."""
    import pkgutil
    from importlib import import_module

    with atheris.instrument_imports(include=WATCHED):
        for package in ("cli", "format", "outputs", "report", "sign", "verify", "run"):
            root = f"reprobundle.{package}"
            path = import_module(root).__path__
            for found in pkgutil.walk_packages(path, f"{root}."):
                import_module(found.name)


def _mutated(data: bytes, most: int, seed: int) -> bytes:
    return mutate_document(data, most, seed, atheris.Mutate)


def _crossed(one: bytes, other: bytes, most: int, seed: int) -> bytes:
    return cross_documents(one, other, most, seed)


if __name__ == "__main__":
    os.environ["UV_OFFLINE"] = "1"
    main()
