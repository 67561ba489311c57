"""Small files of every format, made in memory."""

import io
import json
import zipfile

import numpy as np


def npy(array, version=None):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asanyarray(array), version, allow_pickle=False)
    return stream.getvalue()


def pickled(array):
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def zipped(**entries):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name.replace("__", "/"), data)
    return stream.getvalue()


def safetensors(tensors, *, gap=0, tail=b"", texts=None):
    """Write ``{name: (dtype, shape, bytes)}`` by the format's own description."""
    header, data = {"__metadata__": texts} if texts is not None else {}, b""
    for name, (dtype, shape, content) in tensors.items():
        data += b"\0" * gap
        header[name] = {
            "dtype": dtype,
            "shape": list(shape),
            "data_offsets": [len(data), len(data) + len(content)],
        }
        data += content
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data + tail
