import numpy as np
import pytest

from reprobundle.outputs.kinds import HEAD_BYTES, detect
from tests.outputs import files

TORCH_ZIP = files.zipped(archive__data=b"")


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("a.npy", files.npy(np.zeros(2)), ("arrays", "npy")),
        ("a.npz", files.npz(x=np.zeros(2)), ("arrays", "npz")),
        (
            "a.st",
            files.safetensors({"x": ("F32", (1,), bytes(4))}),
            ("arrays", "safetensors"),
        ),
        ("a.pt", b"\x80\x02}q\x00.", ("arrays", "checkpoint")),
        ("a.csv", b"x,y\n1,2\n", ("table", "csv")),
        ("a.TSV", b"x\ty\n", ("table", "tsv")),
        ("a.json", b"{}", ("document", "json")),
        ("a.jsonl", b"{}\n{}\n", ("document", "jsonl")),
        ("a.log", b"step 1\n", ("log", "text")),
        ("a.txt", "größer\n".encode(), ("text", "text")),
        ("record:loss", b"1.5\n", ("document", "json")),
        ("metric:loss", b"[1.5]\n", ("document", "json")),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0", ("bytes", "bytes")),
        ("empty.txt", b"", ("text", "text")),
    ],
)
def test_content_and_name_give_the_kind(name, head, expected):
    assert detect(name, head) == expected


def test_content_beats_a_misleading_suffix():
    assert detect("weights.csv", files.npy(np.zeros(2))) == ("arrays", "npy")
    assert detect("weights.npy", b"just text\n") == ("text", "text")


def test_a_pickle_that_is_no_checkpoint_is_bytes():
    assert detect("model.pkl", b"\x80\x04\x95\0\0") == ("bytes", "bytes")


def test_a_torch_archive_is_a_checkpoint_whatever_it_is_called():
    head = files.zipped(model__data=b"").replace(b"model/data", b"mod/data.pkl"[:10])
    assert detect("weights.bin", head) == ("arrays", "checkpoint")
    archive = files.zipped(**{"m__data.pkl": b"x"})
    assert detect("weights.model", archive) == ("arrays", "checkpoint")


def test_another_zip_is_bytes():
    assert detect("results.zip", files.zipped(**{"a.txt": b"x"})) == ("bytes", "bytes")


def test_a_character_cut_at_the_end_of_the_head_is_still_text():
    head = (b"a" * (HEAD_BYTES - 1) + "ü".encode())[:HEAD_BYTES]
    assert detect("a.txt", head) == ("text", "text")


def test_a_broken_character_before_the_end_is_not_text():
    assert detect("a.txt", b"abc\xff\xfeabc") == ("bytes", "bytes")
