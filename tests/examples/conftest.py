"""Runs of the examples that several tests look at."""

from pathlib import Path

import pytest

from tests.examples.example import train_digits


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The outputs of the digits example as configured, on the CPU."""
    return train_digits(tmp_path_factory.mktemp("digits") / "out")


@pytest.fixture(scope="session")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The outputs of two epochs of it, with a resume after the first."""
    return train_digits(tmp_path_factory.mktemp("short") / "out", "--epochs", "2")
