from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

import reprobundle
from reprobundle.run.accessed import Places, accesses
from reprobundle.run.events import AnyEvent, EventFile, Open, Start

START = Start(
    t_ns=0,
    pid=1,
    parent_pid=0,
    kind="main",
    argv=("train.py",),
    executable="python",
    working_directory="/",
)


@pytest.fixture
def places(tmp_path, monkeypatch):
    for name in ("scratch", "original", "session", "home", "elsewhere"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    return Places(
        scratch=tmp_path / "scratch",
        original=tmp_path / "original",
        ignored=(tmp_path / "session",),
    )


def sorted_opens(places, *opens):
    seen = [Open(t_ns=i, path=str(p), mode=m) for i, (p, m) in enumerate(opens)]
    events: tuple[AnyEvent, ...] = (START, *seen)
    return accesses((EventFile(start=START, events=events, damaged_lines=0),), places)


def file(folder, name):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    return path


def test_a_read_in_the_scratch_folder_is_named_relative_to_it(places):
    seen = sorted_opens(places, (places.scratch / "data/x.csv", "read"))
    assert seen.read == {"data/x.csv"}
    assert not seen.read_outside


def test_a_read_elsewhere_is_an_input_the_project_does_not_hold(places, tmp_path):
    outside = file(tmp_path / "elsewhere", "set.csv")
    assert sorted_opens(places, (outside, "read")).read_outside == {outside}


def test_a_file_that_the_run_wrote_itself_is_no_input(places, tmp_path):
    made = file(tmp_path / "elsewhere", "cache.bin")
    seen = sorted_opens(places, (made, "write"), (made, "read"))
    assert not seen.read_outside
    assert seen.wrote_outside == {made}


def test_reads_and_writes_in_the_original_project_are_told_apart(places):
    seen = sorted_opens(
        places,
        (file(places.original, "a.csv"), "read"),
        (places.original / "b.csv", "write"),
    )
    assert seen.read_original == {places.original / "a.csv"}
    assert seen.wrote_original == {places.original / "b.csv"}
    assert not seen.read_outside


def test_a_link_from_the_scratch_folder_to_the_original_counts_as_scratch(places):
    large = file(places.original, "large.bin")
    (places.scratch / "large.bin").symlink_to(large)
    seen = sorted_opens(places, (places.scratch / "large.bin", "read"))
    assert seen.read == {"large.bin"}
    assert not seen.read_original


@pytest.mark.parametrize("name", ["/etc/hosts", "/usr/lib/os-release", "/proc/cpuinfo"])
def test_what_belongs_to_the_system_is_no_input(places, name):
    assert not sorted_opens(places, (name, "read")).read_outside


def test_what_describes_an_installed_package_is_no_input(places, tmp_path):
    named = file(tmp_path / "wheels", "click-8.1.dist-info/entry_points.txt")
    data = file(tmp_path / "wheels", "data.dist/entry_points.txt")
    seen = sorted_opens(places, (named, "read"), (data, "read"))
    assert seen.read_outside == {data}


def test_tool_caches_in_the_home_folder_are_no_input(places, tmp_path):
    cached = file(tmp_path / "home", ".cache/matplotlib/fonts.json")
    seen = sorted_opens(places, (cached, "read"))
    assert not seen.read_outside
    assert seen.left_out == {cached}  # And said, never silent.


@pytest.mark.parametrize(
    "name",
    [
        ".cache/mine/w.txt",
        ".cache/huggingface_mine/b.bin",
        ".cache/huggingface/accelerate/default_config.yaml",
        ".cache/torch/checkpoints/w.pth",
        ".config/mine.toml",
        ".config/matplotlib/matplotlibrc",
        ".local/share/mine/x.csv",
        ".ipython/profile_default/startup/00.py",
        ".triton/override/k.ttir",
    ],
)
def test_whatever_else_lies_in_a_hidden_folder_of_the_home_is_an_input(
    places, tmp_path, name
):
    mine = file(tmp_path / "home", name)
    seen = sorted_opens(places, (mine, "read"))
    assert seen.read_outside == {mine}
    assert not seen.left_out


@pytest.mark.parametrize(
    "name",
    [
        "huggingface/hub/models--bert/blobs/0a1b",
        "huggingface/datasets/mnist/train.arrow",
        "torch/hub/checkpoints/resnet18.pth",
        "kagglehub/datasets/x.csv",
    ],
)
def test_fetched_weights_and_data_sets_in_a_cache_are_inputs(places, tmp_path, name):
    cached = file(tmp_path / "home", f".cache/{name}")
    assert sorted_opens(places, (cached, "read")).read_outside == {cached}


@pytest.mark.parametrize(
    "name",
    [
        "huggingface/token",
        "huggingface/hub/.locks/models--bert/0a1b.lock",
        "huggingface/hub/models--bert/refs/main",
        "torch_extensions/x/y.so",
    ],
)
def test_secrets_and_bookkeeping_of_a_cache_are_no_inputs(places, tmp_path, name):
    cached = file(tmp_path / "home", f".cache/{name}")
    assert not sorted_opens(places, (cached, "read")).read_outside


def test_a_data_set_in_the_home_folder_is_an_input(places, tmp_path):
    data = file(tmp_path / "home", "datasets/x.csv")
    assert sorted_opens(places, (data, "read")).read_outside == {data}


def test_the_runs_own_machinery_is_no_input(places, tmp_path):
    inner = file(tmp_path / "session", "events/1.jsonl")
    assert not sorted_opens(places, (inner, "read"), (inner, "write")).wrote_outside


def test_our_own_package_is_no_input_where_it_is_used_from_a_checkout(places):
    package = Path(reprobundle.__file__).parent
    assert not sorted_opens(places, (package / "__init__.py", "read")).read_outside


def test_a_file_in_the_temporary_folder_counts_even_where_that_lies_below_var(
    places, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "elsewhere"))
    monkeypatch.setattr(
        "reprobundle.run.accessed.SYSTEM_FOLDERS", (tmp_path / "elsewhere",)
    )
    data = file(tmp_path / "elsewhere", "x.csv")
    assert sorted_opens(places, (data, "read")).read_outside == {data}


def test_a_temporary_file_that_the_run_removed_is_not_reported(
    places, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "elsewhere"))
    kept = file(tmp_path / "elsewhere", "kept.bin")
    seen = sorted_opens(
        places, (tmp_path / "elsewhere/gone.bin", "write"), (kept, "write")
    )
    assert seen.wrote_outside == {kept}


def test_a_module_from_a_bytecode_cache_is_its_source(places, tmp_path):
    cached = file(tmp_path / "elsewhere/lib/__pycache__", "tools.cpython-311.pyc")
    assert sorted_opens(places, (cached, "read")).read_outside == {cached}
    source = file(tmp_path / "elsewhere/lib", "tools.py")
    seen = sorted_opens(places, (cached, "read"), (source, "read"))
    assert seen.read_outside == {source}


def test_the_link_that_led_to_a_file_is_kept_the_first_of_several(places, tmp_path):
    blob = file(tmp_path / "elsewhere", "0123abcd")
    links = [tmp_path / "elsewhere" / name for name in ("b.json", "a.json")]
    for link in links:
        link.symlink_to(blob)
    seen = sorted_opens(places, *((link, "read") for link in links))
    assert seen.read_outside == {blob}
    assert seen.opened_as == {blob: links[1]}
    assert sorted_opens(places, (blob, "read")).opened_as == {}
