"""The table of operators can be rebuilt from a torch wheel, and is what one says."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tools import mps_tables as tables

YAML = """\
# A comment.
- func: abs(Tensor self) -> Tensor
  dispatch:
    CompositeExplicitAutograd: abs
    SparseCPU, SparseCUDA: abs_sparse
- func: abs.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU, CUDA, MPS, MTIA: abs_out  # A kernel.
  autogen: abs.other
- func: add.Tensor(Tensor self, Tensor other) -> Tensor
  structured_delegate: add.out
- func: add.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU, MPS: add_out
- func: mode(Tensor self) -> Tensor
  dispatch:
    CPU, CUDA: mode
- func: flatten(Tensor self) -> Tensor
- func: linear(Tensor self) -> Tensor
  dispatch: { CompositeImplicitAutograd: linear }
- func: linalg_svd(Tensor self) -> Tensor
"""


def wheel(folder, version="2.13.0", text=YAML):
    path = folder / "torch.whl"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("torch/version.py", f"__version__ = '{version}+cpu'\n")
        file.writestr(tables.YAML, text)
    return path


def test_each_rule_gives_its_letter():
    assert tables.column(YAML, (2, 13)) == {
        "abs": "e",
        "abs.out": "n",
        "add.Tensor": "n",
        "add.out": "n",
        "mode": "m",
        "flatten": "i",
        "linear": "i",
        "linalg_svd": "a",
    }
    assert tables.column(YAML, (2, 14))["linalg_svd"] == "i"


def test_a_wheel_that_differs_is_told_and_not_written(tmp_path, capsys):
    before = tables.TARGET.read_bytes()
    assert tables.main([str(wheel(tmp_path))]) == 1
    said = capsys.readouterr().out
    assert said.startswith("2.13: 8 operators, ")
    assert "  zeros_like: e in the table, absent in this torch\n" in said
    assert tables.TARGET.read_bytes() == before


def test_a_written_column_is_read_again(tmp_path, monkeypatch):
    target = tmp_path / "table.json"
    target.write_bytes(tables.TARGET.read_bytes())
    monkeypatch.setattr(tables, "TARGET", target)
    assert tables.main([str(wheel(tmp_path)), "--write"]) == 0
    assert tables.main([str(wheel(tmp_path))]) == 0
    found = tables.columns(json.loads(target.read_text()))
    assert found["2.13"] == tables.column(YAML, (2, 13))
    shipped = tables.columns(json.loads(target.read_text()))["2.12"]
    assert len(shipped) > 2000


def test_the_shipped_table_is_compact_and_keeps_its_columns():
    content = tables.TARGET.read_text()
    assert json.dumps(
        tables.compact(tables.columns(json.loads(content))), indent=1
    ) == (content.rstrip("\n"))


@pytest.mark.parametrize("version", ["2.8.0", "2.16.0"])
def test_a_version_of_which_too_little_is_known_is_refused(version, tmp_path, capsys):
    assert tables.main([str(wheel(tmp_path, version))]) == 2
    assert "MPSFallback.mm" in capsys.readouterr().err


def test_what_is_no_torch_is_refused(tmp_path, capsys):
    (tmp_path / "a.whl").write_text("no zip")
    assert tables.main([str(tmp_path / "a.whl")]) == 2
    assert tables.main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("holds no torch") == 2


def test_the_installed_torch_gives_its_own_column():
    torch = pytest.importorskip("torch")
    place = Path(torch.__file__).parents[1]
    version, text = tables.read_torch(place)
    if not tables.KNOWN[0] <= version <= tables.KNOWN[1]:
        pytest.skip(f"the table has no column for {version}")
    shipped = tables.columns(json.loads(tables.TARGET.read_text()))
    assert tables.column(text, version) == shipped[f"{version[0]}.{version[1]}"]
