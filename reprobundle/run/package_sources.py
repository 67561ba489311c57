"""Where pip would look for packages on this machine, handed to pip or to uv.

An environment is built without pip's configuration files, since these may also send
an installation elsewhere (``target``, ``user``, ``prefix``). What they say about
indexes, folders and the network is read once and passed on in the installer's
environment variables: addresses may hold credentials, and arguments can be seen by
every user of the machine.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

# Settings that say where packages come from and how to reach it.
SOURCE_SETTINGS = (
    "index-url",
    "extra-index-url",
    "find-links",
    "no-index",
    "trusted-host",
    "cert",
    "client-cert",
    "proxy",
    "timeout",
    "default-timeout",
    "keyring-provider",
)
UV_NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "keyring-provider": "UV_KEYRING_PROVIDER",
}
# The user's own settings of uv that say the same.
UV_KEPT_PREFIXES = (
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_NO_INDEX",
    "UV_OFFLINE",
    "UV_INSECURE_HOST",
    "UV_HTTP",
    "UV_KEYRING",
    "UV_NATIVE_TLS",
    "UV_SYSTEM_CERTS",
)
# Later sections win, as in pip.
SECTIONS = ("global", "install", ":env:")


def pip_settings(*pythons: Path) -> dict[str, str]:
    """Return pip's settings about package sources, by their long names.

    Args:
        pythons: Interpreters to ask; the first one that has pip answers, and without
            any nothing is known and nothing set.
    """
    for python in pythons:
        try:
            done = subprocess.run(
                [str(python), "-m", "pip", "config", "list"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=True,
                timeout=60,
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return parse_settings(done.stdout.decode(errors="replace"))
    return {}


def parse_settings(listing: str) -> dict[str, str]:
    """Return the source settings in the output of ``pip config list``."""
    by_section: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listing.splitlines():
        key, _, quoted = line.partition("=")
        section, _, name = key.rpartition(".")
        if section in by_section and name in SOURCE_SETTINGS:
            by_section[section][name] = str(ast.literal_eval(quoted))
    merged: dict[str, str] = {}
    for section in SECTIONS:
        merged |= by_section[section]
    return {name: value for name, value in merged.items() if value.strip()}


def _plain_environment(temporary: Path) -> dict[str, str]:
    """Return our environment without anything that steers an installation."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_", "UV_", "PYTHON", "REPROBUNDLE_", "CONDA_"))
        and name not in ("VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
    }
    return kept | {
        "PYTHONNOUSERSITE": "1",
        "TMPDIR": str(temporary),
        "NO_COLOR": "1",
        "LC_ALL": "C.UTF-8",
    }


def pip_environment(
    settings: Mapping[str, str], *, cache: Path, temporary: Path
) -> dict[str, str]:
    """Return the whole environment for pip.

    Args:
        settings: From `pip_settings`.
        cache: A cache folder of our own.
        temporary: Where it may build.
    """
    passed = {
        f"PIP_{name.upper().replace('-', '_')}": value
        for name, value in settings.items()
    }
    return {
        **_plain_environment(temporary),
        "PIP_RETRIES": "2",
        **passed,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_CACHE_DIR": str(cache),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PIP_PROGRESS_BAR": "off",
    }


def uv_environment(
    settings: Mapping[str, str], *, cache: Path, temporary: Path
) -> dict[str, str]:
    """Return the whole environment for uv, which does not read pip's settings.

    Variables of uv that the user has set win over pip's.
    """
    passed = {UV_NAMES[name]: settings[name] for name in UV_NAMES if name in settings}
    if "find-links" in settings:
        passed["UV_FIND_LINKS"] = ",".join(settings["find-links"].split())
    if settings.get("no-index", "0").lower() in ("1", "true", "yes", "on"):
        passed["UV_NO_INDEX"] = "1"
    if "proxy" in settings:
        passed["ALL_PROXY"] = settings["proxy"]
    return {
        # uv takes the first index that knows a package and asks no further; pip asks
        # all. A labelled build is often on the second one.
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        **passed,
        **_plain_environment(temporary),
        **{k: v for k, v in os.environ.items() if k.startswith(UV_KEPT_PREFIXES)},
        "UV_CACHE_DIR": str(cache),
        "UV_NO_PROGRESS": "1",
        # A linked file would be shared with every other environment of the cache.
        "UV_LINK_MODE": "copy",
        "UV_PYTHON_DOWNLOADS": "never",
    }


def find_uv() -> Path | None:
    """Return the uv program on the path or beside our own interpreter."""
    beside = Path(sys.executable).with_name("uv")
    found = shutil.which("uv") or (str(beside) if beside.is_file() else None)
    return Path(found) if found else None


def package_cache() -> Path:
    """Return the folder of our own for fetched packages, shared by all environments."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "reprobundle" / "packages"
