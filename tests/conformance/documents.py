"""The documents of a small sound run, and the bundle that holds them.

Written from sections 3, 6 and 7 of spec.md with the standard library and BLAKE3 alone.
Fields that may be left out are left out: vectors are to be small.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from blake3 import blake3

from tests.format.forge import Forged, ForgedBundle

Document = dict[str, Any]

README = b"A test vector; spec.md says how to read it.\n"
SCRIPT = b"import torch\n"
INPUT = b"1\n2\n"
METRICS = b'{"accuracy": 0.9375}\n'
OUTPUT = "y.json"
MEMORY_LOG = "memory.json"
LOGITS = (-1.0, -0.25, 0.5, 2.0)


def digest(content: bytes) -> str:
    """Return the BLAKE3 digest of `content` in hexadecimal."""
    return str(blake3(content).hexdigest())


def encode(document: object) -> bytes:
    """Return `document` as canonical JSON without an indent, which is shorter."""
    text = json.dumps(
        document, sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )
    return f"{text}\n".encode()


def fact(value: object) -> Document:
    """Return a fact that is known."""
    return {"value": value}


def tolerance(dtype: str, **changes: float) -> Document:
    """Return the rule of one dtype on equal devices; `changes` are its fields."""
    return {
        "dtype": dtype,
        "devices": "same",
        "tolerance": {"rtol": 1.3e-6, "atol": 1e-5, **changes},
        "source": "section 8.1",
    }


def input_read(content: bytes = INPUT) -> Document:
    """Return that the run read `inputs/x.csv` with this content."""
    return {
        "path": "project:x.csv",
        "member": "inputs/x.csv",
        "size_bytes": len(content),
        "blake3": digest(content),
    }


def phase(**changes: object) -> Document:
    """Return one timed phase."""
    times = {"count": 1, "total_ns": 5, "median_ns": 5, "longest_ns": 5}
    return {"name": "forward", **times, "synchronized": "cpu", **changes}


def failure(message: str, where: str = "a.py:3") -> Document:
    """Return how a run ended that was meant to fail."""
    error = {
        "type": "RuntimeError",
        "message": message,
        "masked": message,
        "where": where,
        "traceback": f"RuntimeError: {message}\n",
    }
    return {"exit_status": 1, "expected_failure": True, "error": error}


def files_digest(files: Mapping[str, bytes]) -> str:
    """Return the digest over the files a run starts from (section 7.1)."""
    lines = sorted(f"{digest(data)}  {path}\n" for path, data in files.items())
    return digest("".join(lines).encode())


POLICY: Document = {"schema": "reprobundle/policy/1"}
TOLERANT: Document = {
    **POLICY,
    "tolerances": [tolerance("float32"), tolerance("number")],
}
LOCK: Document = {
    "schema": "reprobundle/lock/1",
    "python": {
        "version": "3.11.7",
        "implementation": "CPython",
        "architecture": "x86_64",
        "system": "linux",
        "platform": "linux_x86_64",
    },
    "distributions": [
        {"name": "torch", "version": "2.13.0", "record_unknown": "not read"}
    ],
}
# What a replay takes, in nanoseconds: no two runs take the same time.
REPLAY_NS = 1000
MEMORY: Document = {
    "samples": [{"t_ns": 0, "point": "end", "pid": 1, "bytes": {"rss": 2000}}]
}
PEAKS: Document = {
    "peak_rss_bytes": fact(2000),
    "peak_device_bytes": {"unknown": "no device"},
}
ENVIRONMENT: Document = {
    "python.version": fact("3.11.7"),
    "torch.version": fact("2.13.0"),
}
RECORD: Document = {
    "schema": "reprobundle/record/1",
    "role": "reference",
    "pass_name": "measured",
    "tool": "by hand",
    "started": "2025-01-01T00:00:00Z",
    "elapsed_ns": 9,
    "platform": "linux",
    "command": {"argv": ["python", "a.py"], "seed": 0},
    "environment": ENVIRONMENT,
    "randomness": {"seed": 0},
    "processes": [{"pid": 1, "kind": "main", "ended": True, "exit_status": 0}],
    "phases": [],
    "devices": {
        "observed": ["cpu"],
        "fallback": "none-possible",
    },
    "files_digest": files_digest({"a.py": SCRIPT}),
    "reads": [],
    "sources": ["a.py"],
    "outcome": {"exit_status": 0},
    "remarks": [],
}


@dataclass(frozen=True)
class Array:
    """A float32 array; without a shape it has one axis."""

    values: Sequence[float] = LOGITS
    shape: tuple[int, ...] | None = None
    descr: ClassVar[str] = "<f4"
    packing: ClassVar[str] = "f"
    dtype: ClassVar[str] = "float32"

    @property
    def extent(self) -> tuple[int, ...]:
        """Its shape."""
        return (len(self.values),) if self.shape is None else self.shape

    def npy(self) -> bytes:
        """Return it as a NumPy file, format 1.0."""
        header = (
            f"{{'descr': '{self.descr}', 'fortran_order': False, "
            f"'shape': {self.extent}, }}"
        )
        text = header.ljust(117).encode() + b"\n"
        start = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text))
        return (
            start
            + text
            + struct.pack(f"<{len(self.values)}{self.packing}", *self.values)
        )

    def summary(self) -> Document:
        """Return what a record says about it."""
        finite = [value for value in self.values if math.isfinite(value)]
        return {
            "name": "",
            "dtype": self.dtype,
            "shape": list(self.extent),
            "nan": sum(map(math.isnan, self.values)),
            "minimum": min(finite),
            "maximum": max(finite),
            "mean": math.fsum(finite) / len(finite),
            "l2": math.sqrt(math.fsum(value * value for value in finite)),
        }


@dataclass(frozen=True)
class Uncounted(Array):
    """An array of whose NaN the record says nothing."""

    def summary(self) -> Document:
        """Return what a record that lies says about it."""
        return {**super().summary(), "nan": 0}


@dataclass(frozen=True)
class Indices(Array):
    """An int64 array."""

    descr: ClassVar[str] = "<i8"
    packing: ClassVar[str] = "q"
    dtype: ClassVar[str] = "int64"


@dataclass(frozen=True)
class Sampled(Array):
    """An array of which a run keeps a sample only (spec.md, section 8.3).

    It has so few elements that the sample holds all of them.

    Attributes:
        key: Digest of the policy that decided the places.
        told: What the summary says otherwise.
    """

    key: str = ""
    told: Mapping[str, object] = field(default_factory=dict)

    def summary(self) -> Document:
        """Return what a record says about it: the figures of what float32 holds."""
        layout = f"<{len(self.values)}f"
        stored = struct.unpack(layout, struct.pack(layout, *self.values))
        return {**Array(stored, self.shape).summary(), **self.told}

    def sample(self) -> bytes:
        """Return the sample as a safetensors file."""
        values = struct.pack(f"<{len(self.values)}f", *self.values)
        block = blake3(values).digest()
        header = {
            "0.values": {
                "dtype": "F32",
                "shape": [len(self.values)],
                "data_offsets": [0, len(values)],
            },
            "0.blocks": {
                "dtype": "U8",
                "shape": [1, len(block)],
                "data_offsets": [len(values), len(values) + len(block)],
            },
        }
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + values + block


class Withheld(Array):
    """An array whose content stays with its author, and so does its summary."""


@dataclass(frozen=True)
class SampledRows:
    """A table of which a run keeps a sample of its rows only (spec.md, section 8.3).

    It has so few rows that the sample holds all of them.

    Attributes:
        losses: The decimal numbers of its second column.
        tag: The text in its third column.
        key: Digest of the policy that decided the places.
        told: What is said otherwise of the decimal numbers of all rows.
        held: Number of rows that the sample holds besides the header.
    """

    losses: Sequence[float] = (2.0, 1.5, 1.25)
    tag: str = "a"
    key: str = ""
    told: Mapping[str, object] = field(default_factory=dict)
    held: int | None = None

    def text(self) -> bytes:
        """Return the whole table."""
        rows = [f"{n},{loss!r},{self.tag}" for n, loss in enumerate(self.losses)]
        return "".join(f"{row}\n" for row in ("step,loss,tag", *rows)).encode()

    def sample(self) -> bytes:
        """Return the sample as a table."""
        lines = self.text().splitlines(keepends=True)
        return b"".join(lines if self.held is None else lines[: self.held + 1])

    def described(self, member: str) -> Document:
        """Return what a record says of the output."""
        return {
            "kind": "table",
            "format": "csv",
            "rows": len(self.losses),
            "stored": "sample",
            "member": member,
            "sample_key": self.key,
            "row_sample": {
                "records": len(self.losses) + 1,
                "places": len(self.losses),
                "blocks": [digest(self.text())],
                "columns": self._columns(),
            },
        }

    def _columns(self) -> list[Document]:
        count = len(self.losses)
        exact = {
            "step": "".join(f"i{n};" for n in range(count)),
            "loss": "n;" * count,
            "tag": f"text:{len(self.tag)}:{self.tag};" * count,
        }
        none = {"name": "", "dtype": "float64", "shape": [0]}
        numbers = Array(self.losses).summary() | {"dtype": "float64"}
        return [
            {
                "name": name,
                "exact": digest(tokens.encode()),
                "numbers": {
                    **(numbers if name == "loss" else none),
                    **(self.told if name == "loss" else {}),
                    "name": name,
                },
            }
            for name, tokens in exact.items()
        ]


@dataclass
class Run:
    """One run.

    Attributes:
        outputs: What it produced, by name.
        changes: Fields of its record that are not as usual.
        beside: Further members by their names beside the record.
        sealed: Outputs by digest that lie in the bundle already, with their paths.
        keeps: Whether the content of its outputs is kept, not just their summaries.
    """

    outputs: Mapping[str, bytes | Array | SampledRows] = field(
        default_factory=lambda: {OUTPUT: METRICS}
    )
    changes: Document = field(default_factory=dict)
    beside: Mapping[str, bytes] = field(
        default_factory=lambda: {MEMORY_LOG: encode(MEMORY)}
    )
    sealed: Mapping[str, str] = field(default_factory=dict)
    keeps: bool = True

    def build(self, **fixed: object) -> dict[str, bytes]:
        """Return the record and its members, by their names beside it."""
        content = dict(self.beside)
        described = []
        for name, output in sorted(self.outputs.items()):
            if isinstance(output, SampledRows):
                member = f"samples/{name}"
                content[member] = output.sample()
                place = output.described(member)
                described.append({**_described(name, b"", output.text()), **place})
                continue
            data = output.npy() if isinstance(output, Array) else output
            if isinstance(output, Sampled):
                member = f"samples/{name}.safetensors"
                content[member] = output.sample()
                place = {"stored": "sample", "member": member, "sample_key": output.key}
                described.append({**_described(name, output, data), **place})
                continue
            if isinstance(output, Withheld):
                facts = {**_described(name, output, data), "arrays": []}
                described.append({**facts, "stored": "withheld"})
                continue
            known = self.sealed.get(digest(data), "")
            if self.keeps and not known:
                content[f"outputs/{name}"] = data
            place = _place(name, known) if self.keeps else {"stored": "none"}
            described.append({**_described(name, output, data), **place})
        series = {"series": MEMORY_LOG, "samples": 1} if MEMORY_LOG in content else {}
        record = {
            **RECORD,
            "memory": {**PEAKS, **series},
            "outputs": described,
            "members": [
                {"name": name, "size_bytes": len(data), "blake3": digest(data)}
                for name, data in sorted(content.items())
            ],
        }
        return {"record.json": encode({**record, **fixed, **self.changes}), **content}


def _place(name: str, known: str) -> Document:
    if known:
        return {"stored": "sealed", "member": known}
    return {"stored": "here", "member": f"outputs/{name}"}


_KINDS = {
    ".png": ("bytes", "bytes"),
    ".csv": ("table", "csv"),
    ".ipynb": ("document", "notebook"),
    ".safetensors": ("arrays", "safetensors"),
}


def _described(name: str, output: bytes | Array, data: bytes) -> Document:
    kind, file_format = _KINDS.get(name[name.rfind(".") :], ("document", "json"))
    facts = {
        "name": name,
        "kind": kind,
        "format": file_format,
        "size_bytes": len(data),
        "blake3": digest(data),
    }
    if isinstance(output, Array):
        arrays = [output.summary()]
        return {**facts, "kind": "arrays", "format": "npy", "arrays": arrays}
    return facts


@dataclass
class Story:
    """Everything a bundle is made of.

    Attributes:
        runs: The sealed runs, the reference first, each with fields of its record.
        policy, lock: Documents, or bytes that are none.
        files: Further files of the bundle by path, or others than usual.
        left_out: Paths of files that are not in the bundle.
    """

    runs: Sequence[tuple[Run, Document]] = field(
        default_factory=lambda: [(Run(keeps=False), {})]
    )
    policy: Document | bytes = field(default_factory=lambda: dict(POLICY))
    lock: Document | bytes = field(default_factory=lambda: dict(LOCK))
    files: Mapping[str, bytes] = field(default_factory=dict)
    left_out: Sequence[str] = ()

    def forge(self) -> ForgedBundle:
        """Return the bundle, still open to one more change."""
        files = {
            "README.txt": README,
            "project/a.py": SCRIPT,
            "lock/environment.json": _bytes(self.lock),
            "policy.json": _bytes(self.policy),
        }
        for number, (run, fixed) in enumerate(self.runs, start=1):
            took = RECORD["elapsed_ns"] + number - 1
            for name, data in run.build(elapsed_ns=took, **fixed).items():
                files[f"runs/{number}/{name}"] = data
        files.update(self.files)
        bundle = ForgedBundle(
            {path: data for path, data in files.items() if path not in self.left_out}
        )
        for member in bundle.members:
            last = member["path"].rpartition("/")[2]
            member["role"] = _ROLES.get(last, member["role"])
        return bundle


_ROLES = {"stdout.txt": "log", "stderr.txt": "log", MEMORY_LOG: "series"}


def _bytes(document: Document | bytes) -> bytes:
    return document if isinstance(document, bytes) else encode(document)


def bundle_id(bundle: ForgedBundle) -> str:
    """Return the digest of the manifest of a bundle that is not changed any more."""
    bundle.entries()  # From here on B3SUMS is a member.
    return digest(bundle.manifest_bytes())


def replay_files(bundle: str, run: Run, /, **changes: object) -> dict[str, bytes]:
    """Return a replay of sealed run 1 of the bundle with this id, by entry name."""
    fixed = {"role": "replay", "bundle": bundle, "runs": 1, "occasion": "0" * 16}
    fixed["elapsed_ns"] = REPLAY_NS
    files = run.build(**{**fixed, **changes})
    names = ["record.json", *sorted(files.keys() - {"record.json"})]
    top = f"replays/{digest(files['record.json'])}"
    return {f"{top}/{name}": files[name] for name in names}


def replay_entries(bundle: str, run: Run, /, **changes: object) -> list[Forged]:
    """Return the entries of a replay of sealed run 1 of the bundle with this id."""
    files = replay_files(bundle, run, **changes)
    return [Forged(name, data) for name, data in files.items()]


def again(
    outputs: Mapping[str, bytes | Array | SampledRows] | None = None, **changes: object
) -> Run:
    """Return a run as a replay makes it here: without a memory log, to be small."""
    made = {OUTPUT: METRICS} if outputs is None else outputs
    return Run(made, dict(changes), beside={})


def replayed(story: Story, *replays: Run) -> ForgedBundle:
    """Return the bundle of `story` with these replays attached, the oldest first."""
    bundle = story.forge()
    identity = bundle_id(bundle)
    for number, run in enumerate(replays):
        took = REPLAY_NS + number
        bundle.unsealed += replay_entries(identity, run, elapsed_ns=took)
    return bundle
