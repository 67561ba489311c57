"""What the scan finds, what it leaves alone, and how long it may take."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from reprobundle.errors import BadCallError, SensitiveContentError
from reprobundle.format.writer import Source
from reprobundle.run.project import Stage
from reprobundle.run.secrets import scan
from reprobundle.run.secrets.gate import Gate
from reprobundle.run.secrets.issue import without_secrets
from reprobundle.run.secrets.scan import redacted, scan_bytes, scan_file
from tests.run.secrets_corpus import SECRETS, TRAPS, expand

ROOT = Path(__file__).parents[2]
TOKEN = expand("hf~_<a34>", 1).decode()


def numbered(cases):
    return [(number, *case) for number, case in enumerate(cases)]


@pytest.mark.parametrize(("number", "kind", "name", "snippet"), numbered(SECRETS))
def test_a_secret_is_found_by_its_kind_and_line(number, kind, name, snippet):
    text = expand(snippet, number)
    table = kind == "personal-column"
    found = scan_bytes(name, text if table else b"first line\n" + text)
    assert kind in {place.kind for place in found}
    assert found[0].line == (1 if table else 2)


def test_an_issue_is_scanned_before_and_behind_a_bundle_that_is_text():
    base64 = "QUJD\nREVG\n"
    for text, line in (
        (f"x\n{TOKEN}\n{base64}end\n", 2),
        (f"x\n{base64}end\n{TOKEN}\n", 5),
    ):
        with pytest.raises(SensitiveContentError, match=rf"line {line} \("):
            without_secrets(text, redact=False, but_not=base64)
        shown = without_secrets(text, redact=True, but_not=base64)
        assert TOKEN not in shown
        assert base64 in shown


@pytest.mark.parametrize(("number", "name", "snippet"), numbered(TRAPS))
def test_what_only_looks_like_one_is_left_alone(number, name, snippet):
    assert scan_bytes(name, expand(snippet, number)) == []


def test_the_corpus_is_half_traps_and_large_enough():
    assert len(SECRETS) + len(TRAPS) >= 60
    assert abs(len(SECRETS) - len(TRAPS)) <= 10


def test_this_repository_is_not_refused():
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=False
    ).stdout.splitlines()
    names = [name for name in listed if (ROOT / name).is_file()]
    if not names:
        pytest.skip("not a git checkout")
    assert [found for name in names for found in scan_file(name, ROOT / name)] == []


@pytest.mark.parametrize(
    "unit",
    [
        b"a", b"=", b'password="', b"://a:", b"eyJa.", b"token" + b" " * 8,
        b"-----BEGIN PRIVATE KEY-----\n", b"sk-ant-", b"secret_" * 3, b"AKIA",
        b"x" * 50 + b"://", b"machine password ", b"hf_" + b"a" * 70,
    ],
)  # fmt: skip
def test_hostile_text_takes_no_more_than_linear_time(unit):
    def seconds(size_bytes):
        text = unit * (size_bytes // len(unit))
        start = time.process_time()
        scan_bytes("x.env", text)
        return time.process_time() - start

    seconds(1 << 12)
    small = min(seconds(1 << 14) for _ in range(3))
    large = min(seconds(1 << 17) for _ in range(2))
    # Eight times the text; quadratic work would take 64 times as long.
    assert large < 32 * max(small, 5e-4)


def test_of_binary_content_only_the_start_is_searched(tmp_path, monkeypatch):
    monkeypatch.setattr(scan, "WINDOW_BYTES", 1000)
    file = tmp_path / "w.bin"
    file.write_bytes(bytes(100) + TOKEN.encode() + bytes(5000) + TOKEN.encode())
    (found,) = scan_file("w.bin", file)
    assert (found.kind, found.line) == ("huggingface-token", 0)
    file.write_bytes(bytes(5000) + TOKEN.encode())
    assert scan_file("w.bin", file) == []


def test_large_text_is_read_in_windows_with_both_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(scan, "WHOLE_BYTES", 1000)
    monkeypatch.setattr(scan, "WINDOW_BYTES", 100)
    file = tmp_path / "x.log"
    file.write_text("x\n" * 5000 + TOKEN + "\n")
    assert [place.kind for place in scan_file("x.log", file)] == ["huggingface-token"]


def test_a_message_is_shown_without_its_secrets():
    shown = redacted(f"ValueError: {TOKEN} has expired, password=Summer2031!")
    assert shown == "ValueError: [huggingface-token] has expired, password=[password]"


# --- the gate


def source(content, path="project/a.py"):
    return Source(path, "project", content)


def test_a_refusal_names_place_and_kind_and_never_the_value():
    with pytest.raises(SensitiveContentError) as caught:
        Gate([]).check_sources([source(f"x = 1\nt = '{TOKEN}'\n".encode())])
    message = str(caught.value)
    assert "a.py:2 (huggingface-token)" in message
    assert "--allow-sensitive huggingface-token@a.py" in message
    assert caught.value.places == ("huggingface-token@a.py",)
    assert not any(TOKEN[i : i + 6] in message for i in range(3, len(TOKEN) - 6))


@pytest.mark.parametrize("allowed", ["a.py", "./a.py", "huggingface-token@a.py"])
def test_what_is_allowed_passes_and_is_told_in_the_record(allowed):
    gate = Gate([allowed])
    gate.check_sources([source(TOKEN.encode())])
    (remark,) = gate.remarks()
    assert (remark.id, remark.where) == ("sensitive-allowed", "a.py:1")
    assert "huggingface-token" in remark.text


@pytest.mark.parametrize("allowed", ["b.py", "jwt@a.py"])
def test_an_allowance_is_for_one_kind_at_one_place(allowed):
    with pytest.raises(SensitiveContentError):
        Gate([allowed]).check_sources([source(TOKEN.encode())])


def test_an_unknown_kind_is_refused():
    with pytest.raises(BadCallError, match="there is no kind 'passwort'"):
        Gate(["passwort@a.py"])


def test_the_command_is_scanned_with_the_value_behind_an_option(tmp_path):
    value = expand("<a32>", 3).decode()
    with pytest.raises(SensitiveContentError, match=r"command \(secret-value\)"):
        Gate([]).check_project(
            Stage(folder=tmp_path),
            ("python", "x.py", "--api-key", value),
            withheld=(),
            limit_bytes=1,
        )


def test_a_column_is_named_so_that_it_can_be_found():
    table = source(b"id,email\n1,a@lab.org\n", "runs/1/outputs/risk.csv")
    with pytest.raises(
        SensitiveContentError, match=r"outputs/risk\.csv:1 column email"
    ):
        Gate([]).check_sources([table])


def test_a_home_folder_in_a_file_is_a_gap_and_no_refusal(tmp_path):
    file = tmp_path / "a.py"
    file.write_text("\nopen('/home/alice/x')\n")
    gate = Gate([], home="/home/alice")
    gate.check_sources([source(file)])
    (remark,) = gate.remarks()
    assert (remark.id, remark.severity, remark.where) == ("home-path", "gap", "a.py:2")
