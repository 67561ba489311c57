"""`scan` says what needs an NVIDIA GPU, where, and what that means; it runs nothing."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from reprobundle.cli.group import run
from reprobundle.errors import BadCallError
from reprobundle.format.manifest import Role
from reprobundle.format.scan_report import ScanReport
from reprobundle.format.schema import schema_of
from reprobundle.format.writer import Source, write_bundle
from reprobundle.port.scan.scan import scan
from reprobundle.port.scan.torch_names import QUIET
from reprobundle.port.scan.versions import of_poetry
from tests.port.corpus import CORPUS

ROOT = Path(__file__).parents[2]
# What reading alone cannot find; the documentation names both.
KNOWN_MISSES = {"through a list", "remote code"}


def write(folder, **files):
    """Write files whose names have __ for a slash and _dot_ for a dot."""
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return folder


def standings(report):
    return {(one.path, one.line): one.standing for one in report.findings}


@pytest.mark.parametrize("snippet", CORPUS, ids=lambda one: one.name)
def test_a_snippet_blocks_in_the_lines_labelled_by_hand(snippet, tmp_path):
    (tmp_path / snippet.path).write_text(snippet.text, encoding="utf-8")
    report = scan(tmp_path)
    found = {one.line for one in report.findings if one.standing == "blocker"}
    if snippet.name in KNOWN_MISSES:
        assert not found, "it is found now: take it off the list and the page"
    else:
        assert found == set(snippet.blocks)
        assert report.exit_status == (10 if snippet.blocks else 0)


def test_the_page_holds_the_table_of_the_corpus(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    scan_table = importlib.import_module("scan_table")
    assert len(CORPUS) >= 60
    assert sum(one.trap for one in CORPUS) * 2 >= len(CORPUS) - 10
    score = scan_table.measure()
    page = (ROOT / "docs/scan.md").read_text(encoding="utf-8")
    assert scan_table.table(score) in page, "run: python tools/scan_table.py"
    assert set(score.wrong) == KNOWN_MISSES


@pytest.mark.filterwarnings("ignore")
def test_the_quiet_functions_of_cuda_do_not_raise_without_it():
    torch = pytest.importorskip("torch")
    if torch.version.cuda:
        pytest.skip("this torch was built with CUDA")
    arguments: dict[str, tuple[object, ...]] = {
        "manual_seed": (1,),
        "manual_seed_all": (1,),
        "device": (0,),
        "set_stream": (None,),
        "stream": (None,),
        "device_of": (torch.zeros(1),),
    }
    for name in sorted(QUIET):
        getattr(torch.cuda, name)(*arguments.get(name, ()))
    for name in ("synchronize", "current_device", "get_device_name"):
        assert name not in QUIET
        with pytest.raises(AssertionError):
            getattr(torch.cuda, name)()


def test_nothing_of_the_project_is_run(tmp_path):
    trap = f"open({str(tmp_path / 'ran')!r}, 'w')\n"
    write(tmp_path, setup_dot_py=trap, conftest_dot_py=trap, a_dot_py=trap)
    assert scan(tmp_path).exit_status == 0
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "call",
    [
        'subprocess.run(["nvidia-smi", "-L"])',
        'subprocess.check_output("/usr/bin/nvidia-smi -q", shell=True)',
        'os.system("nsys profile x")',
        'subprocess.Popen(("nvcc", "a.cu"))',
    ],
)
def test_tools_of_nvidia_that_a_program_starts_block(call, tmp_path):
    write(tmp_path, train_dot_py=f"import os, subprocess\n{call}\n")
    report = scan(tmp_path)
    assert {one.line for one in report.findings if one.standing == "blocker"} == {2}
    write(
        tmp_path,
        train_dot_py=f"import os, subprocess\nnames = [{call!r}]\nprint('nvcc')\n",
    )
    assert scan(tmp_path).exit_status == 0


def test_a_module_imported_behind_a_guard_alone_does_not_block(tmp_path):
    guarded = "try:\n    from pkg.fast import f\nexcept ImportError:\n    f = None\n"
    write(tmp_path, pkg__fast_dot_py="import triton\n", pkg__a_dot_py=guarded)
    report = scan(tmp_path)
    assert standings(report) == {("pkg/fast.py", 1): "guarded"}
    assert "pkg/a.py:2" in report.findings[0].because
    write(tmp_path, pkg__b_dot_py="from .fast import f\n")
    assert standings(scan(tmp_path)) == {("pkg/fast.py", 1): "blocker"}


def test_kernels_that_the_build_guards_do_not_block(tmp_path):
    build = (
        "from torch.utils.cpp_extension import CUDAExtension, CUDA_HOME\n"
        "ext = [CUDAExtension('k', [])] if CUDA_HOME else []\n"
    )
    write(tmp_path, k_dot_cu="", setup_dot_py=build)
    assert scan(tmp_path).action == "dual-track"
    write(tmp_path, setup_dot_py=build.replace(" if CUDA_HOME else []", ""))
    report = scan(tmp_path)
    assert (report.action, report.rule) == ("keep-linux-gpu", "own-kernels")


def test_kernels_that_are_loaded_behind_a_guard_do_not_block(tmp_path):
    load = "from torch.utils.cpp_extension import load\n"
    guarded = f"{load}try:\n    k = load('k', ['k.cu'])\nexcept Exception:\n    k = 0\n"
    write(tmp_path, k_dot_cu="", a_dot_py=guarded)
    assert set(standings(scan(tmp_path)).values()) == {"guarded"}
    write(tmp_path, a_dot_py=f"{load}k = load('k', ['k.cu'])\n")
    assert set(standings(scan(tmp_path)).values()) == {"blocker"}


def test_a_function_nobody_calls_is_late_and_one_that_is_called_blocks(tmp_path):
    text = "def main():\n    import deepspeed\n"
    write(tmp_path, a_dot_py=text)
    assert standings(scan(tmp_path)) == {("a.py", 2): "late"}
    write(tmp_path, a_dot_py=text + "\n\nmain()\n")
    assert standings(scan(tmp_path)) == {("a.py", 2): "blocker"}


MAIN = "from pkg.a import launch\n\n\ndef main():\n    launch()\n\n\n"


@pytest.mark.parametrize(
    ("caller", "standing"),
    [
        ("from pkg.a import launch\nlaunch()\n", "blocker"),
        ("from pkg import a\na.launch()\n", "blocker"),
        ("import pkg.a\npkg.a.launch()\n", "blocker"),
        (f"{MAIN}if __name__ == '__main__':\n    main()\n", "blocker"),
        ("import sys\nfrom pkg.a import launch\nif sys.argv:\n    launch()\n", "late"),
        (MAIN, "late"),
        ("from pkg.a import other\nother()\n", "late"),
        ("from elsewhere.b import launch\nlaunch()\n", "late"),
        ("from pkg.a import launch\nf = lambda: launch()\n", "late"),
    ],
)
def test_a_function_that_another_file_calls_in_any_case_blocks(
    caller, standing, tmp_path
):
    library = "def launch():\n    import deepspeed\n\n\ndef other():\n    pass\n"
    write(tmp_path, pkg__a_dot_py=library, run_dot_py=caller)
    report = scan(tmp_path)
    assert standings(report) == {("pkg/a.py", 2): standing}
    (found,) = report.findings
    assert ("called at run.py:" in found.because) == (standing == "blocker")


def test_a_function_reached_through_another_of_its_file_blocks(tmp_path):
    library = "def low():\n    import deepspeed\n\n\ndef launch():\n    low()\n"
    call_it = "from pkg.a import launch\nlaunch()\n"
    write(tmp_path, pkg__a_dot_py=library, run_dot_py=call_it)
    assert standings(scan(tmp_path)) == {("pkg/a.py", 2): "blocker"}


def test_examples_beside_a_package_are_aside_and_alone_they_block(tmp_path):
    text = "import torch\nx = torch.ones(1).cuda()\n"
    write(tmp_path, examples__a_dot_py=text)
    assert standings(scan(tmp_path)) == {("examples/a.py", 2): "blocker"}
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/__init__.py").touch()
    assert standings(scan(tmp_path)) == {("examples/a.py", 2): "aside"}


@pytest.mark.parametrize(
    ("name", "text", "standing"),
    [
        ("requirements.txt", "bitsandbytes\n", "check"),
        ("requirements.txt", "bitsandbytes>=0.41\n", "check"),
        ("requirements.txt", "bitsandbytes==0.50.2\n", "check"),
        ("requirements.txt", "bitsandbytes==0.45.0\n", "blocker"),
        ("requirements.txt", "bitsandbytes>=0.41,<0.49\n", "blocker"),
        ("requirements.txt", "gptqmodel<1.4\n", "blocker"),
        ("requirements.txt", "unsloth[mlx]>=2026.9.3\n", "check"),
        ("environment.yml", "dependencies:\n  - bitsandbytes=0.45\n", "blocker"),
        ("environment.yml", "dependencies:\n  - bitsandbytes\n", "check"),
        (
            "pyproject.toml",
            '[tool.poetry.dependencies]\nunsloth = "^2024.1"\n',
            "blocker",
        ),
        ("pyproject.toml", '[tool.poetry.dependencies]\nunsloth = "*"\n', "check"),
        (
            "pyproject.toml",
            '[tool.poetry.dependencies]\nbitsandbytes = {version = "^0.45"}\n',
            "blocker",
        ),
        ("a.py", "import bitsandbytes\n", "check"),
    ],
)
def test_the_releases_that_may_come_decide(tmp_path, name, text, standing):
    (tmp_path / name).write_text(text)
    (found,) = scan(tmp_path).findings
    assert (found.standing, found.line > 0) == (standing, True)
    assert ("releases before" in found.because) == (standing == "blocker")


@pytest.mark.parametrize(
    ("poetry", "specifier"),
    [
        ("^0.45", ">=0.45,<0.46"),
        ("^1.2.3", ">=1.2.3,<2"),
        ("~1.2.3", ">=1.2.3,<1.3"),
        ("~1", ">=1,<2"),
        ("^0.0.3", ">=0.0.3,<0.0.4"),
        ("1.5", "==1.5"),
        ("*", ""),
        (">=1,<2", ">=1,<2"),
    ],
)
def test_versions_of_poetry_are_understood(poetry, specifier):
    """As its documentation writes them out, "Dependency specification"."""
    assert of_poetry(poetry) == specifier


def test_what_waits_for_a_call_on_several_gpus_is_dual_track(tmp_path):
    text = "def launch():\n    import deepspeed\n"
    write(tmp_path, a_dot_py=text)
    report = scan(tmp_path)
    assert (report.action, report.rule) == ("dual-track", "guarded-path")


def test_a_relative_import_leads_to_the_function(tmp_path):
    write(
        tmp_path,
        pkg__a_dot_py="def launch():\n    import deepspeed\n",
        pkg__run_dot_py="from .a import launch\nlaunch()\n",
    )
    assert standings(scan(tmp_path)) == {("pkg/a.py", 2): "blocker"}


def test_a_module_named_from_parts_is_late(tmp_path):
    text = "import importlib\nm = importlib.import_module('flash' + '_attn')\n"
    write(tmp_path, a_dot_py=text, b_dot_py=text.replace("'flash' + '_attn'", "name"))
    report = scan(tmp_path)
    found = {one.path: (one.standing, one.term) for one in report.findings}
    assert found == {
        "a.py": ("late", "flash_attn"),
        "b.py": ("late", "import_module"),
    }


def test_tests_of_a_project_do_not_block_it(tmp_path):
    write(tmp_path, tests__test_a_dot_py="import torch\ntorch.ones(1).cuda()\n")
    report = scan(tmp_path)
    assert standings(report) == {("tests/test_a.py", 2): "aside"}
    assert report.exit_status == 0


def test_a_package_that_is_the_project_itself_is_no_finding(tmp_path):
    write(tmp_path, fairscale____init___dot_py="", a_dot_py="import fairscale\n")
    (tmp_path / "fairscale").mkdir(exist_ok=True)
    (tmp_path / "fairscale/__init__.py").touch()
    assert scan(tmp_path).findings == ()


@pytest.mark.parametrize(
    ("files", "action", "rule"),
    [
        ({"a_dot_py": "x = 1\n"}, "nothing-found", "nothing-blocks"),
        ({"a_dot_py": "import flash_attn\n"}, "refactor", "replaceable"),
        ({"a_dot_py": "import mamba_ssm\n"}, "keep-linux-gpu", "no-replacement"),
        ({"a_dot_py": "import deepspeed\n"}, "keep-linux-gpu", "distributed"),
        ({"a_dot_sh": "torchrun a.py\n"}, "dual-track", "jobs-on-linux"),
        ({"a_dot_py": "def f(:\n"}, "not-decided", "not-whole"),
    ],
)
def test_the_action_follows_from_a_named_rule(files, action, rule, tmp_path):
    report = scan(write(tmp_path, **files))
    assert (report.action, report.rule) == (action, rule)


def test_code_that_cannot_be_read_keeps_the_status_from_zero(tmp_path):
    write(tmp_path, a_dot_py="print 'python 2'\n")
    report = scan(tmp_path)
    assert report.exit_status == 10
    assert [(one.path, one.matters) for one in report.not_read] == [("a.py", True)]


def test_data_and_huge_files_are_listed_and_do_not_count(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"\x00\x01")
    (tmp_path / "big.txt").write_bytes(b"x" * ((4 << 20) + 1))
    report = scan(tmp_path)
    assert report.exit_status == 0
    assert {one.path for one in report.not_read} == {"a.bin", "big.txt"}
    (tmp_path / "k.so").write_bytes(b"\x7fELF\x00")
    assert scan(tmp_path).exit_status == 10


def test_a_notebook_is_read_by_cell(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": ["torch.cuda"]},
        {"cell_type": "code", "source": ["!pip install flash-attn\n", "x = 1\n"]},
        {"cell_type": "code", "source": "import torch\ntorch.ones(1).cuda()\n"},
    ]
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": cells}))
    places = {one.place for one in scan(tmp_path).findings}
    assert places == {"n.ipynb, cell 2:1", "n.ipynb, cell 3:2"}


def notebook(folder, *cells):
    held = [{"cell_type": "code", "source": text} for text in cells]
    (folder / "n.ipynb").write_text(json.dumps({"cells": held}))
    report = scan(folder)
    return report, {one.place: one for one in report.findings}


def test_the_cells_of_a_notebook_share_their_names_and_flags(tmp_path):
    _, found = notebook(
        tmp_path,
        "%matplotlib inline\nimport torch\nHAS = torch.cuda.is_available()",
        "\ntorch.cuda.synchronize()",
        "if HAS:\n    !nvidia-smi -L\nx = !ls\nif HAS:\n    torch.cuda.set_device(0)",
        "def move(x):\n    if not HAS:\n        return x\n    return x.cuda()",
    )
    assert found["n.ipynb, cell 2:2"].standing == "blocker"
    assert found["n.ipynb, cell 3:5"].standing == "guarded"
    assert found["n.ipynb, cell 4:4"].because == "after cell 4:2"


def test_magics_of_a_whole_cell_are_read_as_what_they_are(tmp_path):
    report, found = notebook(
        tmp_path,
        "%%bash\ntorchrun train.py",
        "%%time\nimport torch\ntorch.cuda.init()",
        "%%writefile -a src/a.py\nimport torch\ntorch.cuda.init()",
        "%%html\n<b>cuda</b>",
        "%%cu\n__global__ void f() {}",
    )
    assert set(found) == {
        "n.ipynb, cell 1:2",
        "n.ipynb, cell 2:3",
        "n.ipynb, cell 3/src/a.py:3",
    }
    assert [one.path for one in report.not_read] == ["n.ipynb, cell 5"]


def test_locks_say_which_packages_macos_has_no_file_of(tmp_path):
    wheel = "k-1-cp311-cp311-manylinux_2_28_x86_64.whl"
    entry = '[[packages]]\nname = "k"\nversion = "1"\n{}wheels = [{{ name = "{}" }}]\n'
    lock = tmp_path / "pylock.toml"
    lock.write_text(entry.format("", wheel))
    assert scan(tmp_path).exit_status == 10
    lock.write_text(entry.format("marker = \"sys_platform == 'linux'\"\n", wheel))
    assert [one.standing for one in scan(tmp_path).findings] == ["optional"]
    lock.write_text(entry.format("", "k-1-cp311-cp311-macosx_11_0_arm64.whl"))
    assert scan(tmp_path).findings == ()


def test_words_in_texts_are_mentions_only(tmp_path):
    write(tmp_path, README_dot_md="needs triton\n", a_dot_py="# nccl\nx = 'cuda'\n")
    report = scan(tmp_path)
    assert report.findings == ()
    assert {(one.path, one.term) for one in report.mentions} == {
        ("README.md", "triton"),
        ("a.py", "nccl"),
        ("a.py", "cuda"),
    }


def test_a_folder_without_files_is_a_bad_call(tmp_path):
    with pytest.raises(BadCallError, match="holds no file"):
        scan(tmp_path)
    assert run(["scan", str(tmp_path / "absent")]) == 20


def test_a_zip_that_is_no_bundle_is_refused(tmp_path, capsys):
    path = tmp_path / "a.zip"
    path.write_bytes(b"PK\x03\x04" + b"\0" * 40)
    assert run(["scan", str(path)]) == 21
    assert capsys.readouterr().err.count("\n") == 1


@pytest.fixture
def project(tmp_path):
    return write(
        tmp_path,
        train_dot_py="import torch\ntorch.ones(1).cuda()\n",
        requirements_dot_txt="torch==2.8.0+cu126\n",
    )


def test_the_terminal_names_places_remedies_and_the_action(project, capsys):
    assert run(["scan", str(project)]) == 10
    shown = capsys.readouterr().out
    assert "train.py:2" in shown
    assert "requirements.txt:1" in shown
    assert "take the device from one place" in shown
    assert "ACTION        REFACTOR" in shown
    assert "MPS cannot replace CUDA" in shown


def test_json_follows_its_schema(project, capsys):
    jsonschema = pytest.importorskip("jsonschema")
    assert run(["scan", str(project), "--json"]) == 10
    document = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(schema_of("scan")).validate(document)
    assert document["schema"] == ScanReport.__struct_defaults__[0]


def test_sarif_points_at_lines_and_says_what_was_not_read(project, capsys):
    write(project, bad_dot_py="def f(:\n")
    assert run(["scan", str(project), "--sarif"]) == 10
    document = json.loads(capsys.readouterr().out)
    (one,) = document["runs"]
    assert document["version"] == "2.1.0"
    lines = {
        (
            place["artifactLocation"]["uri"],
            place["region"]["startLine"],
        ): result["level"]
        for result in one["results"]
        for place in [result["locations"][0]["physicalLocation"]]
    }
    assert lines == {("train.py", 2): "error", ("requirements.txt", 1): "error"}
    named = {rule["id"] for rule in one["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in one["results"]} <= named
    assert one["invocations"][0]["executionSuccessful"] is False


def test_both_formats_at_once_are_a_bad_call(project):
    assert run(["scan", str(project), "--json", "--sarif"]) == 20


def test_a_bundle_is_read_like_a_folder(tmp_path):
    path = tmp_path / "a.rpb.zip"
    sources = [
        Source("project/a.py", "project", b"import torch\ntorch.ones(1).cuda()\n"),
        Source("inputs/b.py", "input", b"import triton\n"),
        Source("lock/project/requirements.txt", "lock", b"triton\n"),
    ]
    written = write_bundle(path, sources)
    report = scan(path)
    assert report.bundle == written.id
    assert standings(report) == {
        ("a.py", 2): "blocker",
        ("lock/project/requirements.txt", 1): "blocker",
    }


@pytest.mark.parametrize(
    ("damaged", "status"), [("", 0), ("record", 10), ("project", 10), ("output", 0)]
)
def test_a_damaged_member_is_told_and_never_success(tmp_path, damaged, status, capsys):
    path = tmp_path / "a.rpb.zip"
    texts: dict[str, tuple[str, bytes]] = {
        "project": ("project/a.py", b"import torch  # of the project\n"),
        "record": ("runs/1/record.json", b'{"a": "of the record"}\n'),
        "output": ("runs/1/outputs/a.txt", b"of the output\n"),
    }
    roles: tuple[Role, ...] = ("project", "record", "output")
    write_bundle(path, [Source(texts[role][0], role, texts[role][1]) for role in roles])
    content = path.read_bytes()
    words = f"of the {damaged}".encode()
    if damaged:
        assert content.count(words) == 1
        content = content.replace(words, words.upper())
    path.write_bytes(content)
    assert run(["scan", str(path)]) == status
    shown = " ".join(capsys.readouterr().out.split())
    assert "outputs and logs were not looked at" in shown
    if status:
        name = texts[damaged][0].removeprefix("project/")
        assert f"NOT READ {name}: damaged: not what was sealed" in shown
        assert "NOT DECIDED" in shown
    # A long path pushes what follows it to the next line.
    whole = shown.replace("a.rpb.zip :", "a.rpb.zip:")
    assert f"a.rpb.zip: {0 if damaged == 'project' else 1} file" in whole
