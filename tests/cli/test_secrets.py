"""`pack` refuses to seal secrets and persons, and tells no value of them anywhere."""

from __future__ import annotations

import json
import shutil
import stat
import zipfile

import pytest

from tests.cli.conftest import reprobundle
from tests.run.secrets_corpus import expand

TOKEN = expand("hf~_<a34>", 11).decode()


def pack(project, *options, command=("python", "train.py"), online=False):
    """Pack with a temporary folder of its own, and return what was left there."""
    target = project.parent / "x.rpb.zip"
    temporary = project.parent / "tmp"
    temporary.mkdir(exist_ok=True)
    done = reprobundle(
        "pack",
        "-o",
        target,
        "--seed",
        "7",
        "-q",
        *options,
        "--",
        *command,
        cwd=project,
        env={"TMPDIR": str(temporary)},
        online=online,
    )
    return target, done, [path for path in temporary.rglob("*") if path.is_file()]


def tells(text):
    return any(TOKEN[start : start + 6] in text for start in range(len(TOKEN) - 5))


def refused(project, *options, command=("python", "train.py")):
    target, done, left = pack(project, *options, command=command)
    assert done.status == 20, done.out + done.err
    assert not target.exists()
    assert not tells(done.out + done.err)
    assert not any(tells(path.read_text(errors="replace")) for path in left)
    (line,) = [
        line for line in done.err.splitlines() if line.startswith("reprobundle:")
    ]
    return line, done


def test_a_token_in_the_project_is_refused_before_anything_runs(project):
    (project / ".env").write_text(f"USER=a\nHF={TOKEN}\n")
    line, done = refused(project)
    assert ".env:2 (huggingface-token)" in line
    assert "--exclude PATH" in line
    assert "measured pass" not in done.err


def test_an_excluded_file_is_not_in_the_bundle(project):
    (project / ".env").write_text(f"HF={TOKEN}\n")
    target, done, _ = pack(project, "--exclude", ".env")
    assert done.status == 0, done.err
    with zipfile.ZipFile(target) as archive:
        assert "project/.env" not in archive.namelist()
        assert not any(
            TOKEN.encode() in archive.read(name) for name in archive.namelist()
        )


def test_what_the_author_allows_is_in_the_record_by_kind_and_place(project):
    (project / ".env").write_text(f"HF={TOKEN}\n")
    target, done, _ = pack(project, "--allow-sensitive", "huggingface-token@.env")
    assert done.status == 0, done.err
    with zipfile.ZipFile(target) as archive:
        record = json.loads(archive.read("runs/1/record.json"))
    (remark,) = [one for one in record["remarks"] if one["id"] == "sensitive-allowed"]
    assert remark["where"] == ".env:1"
    assert "huggingface-token" in remark["text"]
    assert reprobundle("verify", "--integrity", target).status == 0


def test_a_token_on_the_command_line_is_refused(project):
    line, _ = refused(project, command=("python", "train.py", f"--token={TOKEN}"))
    assert "command (huggingface-token)" in line


def test_tokens_that_the_run_prints_or_writes_are_refused(project):
    first, second = TOKEN[:10], TOKEN[10:]
    (project / "late.py").write_text(
        f"token = '{first}' + '{second}'\n"
        "print('using', token)\n"
        "open('out.csv', 'w').write('id,email\\n1,ann@lab.org\\n')\n"
    )
    line, done = refused(project, command=("python", "late.py"))
    assert "stdout.txt:1 (huggingface-token)" in line
    assert "outputs/out.csv:1 column email" in line
    assert "measured pass" in done.err


def test_the_last_line_of_a_failure_is_told_without_its_token(project):
    first, second = TOKEN[:10], TOKEN[10:]
    code = f"raise ValueError('bad token ' + '{first}' + '{second}')"
    _, done, _ = pack(project, command=("python", "-c", code))
    assert done.status == 22
    assert "ValueError: bad token [huggingface-token]" in done.err
    assert TOKEN not in done.err


def test_no_variable_is_recorded_that_is_not_on_the_list(project, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("MY_SETTING", "planted-value-4711")
    # The lock for other systems is sealed, too.
    target, done, _ = pack(project, online=True)
    assert done.status == 0, done.err
    with zipfile.ZipFile(target) as archive:
        sealed = b"".join(archive.read(name) for name in archive.namelist())
    assert TOKEN.encode() not in sealed
    assert b"planted-value-4711" not in sealed
    assert b"MY_SETTING" not in sealed


LEAKING = """
import os, sys, pathlib
first, second = {halves!r}
pathlib.Path("note.txt").write_text(f"{{os.getpid()}} {{first + second}}\\n")
if os.path.exists({marker!r}):
    print("using", first + second)
"""


def replayed(bundle, *options):
    # Where records that are refused are kept aside.
    state = {"XDG_STATE_HOME": str(bundle.parent / "state")}
    common = (bundle, "--yes", "--passes", "measured", "-q")
    return reprobundle("replay", *common, *options, env=state)


def attached(bundle):
    """Return the remarks of each attached record by its id."""
    with zipfile.ZipFile(bundle) as archive:
        return {
            name.split("/")[1]: [
                (one["id"], one["where"])
                for one in json.loads(archive.read(name))["remarks"]
            ]
            for name in archive.namelist()
            if name.startswith("replays/") and name.endswith("/record.json")
        }


@pytest.fixture(scope="module")
def leaking(tmp_path_factory):
    """Pack a run that writes an allowed token, and prints it where a file exists."""
    project = tmp_path_factory.mktemp("leaking") / "work"
    project.mkdir()
    marker = project.parent / "marker"
    code = LEAKING.format(halves=(TOKEN[:10], TOKEN[10:]), marker=str(marker))
    (project / "leak.py").write_text(code)
    bundle, done, _ = pack(
        project,
        "--passes",
        "measured",
        "--offline",
        "--allow-sensitive",
        "huggingface-token@outputs/note.txt",
        command=("python", "leak.py"),
    )
    assert done.status == 0, done.err
    return bundle, marker


def test_what_the_author_allowed_is_attached_and_what_nobody_allowed_is_not(leaking):
    bundle, marker = leaking
    marker.unlink(missing_ok=True)
    done = replayed(bundle)
    (remarks,) = attached(bundle).values()
    assert ("sensitive-allowed", "outputs/note.txt:1") in remarks, done.err
    marker.touch()
    before = bundle.read_bytes()
    done = replayed(bundle)
    assert done.status == 20
    assert "the replay ran, and its record is not attached: stdout.txt:1" in done.err
    assert "--allow-sensitive huggingface-token@stdout.txt" in done.err
    assert not tells(done.out + done.err)
    assert bundle.read_bytes() == before
    aside = bundle.with_name("aside.rpr.zip")
    assert replayed(bundle, "--record", aside).status == 20
    assert not aside.exists()
    done = replayed(bundle, "--allow-sensitive", "huggingface-token@stdout.txt")
    assert any(
        ("sensitive-allowed", "stdout.txt:1") in remarks
        for remarks in attached(bundle).values()
    ), done.err


def test_a_refused_record_is_kept_aside_and_attached_without_another_run(leaking):
    bundle, marker = leaking
    marker.touch()
    state = bundle.parent / "state"
    shutil.rmtree(state, ignore_errors=True)
    done = replayed(bundle)
    (kept,) = (state / "reprobundle/refused").iterdir()
    assert done.status == 20
    allow = ("--allow-sensitive", "huggingface-token@stdout.txt")
    assert f"reprobundle attach {bundle} {kept} {' '.join(allow)}" in done.err
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert TOKEN.encode() in kept.read_bytes()

    before = bundle.read_bytes()
    variables = {"XDG_STATE_HOME": str(state)}
    again = reprobundle("attach", bundle, kept, env=variables)
    assert again.status == 20
    assert "nothing is attached: stdout.txt:1 (huggingface-token)" in again.err
    assert not tells(again.out + again.err)
    assert bundle.read_bytes() == before
    assert kept.exists()

    known = set(attached(bundle))
    taken = reprobundle("attach", bundle, kept, *allow, env=variables)
    assert taken.status == 0, taken.err
    (new,) = set(attached(bundle)) - known
    assert ("sensitive-allowed", "stdout.txt:1") in attached(bundle)[new]
    assert f"attached replay {new}" in taken.out
    assert not kept.exists()
    verdict = reprobundle("verify", bundle).out
    assert "TAMPERED" not in verdict
    assert "UNREADABLE" not in verdict
    assert new[:12] in verdict


def test_what_a_record_says_was_allowed_needs_no_second_yes(leaking):
    bundle, marker = leaking
    marker.touch()
    alone = bundle.with_name("mine.rpr.zip")
    allow = ("--allow-sensitive", "huggingface-token@stdout.txt")
    # It prints a process id, so its verdict is no; the record is written all the same.
    assert replayed(bundle, "--record", alone, *allow).status == 10
    done = reprobundle("attach", bundle, alone)
    assert done.status == 0, done.err
    assert alone.exists(), "a file of the user's own is never deleted"
    again = reprobundle("attach", bundle, alone)
    assert "its replays were attached before" in again.out


def test_a_kind_that_does_not_exist_is_told_before_the_replay_runs(leaking):
    bundle, _ = leaking
    done = replayed(bundle, "--allow-sensitive", "huggingfacetoken@x")
    assert done.status == 20
    assert "there is no kind 'huggingfacetoken'" in done.err
    assert "running" not in done.err
