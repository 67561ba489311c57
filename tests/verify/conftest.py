import pytest

from tests.verify.builder import Bench


@pytest.fixture
def bench(tmp_path):
    """A bench whose reference and repeat are sound and equal; not packed yet."""
    return Bench(tmp_path)
