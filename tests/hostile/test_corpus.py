"""What the fuzzer kept goes through its targets without an answer that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.seeds import seeds
from fuzz.targets import TARGET_FUNCTIONS

CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus"
EVERY = 8
"""Of the two large corpora each eighth input is run here; all of them are slow."""


def inputs(target: str) -> list[Path]:
    return sorted((CORPUS / target).iterdir())


def run(target: str, paths: list[Path]) -> None:
    for path in paths:
        TARGET_FUNCTIONS[target](path.read_bytes())


@pytest.mark.parametrize("target", TARGET_FUNCTIONS)
def test_the_corpus_holds(target):
    paths = inputs(target)
    assert paths
    run(target, paths[:: EVERY if target in ("bundle", "container") else 1])


@pytest.mark.slow
@pytest.mark.parametrize("target", ["bundle", "container"])
def test_so_does_the_rest_of_it(target):
    run(target, inputs(target))


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGET_FUNCTIONS)
def test_so_does_every_seed(target):
    for data in seeds(target):
        TARGET_FUNCTIONS[target](data)


def test_a_target_says_no():
    """A target that finds nothing would prove nothing."""
    from unittest import mock

    from fuzz import targets

    data = next(seeds("container"))
    with (
        mock.patch.object(targets, "check_digests", side_effect=KeyError("x")),
        pytest.raises(KeyError),
    ):
        targets.container(data)
    with (
        mock.patch.object(targets, "build_zip", return_value=b""),
        pytest.raises(targets.WrongAnswerError),
    ):
        targets.container(data)
