"""The wheels of this package and of all it needs, for the other machine.

What is installed here and not bound to this machine is packed into a wheel again from
its own files; the rest is fetched for the other machine in the very version that is
installed here. So both sides judge with the same code.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import reprobundle
from reprobundle.errors import EnvironmentUnusableError, MissingPackageError
from reprobundle.format.atomic import replacing
from reprobundle.run.package_origin import normalised
from reprobundle.run.targets import Target

if TYPE_CHECKING:
    from packaging.requirements import Requirement

OURS = "reprobundle"
# What an installer writes beside the files of a wheel.
LEFT_OUT = ("INSTALLER", "REQUESTED", "direct_url.json")
_WHEEL = "Wheel-Version: 1.0\nGenerator: reprobundle\nRoot-Is-Purelib: {pure}\n"


def carried_wheels(
    target: Target,
    folder: Path,
    *,
    given: Path | None,
    say: Callable[[str], None],
) -> list[Path]:
    """Return wheels in `folder` that this package runs from on `target`.

    Args:
        target: The other machine with its Python.
        folder: Where wheels are made and fetched to; kept for the next time.
        given: A folder of wheels that are taken first.
        say: Told each step as one line.

    Raises:
        MissingPackageError: A package has no wheel for `target` that can be had.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = [own_wheel(folder)]
    missing: list[str] = []
    for name in needed(target):
        wheel = _given(name, target, given) or _installed(name, target, folder)
        if wheel is None:
            missing.append(name)
        else:
            found.append(wheel)
    if missing:
        found += _fetched(missing, target, folder, say)
    return found


def needed(target: Target) -> list[str]:
    """Return the names of all packages that this one needs on `target`."""
    waiting, seen = [OURS], {OURS}
    while waiting:
        for one in _requirements(waiting.pop(), target):
            name = normalised(one.name)
            if name not in seen:
                seen.add(name)
                waiting.append(name)
    return sorted(seen - {OURS})


def _requirements(name: str, target: Target) -> Iterator[Requirement]:
    from packaging.requirements import Requirement

    try:
        lines = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        # Needed there and not here: what it needs itself is not known here.
        return
    environment = {**target.environment, "extra": ""}
    for line in lines:
        one = Requirement(line)
        if one.marker is None or one.marker.evaluate(environment):
            yield one


def own_wheel(folder: Path) -> Path:
    """Write this package as a wheel, from the files it runs from here."""
    top = Path(reprobundle.__file__).parent
    files = {
        f"{OURS}/{path.relative_to(top).as_posix()}": path
        for path in sorted(top.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    schemas = top.parent / "schema"
    if schemas.is_dir() and not (top / "_schema").exists():
        files |= {f"{OURS}/_schema/{one.name}": one for one in schemas.iterdir()}
    info = f"{OURS}-{reprobundle.__version__}.dist-info"
    found = metadata.distribution(OURS)
    texts = {
        f"{info}/{name}": (found.read_text(name) or "").encode()
        for name in ("METADATA", "entry_points.txt")
    }
    contents = {name: path.read_bytes() for name, path in files.items()} | texts
    name = f"{OURS}-{reprobundle.__version__}-py3-none-any.whl"
    return _write(folder / name, info, contents, ["py3-none-any"], executables=set())


def _write(
    target: Path,
    info: str,
    contents: dict[str, bytes],
    tags: list[str],
    *,
    executables: set[str],
) -> Path:
    """Write a wheel (binary distribution format, PyPA), the same bytes each time."""
    pure = str(all(tag.endswith("-any") for tag in tags)).lower()
    head = _WHEEL.format(pure=pure) + "".join(f"Tag: {tag}\n" for tag in tags)
    contents = {**contents, f"{info}/WHEEL": head.encode()}
    rows = io.StringIO()
    table = csv.writer(rows, lineterminator="\n")
    for name, body in sorted(contents.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=")
        table.writerow((name, f"sha256={digest.decode()}", len(body)))
    table.writerow((f"{info}/RECORD", "", ""))
    contents[f"{info}/RECORD"] = rows.getvalue().encode()
    with (
        replacing(target) as descriptor,
        os.fdopen(descriptor, "wb", closefd=False) as stream,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as wheel,
    ):
        for name, body in contents.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if name in executables else 0o644) << 16
            wheel.writestr(entry, body)
    return target


def _given(name: str, target: Target, folder: Path | None) -> Path | None:
    """Return the best wheel of `name` in a folder that the user gave."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    order = {tag: number for number, tag in enumerate(target.tags)}
    fit: list[tuple[int, Path]] = []
    for path in sorted(folder.glob("*.whl")) if folder else ():
        try:
            found, _, _, tags = parse_wheel_filename(path.name)
        except InvalidWheelFilename:
            continue
        ranks = [order[tag] for tag in tags if tag in order]
        if found == name and ranks:
            fit.append((min(ranks), path))
    return min(fit)[1] if fit else None


def _installed(name: str, target: Target, folder: Path) -> Path | None:
    """Return what is installed here as a wheel again, if it runs on `target`.

    None where it is bound to another machine, was changed, or does not say what its
    files are.
    """
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    head = found.read_text("WHEEL") or ""
    tags = re.findall(r"^Tag: *(\S+) *$", head, re.MULTILINE)
    if not set(tags) & {str(tag) for tag in target.tags}:
        return None
    info = next((one for one in found.files or () if one.name == "METADATA"), None)
    if info is None:
        return None
    stem = str(info).partition(".dist-info/")[0]
    path = folder / f"{stem}-{tags[0]}.whl"
    if path.exists() and path.stat().st_mtime > Path(info.locate()).stat().st_mtime:
        return path
    contents = _contents(found, stem)
    if contents is None:
        return None
    scripts = {one for one in contents if ".data/scripts/" in one}
    return _write(path, f"{stem}.dist-info", contents, tags, executables=scripts)


def _contents(found: metadata.Distribution, stem: str) -> dict[str, bytes] | None:
    """Return the files of an installed wheel under the names they had in it.

    Scripts that an installer made from entry points are left out: one makes them again.
    """
    listed = found.files or ()
    made = {point.name for point in found.entry_points}
    contents: dict[str, bytes] = {}
    for one in listed:
        name = PurePosixPath(str(one))
        if one.hash is None or name.name in (
            "INSTALLER",
            "REQUESTED",
            "direct_url.json",
        ):
            continue
        if ".." in name.parts:
            if name.parent.name != "bin" or name.name in made:
                continue
            name = PurePosixPath(f"{stem}.data/scripts/{name.name}")
        try:
            body = one.read_binary()
        except OSError:
            return None
        digest = base64.urlsafe_b64encode(hashlib.new(one.hash.mode, body).digest())
        if digest.rstrip(b"=").decode() != one.hash.value:
            return None
        contents[str(name)] = body
    contents.pop(f"{stem}.dist-info/WHEEL", None)
    return contents


def _fetched(
    names: list[str], target: Target, folder: Path, say: Callable[[str], None]
) -> list[Path]:
    """Fetch the installed version of each package for `target`."""
    from reprobundle.replay.wheel_folder import download

    versions = {name: _version(name) for name in names}
    kept = folder / "fetched"
    kept.mkdir(exist_ok=True)
    lines = [f"{n}=={v}" if v else n for n, v in versions.items()]
    say(f"fetching {', '.join(lines)} for {target.name}, Python {target.python}")
    try:
        download(lines, target, kept)
    except MissingPackageError as error:
        raise MissingPackageError(
            f"{error.message}, for {target.name} with Python {target.python}",
            package=error.package,
            version=error.version,
            advice="put its wheel into a folder and name that: --tool-wheels DIRECTORY",
        ) from error
    found = [_given(name, target, kept) for name in names]
    for name, wheel in zip(names, found, strict=True):
        if wheel is None:
            raise EnvironmentUnusableError(
                f"{name} did not arrive as a wheel for {target.name}",
                advice="name a folder that has it: --tool-wheels DIRECTORY",
            )
    return [wheel for wheel in found if wheel is not None]


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
