import pytest

from reprobundle.outputs.summary import summarise


@pytest.fixture
def summary(tmp_path):
    """Return the summary of some bytes under an output name."""

    def of(name, data, tensors=None):
        path = tmp_path / "content"
        path.write_bytes(data)
        beside = None
        if tensors is not None:
            beside = tmp_path / "tensors"
            beside.write_bytes(tensors)
        return summarise(name, path, tensors=beside)

    return of
