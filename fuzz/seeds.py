"""Where the fuzzer starts: the conformance vectors, and a file of every other kind."""

from __future__ import annotations

import base64
import contextlib
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from io import BytesIO

from fuzz.mutations import encoded
from fuzz.plans import plan_of, together
from fuzz.targets import VECTORS


def seeds(target: str) -> Iterator[bytes]:
    """Yield inputs for one target."""
    if target == "output":
        yield from _outputs()
    elif target in _WRITTEN:
        yield from _WRITTEN[target]
    if target == "bundle":
        yield from _with_replay_files()
    files = sorted(VECTORS.rglob("*.zip"))
    for path in files:
        data = path.read_bytes()
        if target == "container" and len(data) < 20_000:
            yield data
            continue
        if target not in ("bundle", "document", "policy", "names"):
            continue
        try:
            plan = plan_of(data)
        except Exception:
            continue
        if target == "bundle":
            yield encoded(plan)
        elif target == "names":
            yield "\n".join(plan["sealed"]).encode()
        else:
            yield from _documents(plan["sealed"], target)


def _with_replay_files() -> Iterator[bytes]:
    index = json.loads((VECTORS / "index.json").read_bytes())
    for vector in index["vectors"]:
        words = vector["arguments"]
        if "--replay-file" in words:
            beside = VECTORS / words[words.index("--replay-file") + 1]
            bundle = (VECTORS / vector["file"]).read_bytes()
            with contextlib.suppress(ValueError, zipfile.BadZipFile):
                yield encoded(together(bundle, beside.read_bytes()))


def _documents(sealed: dict[str, dict[str, object]], target: str) -> Iterator[bytes]:
    for path, told in sealed.items():
        if "json" in told and (target == "document" or path == "policy.json"):
            text = json.dumps(told["json"], indent=1, sort_keys=True)
            yield f"{text}\n".encode()


_WRITTEN: dict[str, tuple[bytes, ...]] = {
    "document": (
        b'{"a":[1,2.5e-3,null,true,"\\u00e9\\ud83d\\ude00"],"b":{"c":{}}}',
        b"[18446744073709551616,-0.0,1E400,-9223372036854775809]",
        b'{\n "a": 1\n}\n',
    ),
    "names": (
        "a/b.txt\nA/b.txt\na/B.TXT\nstraße\nSTRASSE".encode(),
        b"con\ncom1.txt\nlpt\xc2\xb9\nnul .x\na. \n..\n../x\nC:x\n\\\\?\\x",
        "e\u0301\né\n\u212b\nå\nﬁ\nfi\nİ\ni".encode(),
        b"a" * 255 + b"/" + b"b" * 255 + b"\n" + b"/".join([b"a"] * 33),
    ),
    "signature": (
        b"-----BEGIN SSH SIGNATURE-----\n"
        + base64.b64encode(
            b"SSHSIG\0\0\0\1"
            + b"".join(
                struct.pack(">I", len(part)) + part
                for part in (
                    struct.pack(">I", 11)
                    + b"ssh-ed25519"
                    + struct.pack(">I", 32)
                    + bytes(32),
                    b"reprobundle",
                    b"",
                    b"sha512",
                    struct.pack(">I", 11)
                    + b"ssh-ed25519"
                    + struct.pack(">I", 64)
                    + bytes(64),
                )
            )
        )
        + b"\n-----END SSH SIGNATURE-----\n",
        b'a@x,"b c" namespaces="reprobundle",valid-after="20200101" ssh-ed25519 AAAA c\n',
        b"# comment\nssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGzz me\n"
        b"ecdsa-sha2-nistp256 AAAA\nsk-ssh-ed25519@openssh.com AAAA\n",
    ),
    "policy": (
        b'{"schema":"reprobundle/policy/1","metrics":[{"name":"loss","pattern":"loss ([0-9.]+)"}],'
        b'"roles":[{"match":"*.npy","role":"prediction"}],"author":"a","reason":"b"}',
    ),
    "lock": (
        b'lock-version = "1.0"\ncreated-by = "uv"\nrequires-python = ">=3.10"\n'
        b"environments = [\"sys_platform == 'linux'\"]\n"
        b'[[packages]]\nname = "numpy"\nversion = "2.0.0"\nmarker = "python_version >= \'3.10\'"\n'
        b'wheels = [{ name = "numpy-2.0.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", '
        b'url = "https://example.org/numpy.whl", size = 3, hashes = { sha256 = "00" } }]\n'
        b'[[packages]]\nname = "a"\nversion = "1"\nsdist = { name = "a-1.tar.gz", url = "https://example.org/a-1.tar.gz", hashes = { sha256 = "00" } }\n'
        b'[[packages]]\nname = "b"\nvcs = { type = "git", url = "x", commit-id = "00" }\n'
        b'[tool.reprobundle]\nunavailable = [{ name = "c", version = "1", marker = "", reason = "r" }]\n',
    ),
    "events": (
        b'{"event":"start","t_ns":1,"pid":1,"parent_pid":0,"kind":"main","argv":["a"],'
        b'"executable":"p","working_directory":"/"}\n'
        b'{"event":"fact","t_ns":2,"name":"a","value":["b"]}\n{"event":"end","t_ns":3}\n',
    ),
}


def _outputs() -> Iterator[bytes]:
    import numpy as np

    arrays = (
        np.arange(6, dtype="<f4").reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array([(1, 2.5)], dtype=[("a", ">i4"), ("b", "<f8", (2,))]),
        np.array(["ab", "c"]),
        np.array([1 + 2j, np.nan]),
        np.array([True, False]),
        np.zeros((0, 3), "u1"),
    )
    for array in arrays:
        held = BytesIO()
        np.save(held, array)
        yield b"x.npy\n" + held.getvalue()
    held = BytesIO()
    np.savez_compressed(held, a=arrays[0], b=arrays[1])
    yield b"x.npz\n" + held.getvalue()
    header = json.dumps(
        {
            "__metadata__": {"format": "pt"},
            "w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
            "b": {"dtype": "BF16", "shape": [1, 1], "data_offsets": [8, 10]},
            "q": {"dtype": "F4", "shape": [4], "data_offsets": [10, 12]},
        }
    ).encode()
    packed = struct.pack("<Q", len(header)) + header + bytes(12)
    yield b"x.safetensors\n" + packed
    yield b"x.pt\n" + packed
    yield b'x.csv\na,b,a\n1,2.5,x\n3,nan,"q""r"\n'
    yield b"x.tsv\n1\t2\n3\t4\n"
    yield b'x.json\n{"a": [1, {"b": 2.5}], "c": null, "d": NaN}'
    yield b'x.jsonl\n{"a": 1}\n\n{"a": 2.0}\n'
    yield b"x.log\nepoch 1 loss 0.5\n\xff\n"
    yield b"metric:loss\n0.5"
    cell = {
        "cell_type": "code",
        "source": ["a"],
        "outputs": [
            {"output_type": "stream", "name": "stdout", "text": ["x 1.5\n"]},
            {
                "output_type": "display_data",
                "data": {"text/plain": "<x at 0x7f0000000000>", "image/png": "AAAA"},
            },
            {"output_type": "error", "ename": "E", "evalue": "v", "traceback": []},
        ],
    }
    book = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    yield b"x.ipynb\n" + json.dumps(book).encode()
    yield from _pictures()


def _pictures() -> Iterator[bytes]:
    from PIL import Image

    for kind in ("PNG", "GIF", "JPEG", "BMP", "TIFF", "WEBP"):
        for mode in ("RGB", "L", "P"):
            if (kind, mode) in (("JPEG", "P"), ("WEBP", "P"), ("WEBP", "L")):
                continue
            held = BytesIO()
            Image.effect_noise((8, 6), 20).convert(mode).save(held, kind)
            yield b"x.img\n" + held.getvalue()
    raw = b"\0" + bytes(range(12))

    def chunk(name: bytes, body: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + body))
        return struct.pack(">I", len(body)) + name + body + check

    yield (
        b"x.png\n\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 1, 16, 2, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(raw))
        + chunk(b"IEND", b"")
    )
