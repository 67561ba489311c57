"""Where an installed package came from, told without credentials or private paths."""

from __future__ import annotations

import ipaddress
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from reprobundle.format.lock import Origin

PROJECT = "{project}"
PRIVATE_HOST = "private-host"
PRIVATE_SUFFIXES = (".local", ".internal", ".intranet", ".lan", ".corp", ".home")
# The only parts of an address's fragment that say what to install.
KEPT_FRAGMENT = re.compile(r"(?:^|&)((?:sha256|subdirectory)=[^&\s]+)")


@dataclass(frozen=True)
class Places:
    """The folders of this machine that get a name of their own.

    Attributes:
        project: Top folder of the project, written as ``{project}``, or None.
        home: Home folder, written as ``~``.
    """

    project: Path | None
    home: Path


def normalised(name: str) -> str:
    """Return a distribution name in lower case with single ``-`` between words."""
    return re.sub(r"[-_.]+", "-", name).lower()


def origin(
    direct_url: dict[str, Any] | None, *, editable: bool, source: str, places: Places
) -> tuple[Origin, str, str]:
    """Return the origin, its detail and the archive's SHA-256 (empty if unknown).

    Args:
        direct_url: What the installer wrote when no index was asked, else None.
        editable: Whether the package is imported from its source folder.
        source: That folder for an old editable install without `direct_url`.
        places: Folders to rewrite.
    """
    folder = source_folder(direct_url, source)
    if editable and folder is not None:
        return "editable", _folder_detail(folder, places, with_commit=True), ""
    if direct_url is None:
        return "index", "", ""
    if "vcs_info" in direct_url:
        return "vcs", _vcs_detail(direct_url, places), ""
    sha256 = _sha256(direct_url.get("archive_info", {}))
    if folder is None:
        return "url", clean_address(str(direct_url["url"])), sha256
    if "dir_info" in direct_url:
        return "local", _folder_detail(folder, places, with_commit=False), sha256
    return "local", quote(folder.name, safe="+"), sha256


def source_folder(direct_url: dict[str, Any] | None, source: str) -> Path | None:
    """Return the file or folder of this machine a package was installed from."""
    address = urlsplit(str((direct_url or {}).get("url", "")))
    if address.scheme == "file":
        folder = Path(unquote(address.path))
        subdirectory = (direct_url or {}).get("subdirectory", "")
        return folder / str(subdirectory) if subdirectory else folder
    return Path(source) if source else None


def clean_address(address: str) -> str:
    """Return `address` without user, password, query and names of private hosts.

    A query may hold a signature that opens the archive to anyone; the fragment keeps
    only the digest and the folder inside the archive.
    """
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return f"https://{PRIVATE_HOST}/"
    if parts.scheme.removeprefix("git+") == "file" or not host:
        return f"{parts.scheme or 'file'}://{PRIVATE_HOST}/{Path(parts.path).name}"
    if _is_private(host):
        host, port = PRIVATE_HOST, None
    user = "git@" if "ssh" in parts.scheme and parts.username == "git" else ""
    where = f"{user}{host}" if port is None else f"{user}{host}:{port}"
    fragment = "&".join(KEPT_FRAGMENT.findall(parts.fragment))
    path = quote(unquote(parts.path), safe="/+@:~")
    return urlunsplit((parts.scheme, where, path, "", fragment))


def clean_requirement(requirement: str) -> str:
    """Return a requirement whose address, if it has one, is a clean one."""
    name, separator, rest = requirement.partition(" @ ")
    if not separator:
        return requirement
    address, semicolon, marker = rest.partition(" ;")
    return f"{name} @ {clean_address(address.strip())}{semicolon}{marker}"


def is_private(address: str) -> bool:
    """Tell whether a clean address leads to a place only its owner can reach."""
    return urlsplit(address).hostname == PRIVATE_HOST


def _is_private(host: str) -> bool:
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith(PRIVATE_SUFFIXES)


def _vcs_detail(direct_url: dict[str, Any], places: Places) -> str:
    kind = direct_url["vcs_info"]["vcs"]
    commit = direct_url["vcs_info"].get("commit_id", "")
    subdirectory = direct_url.get("subdirectory", "")
    address = clean_address(str(direct_url["url"]))
    suffix = f"#subdirectory={quote(subdirectory)}" if subdirectory else ""
    return (
        f"{kind}+{urlunsplit(urlsplit(address)._replace(fragment=''))}@{commit}{suffix}"
    )


def _sha256(archive: dict[str, Any]) -> str:
    """Return the digest, which older installers wrote as ``sha256=<digits>``."""
    kept = archive.get("hashes", {}).get("sha256")
    algorithm, _, digits = str(archive.get("hash", "")).partition("=")
    return str(kept or (digits if algorithm == "sha256" else ""))


def _folder_detail(folder: Path, places: Places, *, with_commit: bool) -> str:
    resolved = folder.resolve()
    if places.project is not None and resolved.is_relative_to(places.project.resolve()):
        inside = resolved.relative_to(places.project.resolve()).as_posix()
        return quote(f"{PROJECT}/{inside}" if inside != "." else PROJECT, safe="{}/")
    shown = _without_home(resolved, places.home)
    commit = _commit(resolved) if with_commit else ""
    return quote(f"{shown}@{commit}" if commit else shown, safe="~/@+")


def _without_home(folder: Path, home: Path) -> str:
    """Write a folder below the home as ``~/…`` and any other by its name alone."""
    if folder.is_relative_to(home.resolve()):
        return f"~/{folder.relative_to(home.resolve()).as_posix()}"
    return folder.name


def _commit(folder: Path) -> str:
    """Return the commit checked out in `folder`, with ``+changed`` if files differ."""
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return ""
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".")
    return f"{commit}+changed" if changed else commit


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - the user's own git
            capture_output=True,
            check=False,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else ""
