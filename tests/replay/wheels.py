"""Make small wheels, so that environments can be built without a network."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path


def make_wheel(
    folder: Path,
    name: str,
    version: str,
    *,
    text: str = "",
    tag: str = "py3-none-any",
    requires: tuple[str, ...] = (),
    requires_python: str = "",
) -> Path:
    """Write a wheel with one module into `folder` and return its path.

    Args:
        folder: Is made if missing.
        name, version, requires, requires_python: For its metadata.
        text: Source of its only module.
        tag: Python, ABI and platform of its file name.
    """
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    if requires_python:
        metadata += f"Requires-Python: {requires_python}\n"
    metadata += "".join(f"Requires-Dist: {one}\n" for one in requires)
    files = {
        f"{module}.py": text,
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{module}-run = {module}:run\n",
    }
    record = "".join(f"{path},{_digest(body)}\n" for path, body in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{module}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, body in files.items():
            archive.writestr(zipfile.ZipInfo(path), body)
    return wheel


def _digest(text: str) -> str:
    raw = hashlib.sha256(text.encode()).digest()
    encoded = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    return f"sha256={encoded},{len(text.encode())}"


def sha256(path: Path) -> str:
    """Return the digest of a wheel, as installers state it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
