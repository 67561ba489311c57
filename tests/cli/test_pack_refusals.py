"""What `pack` refuses: one helpful line, the right status, nothing written."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import reprobundle


def refused(
    project,
    *options,
    command=("python", "train.py"),
    status=20,
    name="x.rpb.zip",
    online=False,
):
    target = project.parent / name
    done = reprobundle(
        *("pack", "-o", target, "-q", *options, "--", *command),
        cwd=project,
        online=online,
    )
    assert done.status == status, done.err
    assert not target.exists()
    assert sorted(path.name for path in project.parent.iterdir()) == ["project"]
    assert "Traceback" not in done.err.replace(
        "Traceback (most recent call last)", "", 1
    )
    (line,) = [
        line for line in done.err.splitlines() if line.startswith("reprobundle:")
    ]
    return line


def test_without_dashes_the_command_is_not_guessed(project):
    done = reprobundle("pack", "train.py", cwd=project)
    assert done.status == 20
    assert "put the whole command after --" in done.err


def test_an_empty_command_is_refused(project):
    done = reprobundle("pack", "--", cwd=project)
    assert done.status == 20
    assert "there is no command to run" in done.err


def test_a_command_that_does_not_exist_is_named(project):
    line = refused(project, command=("trainn", "now"))
    assert "'trainn' cannot be started: No such file or directory" in line


def test_a_script_that_does_not_exist_fails_as_python_says(project):
    line = refused(project, command=("python", "trian.py"), status=22)
    assert "can't open file" in line


def test_nothing_to_compare_is_refused_with_the_remedy(project):
    line = refused(project, command=("python", "-c", "print(1)"))
    assert "nothing to compare" in line
    assert "--metric" in line


def test_a_printed_number_is_enough_to_compare(project):
    target = project.parent / "x.rpb.zip"
    done = reprobundle(
        "pack",
        "-o",
        target,
        "-q",
        "--metric",
        "loss=loss ([0-9.]+)",
        "--fact",
        "batch_size=8",
        "--",
        "python",
        "-c",
        "print('loss 0.5')",
        cwd=project,
    )
    assert done.status == 0, done.err
    assert "metric:loss" in done.out
    record = json.loads(reprobundle("cat", target, "runs/1/record.json").out)
    stated = record["environment"]["stated.batch_size"]
    assert (stated["value"], stated["source"][:18]) == ("8", "stated by the user")
    # Stating a size does not make it observed.
    assert record["environment"]["observed.batch_size"]["value"] is None


def test_a_fact_of_another_form_is_refused(project):
    done = reprobundle("pack", "--fact", "Batch", "--", "python", "x.py", cwd=project)
    assert done.status == 20
    assert "'Batch' is not of the form KEY=VALUE" in done.err


def test_a_failing_command_writes_nothing(project):
    # Online: nor does the resolving leave anything that was begun meanwhile.
    command = ("python", "-c", "raise ValueError('broken')")
    line = refused(project, command=command, status=22, online=True)
    assert "ended with status 1: ValueError: broken" in line
    assert "--expect-failure" in line


def test_an_expected_failure_that_succeeds_is_refused(project):
    line = refused(project, "--expect-failure")
    assert "expected to fail but ended with status 0" in line


def test_an_input_that_does_not_exist_is_named(project):
    line = refused(project, "--input", "data/gone.csv")
    assert "data/gone.csv' does not exist" in line


@pytest.mark.parametrize("options", [("--input", "/nonexist"), ("-o", "no/x.rpb.zip")])
def test_a_path_that_does_not_exist_is_refused_before_the_run(project, options):
    ran = project.parent / "ran"
    code = f"open({str(ran)!r}, 'w'); open('result.txt', 'w').write('1')"
    done = reprobundle("pack", *options, "--", "python", "-c", code, cwd=project)
    assert done.status == 20
    assert len(done.err.splitlines()) == 1
    assert "does not exist" in done.err
    assert not ran.exists()
    assert not (project / "no").exists()


def test_an_output_beyond_the_limit_is_named_with_both_sizes(project):
    code = "open('big.bin', 'wb').write(bytes(2000))"
    line = refused(project, "--output-limit", "1000", command=("python", "-c", code))
    assert "output 'big.bin' has 2,000 bytes, the limit is 1,000" in line


def test_a_bundle_has_the_extension_that_issue_trackers_take(project):
    line = refused(project, name="x.rpb")
    assert "ends in .rpb.zip" in line


def test_an_unknown_pass_is_named(project):
    assert "unknown pass 'twice'" in refused(project, "--passes", "measured,twice")


def test_the_measured_pass_cannot_be_left_out(project):
    assert "cannot be left out" in refused(project, "--passes", "repeat")


def test_a_policy_with_a_mistake_is_refused_by_its_path(project):
    policy = project / "policy.json"
    policy.write_text('{"profile": "lenient"}')
    line = refused(project, "--policy", "policy.json")
    assert "policy.json" in line
    assert "lenient" in line


def test_a_project_folder_that_does_not_exist_is_named(project):
    assert "'nowhere' does not exist" in refused(project, "--project", "nowhere")


def test_a_folder_that_cannot_be_written_is_named(project):
    done = reprobundle(
        "pack", "-o", "/proc/x.rpb.zip", "-q", "--", "python", "train.py", cwd=project
    )
    assert done.status == 20
    assert "folder '/proc' cannot be" in done.err


def test_a_file_that_git_ignores_is_pointed_out(project):
    import subprocess

    (project / ".gitignore").write_text("data/\n")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    line = refused(project, status=22)
    assert (
        "data/points.csv exists but git ignores it: add --input data/points.csv" in line
    )


def test_a_folder_that_holds_nothing_to_keep_is_no_missing_file(project):
    (project / "results").mkdir()
    code = "open('results/loss.txt', 'w').write('1')"
    line = refused(project, command=("python", "-c", code), status=22)
    assert "folder results holds nothing that git keeps" in line
    assert "have the command make it" in line


@pytest.mark.parametrize(
    ("code", "status"),
    [
        pytest.param("raise SystemExit(3)", 22, id="the command failed"),
        pytest.param("print('no output')", 20, id="nothing to compare"),
    ],
)
def test_a_refusal_leaves_no_copies_behind(project, tmp_path, code, status):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = reprobundle(
        *("pack", "-o", tmp_path / "x.rpb.zip", "-q", "--", "python", "-c", code),
        cwd=project,
        env={"TMPDIR": str(temporary)},
    )
    assert done.status == status, done.err
    assert list(temporary.iterdir()) == []


def test_two_files_that_a_mac_would_merge_are_refused(project):
    (project / "Model.py").write_text("")
    line = refused(project)
    assert "twin" in line
    assert "rename the file" in line


def test_an_output_whose_name_a_mac_cannot_hold_is_refused(project):
    line = refused(
        project, command=("python", "-c", "open('run_12:30.txt','w').write('1')")
    )
    assert "run_12:30.txt" in line
    assert "rename the file" in line


def test_a_run_whose_files_are_not_all_in_the_bundle_is_refused(project):
    # Read by a means that no recorder sees, and too large to be kept unread.
    (project / "weights.bin").write_bytes(bytes((1 << 20) + 1))
    code = (
        "import subprocess; "
        "open('size.txt','w').write(str(len(subprocess.check_output(['cat','weights.bin']))))"
    )
    line = refused(project, command=("python", "-c", code))
    assert "the repeat pass ended with status 1" in line
    assert "--input" in line


def test_a_seed_is_a_number(project):
    done = reprobundle("pack", "--seed", "x", "--", "python", "train.py", cwd=project)
    assert done.status == 20
    assert "'x' is not a valid" in done.err


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_is_not_mistaken_for_a_missing_command(option):
    done = reprobundle("pack", option)
    assert done.status == 0
    assert "-- COMMAND..." in done.out
