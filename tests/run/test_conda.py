"""Environments that conda made, from recorded metadata."""

from __future__ import annotations

import json

from reprobundle.run.conda import explicit_list, package_count

PUBLIC = "https://conda.example.org/main/linux-64/numpy-2.1-py311_0.conda"


def meta(prefix, **records):
    folder = prefix / "conda-meta"
    folder.mkdir(exist_ok=True)
    for name, told in records.items():
        (folder / f"{name}.json").write_text(json.dumps(told))
    return prefix


def test_an_environment_without_conda_has_no_list(tmp_path):
    assert explicit_list(tmp_path) is None


def test_every_archive_is_listed_with_its_digest(tmp_path):
    meta(tmp_path, numpy={"url": PUBLIC, "md5": "a" * 32}, odd={"name": "no address"})
    listed = explicit_list(tmp_path)
    assert listed is not None
    assert listed.decode().splitlines()[1:] == ["@EXPLICIT", f"{PUBLIC}#{'a' * 32}"]
    assert package_count(listed) == 1


def test_no_credential_and_no_private_place_is_listed(tmp_path):
    secret = PUBLIC.replace("https://", "https://me:word@")
    token = "https://conda.internal/t/abc/linux-64/own-1.0-0.conda"
    local = "file:///home/me/own-2.0-0.conda"
    meta(
        tmp_path,
        numpy={"url": secret, "md5": "a" * 32},
        own={"url": token, "md5": "b" * 32},
        local={"url": local, "md5": "c" * 32},
    )
    listed = (explicit_list(tmp_path) or b"").decode()
    assert f"{PUBLIC}#{'a' * 32}" in listed
    for private in ("word", "/t/abc", "internal", "/home/me"):
        assert private not in listed
    assert "# from a private place: own-1.0-0.conda" in listed
    assert package_count(listed.encode()) == 1
