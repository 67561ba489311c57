"""The runner goes red for every tool that does not look, and for a set with gaps."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from tests.conformance import runner
from tests.conformance.runner import SuiteError, Vector

SUITE = runner.read_suite()
REQUIRED = runner.requirements()
HONEST = [sys.executable, "-m", "reprobundle"]


def tool(tmp_path, body):
    """Return the command of a tool whose `main` is `body`."""
    script = tmp_path / "tool.py"
    script.write_text(f"import sys\n{body}\n")
    return [sys.executable, "-S", "-E", str(script)]


def few(*names):
    """Return the suite with these vectors alone, and no check that it is whole."""
    vectors = tuple(one for one in SUITE.vectors if one.id in names)
    assert len(vectors) == len(names)
    return SUITE._replace(vectors=vectors)


FEW = few("container/complete", "container/trailing_byte_fail", "names/empty_fail")


def copy_of_the_set(tmp_path):
    folder = tmp_path / "vectors"
    shutil.copytree(SUITE.folder, folder)
    return folder


def rewrite_index(folder, change):
    path = folder / "index.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


# --- tools that do not look


@pytest.mark.parametrize("command", ["/bin/true", "/bin/false"])
def test_a_tool_that_does_nothing_is_wrong_everywhere(command, capsys):
    assert runner.main(["--", command]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"0 of {len(SUITE.vectors)} vectors agree"
    assert all(line.startswith("WRONG") for line in lines[:-1])
    assert len(lines) == len(SUITE.vectors) + 1


@pytest.mark.parametrize(
    ("verdict", "status", "wrong"),
    [
        ("INTACT", 0, ["container/trailing_byte_fail", "names/empty_fail"]),
        ("UNREADABLE", 21, ["container/complete"]),
    ],
)
def test_a_tool_with_one_fixed_answer_is_wrong_somewhere(
    tmp_path, capsys, verdict, status, wrong
):
    command = tool(
        tmp_path, f'print(\'{{"verdict": "{verdict}"}}\'); sys.exit({status})'
    )
    assert runner.run(command, FEW) == len(wrong)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in lines if line.startswith("WRONG")] == wrong


@pytest.mark.parametrize("verdict", sorted({one.verdict for one in SUITE.vectors}))
def test_no_fixed_answer_agrees_with_the_whole_set(verdict):
    agreeing = [one for one in SUITE.vectors if one.verdict == verdict]
    assert 0 < len(agreeing) < len(SUITE.vectors)


@pytest.mark.parametrize(
    "body",
    [
        "sys.exit(0)",
        "print('INTACT')",
        "print('[\"INTACT\"]')",
        'print(\'{"verdict": ["INTACT"]}\')',
        'print(\'{"verdict": "INTACT"}\'); sys.exit(12)',
        'print(\'{"verdict": "TAMPERED"}\')',
    ],
)
def test_status_and_verdict_must_both_be_right(tmp_path, body):
    assert runner.run(tool(tmp_path, body), few("container/complete")) == 1


def test_a_tool_that_does_not_end_is_wrong(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "TIMEOUT_S", 0.3)
    command = tool(tmp_path, "import time; time.sleep(60)")
    assert runner.run(command, few("container/complete")) == 1
    assert "no verdict (no end)" in capsys.readouterr().out


def test_a_command_that_is_not_there_is_no_success(capsys):
    assert runner.main(["--", "/nowhere/tool"]) == 1
    assert "cannot run /nowhere/tool" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["--"], ["reprobundle"], ["--x", "--", "a"]])
def test_a_call_without_a_command_is_no_success(arguments, capsys):
    assert runner.main(arguments) == 2
    assert "usage:" in capsys.readouterr().out


def test_the_product_itself_agrees_where_it_is_asked(capsys):
    names = [
        "container/complete",
        "container/trailing_byte_fail",
        "container/replay_file",
        "verdict/fallback_seen",
    ]
    assert runner.run(HONEST, few(*names)) == 0
    assert capsys.readouterr().out.count("ok ") == len(names)


# --- a set with gaps


def test_the_committed_set_has_no_gap():
    assert list(runner.problems(SUITE, REQUIRED)) == []


@pytest.mark.parametrize("area", runner.AREAS)
def test_an_emptied_area_is_a_problem(area):
    left = tuple(one for one in SUITE.vectors if one.area != area)
    found = list(runner.problems(SUITE._replace(vectors=left), REQUIRED))
    assert f"the area {area} has no vector" in found


def test_an_emptied_area_stops_the_run_before_any_tool_is_asked(tmp_path, capsys):
    folder = copy_of_the_set(tmp_path)
    shutil.rmtree(folder / "names")
    rewrite_index(
        folder,
        lambda index: index.update(
            vectors=[one for one in index["vectors"] if one["area"] != "names"]
        ),
    )
    assert runner.main(["--vectors", str(folder), "--", *HONEST]) == 1
    out = capsys.readouterr().out
    assert "PROBLEM the area names has no vector" in out
    assert "PROBLEM R-5.3 has no vector, and no reason why not" in out
    assert "nothing was run" in out


def test_a_folder_without_expectation_is_a_problem(tmp_path):
    folder = copy_of_the_set(tmp_path)
    (folder / "names" / "new_fail").mkdir()
    found = list(runner.problems(runner.read_suite(folder), REQUIRED))
    assert found == ["names/new_fail has no expectation in the index"]


@pytest.mark.parametrize("field", [*Vector.__dataclass_fields__])
def test_a_vector_that_lacks_a_field_is_refused(tmp_path, field):
    folder = copy_of_the_set(tmp_path)
    rewrite_index(folder, lambda index: index["vectors"][5].pop(field))
    with pytest.raises(SuiteError, match=f"states no {field}"):
        runner.read_suite(folder)


@pytest.mark.parametrize(
    "change", [{"exit_status": None}, {"exit_status": True}, {"verdict": ""}]
)
def test_a_vector_without_expectation_is_refused(tmp_path, change):
    folder = copy_of_the_set(tmp_path)
    rewrite_index(folder, lambda index: index["vectors"][5].update(change))
    with pytest.raises(SuiteError, match="has no expectation"):
        runner.read_suite(folder)


@pytest.mark.parametrize("name", ["bundle.rpb.zip", "replay.rpr.zip"])
def test_a_missing_file_is_a_problem(tmp_path, name):
    folder = copy_of_the_set(tmp_path)
    gone = min(folder.rglob(name))
    gone.unlink()
    found = list(runner.problems(runner.read_suite(folder), REQUIRED))
    path = gone.relative_to(folder)
    assert f"{path.parent} needs {path}, which is missing" in found


def test_a_missing_folder_is_a_problem(tmp_path):
    folder = copy_of_the_set(tmp_path)
    shutil.rmtree(folder / "integrity" / "expected_id")
    found = list(runner.problems(runner.read_suite(folder), REQUIRED))
    assert found == ["integrity/expected_id has no folder"]


def test_a_requirement_without_vector_and_reason_is_a_problem():
    found = list(runner.problems(SUITE, [*REQUIRED, "R-9.9"]))
    assert found == ["R-9.9 has no vector, and no reason why not"]


def test_a_reason_for_a_requirement_that_there_is_not_is_a_problem():
    reasons = {**SUITE.not_by_vector, "R-9.9": "why not"}
    found = list(runner.problems(SUITE._replace(not_by_vector=reasons), REQUIRED))
    assert found == ["R-9.9 is no requirement of spec.md"]


def test_a_vector_listed_twice_is_a_problem():
    twice = (*SUITE.vectors, SUITE.vectors[0])
    found = list(runner.problems(SUITE._replace(vectors=twice), REQUIRED))
    assert found == [f"{SUITE.vectors[0].id} is listed twice"]


@pytest.mark.parametrize("index", ["", "{}", "[]", '{"vectors": [], "x": 1}'])
def test_an_index_that_is_none_is_refused(tmp_path, index):
    (tmp_path / "index.json").write_text(index)
    with pytest.raises(SuiteError, match="cannot be used"):
        runner.read_suite(tmp_path)


def test_a_specification_without_requirements_is_refused(tmp_path):
    spec = tmp_path / "spec.md"
    spec.write_text("# nothing\n")
    with pytest.raises(SuiteError, match="states no requirement"):
        runner.requirements(spec)


def test_it_runs_as_a_module_and_fails_for_true():
    done = subprocess.run(
        [sys.executable, "-m", "tests.conformance.runner", "--", "/bin/true"],
        cwd=runner.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"0 of {len(SUITE.vectors)} vectors agree" in done.stdout
