"""An environment of its own for this package, made from wheels without an installer."""

import glob
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from typing import Any

from reprobundle.handoff.far.files import Refused, inside, read_json, root, write_json


def install(request: "dict[str, Any]") -> "dict[str, Any]":
    """Make the environment of this package from the wheels in ``tool``, by no one else.

    A wheel is a zip whose files are put where they belong; nothing is built and no pip
    is needed. The file ``complete.json`` is written last.
    """
    folder = root(request)
    venv = os.path.join(folder, "venv")
    mark = os.path.join(venv, "complete.json")
    wanted = {"wheels": request["wheels"], "python": platform.python_version()}
    before = read_json(mark)
    if before == wanted:
        return {"installed": False}
    shutil.rmtree(venv, ignore_errors=True)
    command = [sys.executable, "-I", "-m", "venv", "--without-pip", venv]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode != 0:
        tail = done.stdout.decode(errors="replace").strip().rpartition("\n")[2]
        raise Refused(f"no environment can be made with {sys.executable}: {tail}")
    pattern = os.path.join(venv, "lib", "python*", "site-packages")
    site = glob.glob(pattern)[0]
    for name in request["wheels"]:
        unpack(os.path.join(folder, "tool", name), site, venv)
    write_json(mark, wanted)
    return {"installed": True, "changed": bool(before)}


def unpack(wheel: str, site: str, venv: str) -> None:
    """Put the files of a wheel where they belong (binary distribution format, PyPA)."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            top, _, rest = name.partition("/")
            kind, _, below = rest.partition("/")
            target = inside(site, name)
            if top.endswith(".data") and kind == "scripts":
                target = inside(os.path.join(venv, "bin"), below)
            elif top.endswith(".data"):
                base = site if kind in ("purelib", "platlib") else venv
                target = inside(base, below)
            if name.endswith("/"):
                continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with archive.open(name) as source, open(target, "wb") as stream:
                shutil.copyfileobj(source, stream)
            if kind == "scripts":
                os.chmod(target, 0o700)


def run(request: "dict[str, Any]") -> "dict[str, Any]":
    """Run a command in the folder of the hand-off and return what it prints."""
    folder = root(request)
    done = subprocess.run(
        [one.replace("{folder}", folder) for one in request["argv"]],
        cwd=folder,
        env=variables(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=request["seconds"],
    )
    return {
        "status": done.returncode,
        "out": done.stdout.decode(errors="replace"),
        "err": done.stderr.decode(errors="replace")[-4000:],
    }


def variables(folder: str) -> "dict[str, str]":
    """Return an environment in which all that we leave lies in `folder`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SSH_", "PYTHON"))}
    ours = (("c", "XDG_CACHE_HOME"), ("s", "XDG_STATE_HOME"), ("t", "TMPDIR"))
    for name, variable in ours:
        kept[variable] = os.path.join(folder, name)
        os.makedirs(kept[variable], mode=0o700, exist_ok=True)
    return kept
