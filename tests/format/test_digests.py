"""Digests are those of BLAKE3, from bytes, streams and files alike."""

from __future__ import annotations

import io

import pytest

from reprobundle.format import digests
from reprobundle.format.digests import digest_bytes, digest_file, digest_stream

from .conftest import pseudo_random

# From the BLAKE3 paper's test vectors: input byte i is i mod 251.
VECTORS = {
    0: "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
    1: "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
    1024: "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7",
}


@pytest.mark.parametrize("size_bytes", VECTORS)
def test_published_vectors(size_bytes):
    data = bytes(n % 251 for n in range(size_bytes))
    assert digest_bytes(data) == VECTORS[size_bytes]
    assert digest_stream(io.BytesIO(data)) == VECTORS[size_bytes]


@pytest.mark.parametrize("size_bytes", [0, 1, 2_500_000, 9_000_001])
def test_a_file_has_the_digest_of_its_bytes(tmp_path, size_bytes):
    data = pseudo_random(size_bytes)
    path = tmp_path / "x"
    path.write_bytes(data)
    assert digest_file(path) == digest_bytes(data)


def test_a_large_file_is_hashed_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(digests, "PARALLEL_BYTES", 1 << 12)
    path = tmp_path / "x"
    path.write_bytes(pseudo_random(50_001))
    assert digest_file(path) == digest_bytes(pseudo_random(50_001))
