"""Build the stand-in, give it to a virtual environment, and pack and replay with it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from reprobundle.verify.mps_operators import table_of

HERE = Path(__file__).parent
SOURCES = sorted((HERE / "native").iterdir())
BUILD = """\
import sys
from torch.utils.cpp_extension import load
load("_mps_standin", [sys.argv[1]], build_directory=sys.argv[2],
     extra_cflags=["-O1", "-g0"], is_python_module=False)
"""


def cached_build() -> Path:
    """Return the built extension; its folder is named by all that goes into it."""
    import torch

    parts = [path.read_bytes() for path in SOURCES]
    digest = hashlib.sha256(b"\0".join([*parts, torch.__version__.encode()]))
    digest.update(sys.version.encode())
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = cache / "reprobundle-tests" / f"standin-{digest.hexdigest()[:16]}"
    built = folder / "_mps_standin.so"
    if not built.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            _build(Path(work))
            folder.mkdir(exist_ok=True)
            (Path(work) / "_mps_standin.so").rename(built)
    return built


def _build(folder: Path) -> None:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(HERE / "native/standin.cpp"), str(folder)],
        env={**os.environ, "PATH": path, "MAX_JOBS": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@dataclass(frozen=True)
class Result:
    """How a call of the command line ended, and what the device really did."""

    status: int
    out: str
    err: str
    truth: tuple[dict[str, object], ...] = ()

    @property
    def report(self):
        return json.loads(self.out)


class Standin:
    """An interpreter whose torch has a device of type mps, on Linux."""

    def __init__(self, folder: Path, built: Path) -> None:
        self.folder = folder
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")],
            check=True,
        )
        self.python = folder / "venv/bin/python"
        (self.site,) = (folder / "venv/lib").glob("python*/site-packages")
        self.package = self.site / "mps_standin"
        shutil.copytree(HERE / "package/mps_standin", self.package)
        shutil.copy(built, self.package / "_mps_standin.so")
        self._declare()

    def _declare(self) -> None:
        import torch

        # The environment of the tests holds torch and numpy.
        own = Path(torch.__file__).parents[1]
        (self.site / "base.pth").write_text(f"{own}\n")
        info = self.site / "mps_standin-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Name: mps-standin\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            "[torch.backends]\nmps_standin = mps_standin:load\n"
        )

    def settings(self, **changes) -> None:
        """Set what the device is for the next run: the default is torch's table."""
        import torch

        table = table_of(torch.__version__)
        assert table is not None
        settings = {"missing": sorted(table.missing()), **changes}
        (self.package / "settings.json").write_text(json.dumps(settings))

    def call(self, *arguments, cwd=None, env=None, plain=False, **settings) -> Result:
        """Run the command line, with the device set up as `settings` say.

        `plain` makes the interpreter of the tests the active one, without the device.
        """
        self.settings(**settings)
        truth = self.package / "truth"
        shutil.rmtree(truth, ignore_errors=True)
        active = Path(sys.executable).parent if plain else self.python.parent
        path = os.pathsep.join((str(active), os.environ["PATH"]))
        variables = {**os.environ, "OMP_NUM_THREADS": "1", "PATH": path, **(env or {})}
        variables.pop("VIRTUAL_ENV", None)
        for name in ("PYTHONPATH", "PYTORCH_ENABLE_MPS_FALLBACK"):
            if name not in (env or {}):
                variables.pop(name, None)
        done = subprocess.run(
            [sys.executable, "-m", "reprobundle", *map(str, arguments)],
            cwd=cwd,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
            stdin=subprocess.DEVNULL,
        )
        found = [json.loads(path.read_text()) for path in sorted(truth.glob("*.json"))]
        return Result(done.returncode, done.stdout, done.stderr, tuple(found))
