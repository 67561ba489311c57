"""Write what is installed beside this interpreter to a file, as JSON.

This file is copied and run by the *user's* interpreter, which may be another Python
than ours: it uses the standard library alone and runs on Python 3.9 and newer. The
answer goes into the file named by the first argument, because start-up hooks of the
environment may print to the standard output.
"""

from __future__ import annotations

import ast
import json
import platform
import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from typing import Any


def describe() -> dict[str, Any]:
    """Return the interpreter's facts and every distribution on its path."""
    found = [_read(one) for one in metadata.distributions()]
    distributions = [one for one in found if isinstance(one, dict)]
    names = {distribution["name"] for distribution in distributions}
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "architecture": platform.machine(),
        "system": sys.platform,
        "platform": sysconfig.get_platform(),
        "libc": " ".join(platform.libc_ver()).strip(),
        "executable": sys.executable,
        "prefix": sys.prefix,
        "base_prefix": sys.base_prefix,
        "purelib": sysconfig.get_path("purelib"),
        "platlib": sysconfig.get_path("platlib"),
        "pip": metadata.version("pip") if "pip" in names else "",
        "distributions": distributions,
        "unreadable": [one for one in found if isinstance(one, str)],
    }


def _read(found: metadata.Distribution) -> dict[str, Any] | str:
    """Return one distribution, or the name of its folder if it cannot be read."""
    try:
        return _distribution(found)
    except Exception:  # noqa: BLE001  One broken package must not hide the others.
        return Path(str(_metadata_path(found))).name


def _distribution(found: metadata.Distribution) -> dict[str, Any]:
    name = found.metadata["Name"]
    version = found.version
    if not name or not version:
        raise ValueError("no name or no version")
    folder = _metadata_path(found)
    direct = json.loads(found.read_text("direct_url.json") or "null")
    editable = bool(direct and direct.get("dir_info", {}).get("editable"))
    egg_link = (
        folder is not None and folder.suffix == ".egg-info" and _is_source(folder)
    )
    return {
        "name": name,
        "version": version,
        "folder": str(folder or ""),
        "installer": (found.read_text("INSTALLER") or "").strip(),
        "direct_url": direct,
        "editable": editable or egg_link,
        "source": str(folder.parent) if egg_link and folder else "",
        "import_paths": _import_paths(found) if editable else [],
        "top_level": (found.read_text("top_level.txt") or "").split(),
        "requires": list(found.requires or ()),
    }


def _metadata_path(found: metadata.Distribution) -> Path | None:
    path = getattr(found, "_path", None)
    return path if isinstance(path, Path) else None


def _is_source(folder: Path) -> bool:
    """Tell whether an ``.egg-info`` lies in a source folder, not among packages."""
    return not {"site-packages", "dist-packages"} & set(folder.parts)


def _import_paths(found: metadata.Distribution) -> list[str]:
    """Return the folders from which an editable distribution is imported.

    An editable install leaves either a ``.pth`` file with folders or a finder module
    with a table from module name to folder.
    """
    folders = []
    for name in found.files or ():
        path = Path(str(found.locate_file(name)))
        if path.suffix == ".pth" and path.is_file():
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            folders += [line for line in lines if line and Path(line).is_dir()]
        elif path.name.startswith("__editable__") and path.name.endswith("_finder.py"):
            folders += [str(Path(target).parent) for target in _mapping(path).values()]
    return sorted(set(folders))


def _mapping(finder: Path) -> dict[str, str]:
    for node in ast.parse(finder.read_text(encoding="utf-8")).body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(
            isinstance(target, ast.Name) and target.id == "MAPPING"
            for target in targets
        ):
            return {
                str(key): str(value)
                for key, value in ast.literal_eval(node.value).items()
            }
    return {}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(describe()), encoding="ascii")
