"""Build small bundles and replays that differ from a sound one in one place."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from reprobundle.format.attach import attach_replay, write_replay_file
from reprobundle.format.canonical import encode
from reprobundle.format.digests import digest_bytes
from reprobundle.format.lock import Distribution, Interpreter, Lock
from reprobundle.format.policy import Policy
from reprobundle.format.record import (
    Command,
    ContentMember,
    Devices,
    ErrorReport,
    Fact,
    FileRead,
    Loader,
    Memory,
    MemorySample,
    MemorySeries,
    OperatorUse,
    Outcome,
    Output,
    OutputRole,
    Phase,
    Process,
    Randomness,
    Record,
    SeedCall,
    StartTensor,
    Witness,
)
from reprobundle.format.writer import SealedBundle, Source, write_bundle
from reprobundle.outputs.row_sample import take_rows
from reprobundle.outputs.summary import Summary, summarise
from reprobundle.verify.defaults import default_policy
from reprobundle.verify.verify import verify_bundle

SCRIPT = b"import torch\ntorch.manual_seed(0)\n"
DATA = b"x,y\n1,2.5\n2,3.5\n"
FILES_DIGEST = "ab" * 32


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


LOGITS = npy(np.linspace(-1.0, 1.0, 24, dtype="f4").reshape(4, 6))
METRICS = b'{"accuracy": 0.9375, "epochs": 3, "train_seconds": 12.5}\n'
OUTPUTS = {"out/logits.npy": LOGITS, "out/metrics.json": METRICS}

ENVIRONMENT = {
    "python.version": Fact(value="3.11.7", source="platform"),
    "torch.version": Fact(value="2.13.0+cpu", source="torch.__version__"),
    "torch.cpu_capability": Fact(value="AVX512", source="torch"),
    "torch.num_threads": Fact(value=2, source="torch"),
    "machine.model": Fact(value="lab", source="dmi"),
}

START = (
    StartTensor(
        name="Net/fc.weight",
        kind="weight",
        dtype="float32",
        shape=(6, 4),
        fingerprint="aa",
        l2=2.0,
    ),
    StartTensor(
        name="batch/0",
        kind="batch",
        dtype="float32",
        shape=(4, 4),
        fingerprint="bb",
        l2=3.0,
    ),
)

LOCK = encode(
    Lock(
        python=Interpreter(
            version="3.11.7",
            implementation="CPython",
            architecture="x86_64",
            system="linux",
            platform="linux_x86_64",
        ),
        distributions=(
            Distribution(name="torch", version="2.13.0", record_unknown="not read"),
        ),
    )
)

SERIES = encode(
    MemorySeries(
        samples=(
            MemorySample(t_ns=0, point="start", pid=1, bytes={"rss": 1000}),
            MemorySample(t_ns=9, point="end", pid=1, bytes={"rss": 2000}),
        )
    )
)


WITNESSES = (
    Witness(name="warnings", looked=True),
    Witness(name="profiler", looked=True, steps=((1, 4),), total_steps=3),
    Witness(name="census", looked=True, total_steps=3),
)


def used(operator, device="mps", **changes):
    """Return what a census says about one operator of three steps."""
    usual = {"phase": "forward", "count": 3, "bytes": 96, "steps": 3}
    place = {"where": "{project}/train.py:4"}
    return OperatorUse(
        operator=operator, device=device, **{**usual, **place, **changes}
    )


def on(device, fallback="none-seen", **changes):
    """Return where a run was, with the three witnesses where one is needed."""
    watched = device.startswith("mps") and fallback != "not-checked"
    usual = {
        "witnesses": WITNESSES if watched else (),
        "operators": (used("aten.addmm.default"),) if watched else (),
    }
    return Devices(
        observed=(device,), fallback=fallback, reason="witness", **{**usual, **changes}
    )


@dataclass
class Run:
    """One run: its outputs by name, what is changed in its record, tensors.

    Of the outputs named in `sampled` all rows are kept, under the usual policy.
    """

    outputs: dict[str, bytes] = field(default_factory=lambda: dict(OUTPUTS))
    changes: dict[str, object] = field(default_factory=dict)
    tensors: dict[str, bytes] = field(default_factory=dict)
    stored: Literal["here", "none", "withheld"] = "here"
    summaries: bool = True
    fingerprints: bytes = b""
    roles: dict[str, OutputRole] = field(default_factory=dict)
    sampled: tuple[str, ...] = ()

    def build(self, folder: Path, **fixed: object) -> tuple[Record, dict[str, bytes]]:
        content = {"stdout.txt": b"done\n", "stderr.txt": b"", "memory.json": SERIES}
        if self.fingerprints:
            content["fingerprints.jsonl"] = self.fingerprints
        outputs = []
        for name, data in sorted(self.outputs.items()):
            outputs.append(self._output(folder, name, data, content))
        record = Record(
            role="reference",
            pass_name="measured",
            tool="reprobundle 0",
            started="2025-01-01T00:00:00Z",
            elapsed_ns=1,
            platform="linux",
            command=Command(argv=("python", "train.py"), seed=0),
            environment=dict(ENVIRONMENT),
            randomness=Randomness(
                seed=0,
                calls=(
                    SeedCall(
                        function="torch.manual_seed",
                        value="0",
                        where="train.py:2",
                        pid=1,
                    ),
                ),
                initial={"torch.cpu": "00"},
                final={"torch.cpu": "11"},
                draws={"torch.cpu": "22"},
                loaders=(Loader(where="train.py:9", base_seed="77", batch_size=4),),
                start=START,
            ),
            processes=(Process(pid=1, kind="main", ended=True, exit_status=0),),
            phases=(
                Phase(
                    name="forward",
                    count=3,
                    total_ns=30,
                    median_ns=10,
                    longest_ns=12,
                    synchronized="cpu",
                ),
            ),
            memory=Memory(
                series="memory.json",
                samples=2,
                peak_rss_bytes=Fact(value=2000, source="largest sample"),
                peak_device_bytes=Fact(unknown="no device"),
                rounds="step",
                course="flat",
            ),
            devices=Devices(
                observed=("cpu",),
                fallback="none-possible",
                reason="no accelerator was used",
            ),
            files_digest=FILES_DIGEST,
            reads=(
                FileRead(
                    path="project:data.csv",
                    member="inputs/data.csv",
                    size_bytes=len(DATA),
                    blake3=digest_bytes(DATA),
                ),
            ),
            sources=("train.py",),
            outputs=tuple(outputs),
            outcome=Outcome(exit_status=0),
            remarks=(),
            members=tuple(
                ContentMember(
                    name=name, size_bytes=len(data), blake3=digest_bytes(data)
                )
                for name, data in sorted(content.items())
            ),
        )
        changes = {**fixed, **self.changes}
        changes.setdefault("environment", _built_for(changes.get("devices")))
        return msgspec.structs.replace(record, **changes), content

    def _output(self, folder, name, data, content):
        path = folder / "scratch.bin"
        path.write_bytes(data)
        tensors = None
        arrays_member = ""
        if name in self.tensors:
            tensors = folder / "scratch.safetensors"
            tensors.write_bytes(self.tensors[name])
            arrays_member = f"tensors/{name}.safetensors"
            content[arrays_member] = self.tensors[name]
        told = summarise(name, path, tensors=tensors)
        member = f"outputs/{name.replace(':', '/')}"
        if name in self.sampled:
            return _sampled(name, path, told, content)
        if self.stored == "here":
            content[member] = data
        return Output(
            name=name,
            kind=told.kind,
            format=told.format,
            size_bytes=len(data),
            blake3=digest_bytes(data),
            stored=self.stored,
            member=member if self.stored == "here" else "",
            arrays_member=arrays_member,
            arrays=told.arrays if self.summaries else (),
            rows=told.rows if self.summaries else None,
            role=self.roles.get(name, ""),
            role_source="stated" if name in self.roles else "",
        )


def _built_for(devices: object) -> dict[str, Fact]:
    """Return the facts of a machine whose torch is built for the devices it used."""
    seen = devices.observed if isinstance(devices, Devices) else ()
    label = "+cpu"
    if "cuda" in seen:
        label = "+cu130"
    elif "mps" in seen:
        label = ""
    version = Fact(value=f"2.13.0{label}", source="torch.__version__")
    return {**ENVIRONMENT, "torch.version": version}


def _sampled(name: str, path: Path, told: Summary, content: dict[str, bytes]) -> Output:
    key = digest_bytes(encode(default_policy()))
    taken = take_rows(lambda: path.open("rb"), told.format, key=key, output=name)
    member = f"samples/outputs/{name}"
    content[member] = taken.text
    return Output(
        name=name,
        kind=told.kind,
        format=told.format,
        size_bytes=path.stat().st_size,
        blake3=digest_bytes(path.read_bytes()),
        stored="sample",
        member=member,
        sample_key=key,
        row_sample=taken.summary,
        rows=told.rows,
    )


@dataclass
class Bench:
    """A folder in which bundles are made, replayed and verified."""

    folder: Path
    policy: Policy = field(default_factory=default_policy)
    reference: Run = field(default_factory=Run)
    repeat: Run | None = field(default_factory=Run)
    evidence: Run | None = None
    repeats: tuple[Run, ...] = ()
    truth: Run | None = None
    claims: dict[str, Run] = field(default_factory=dict)
    claim_repeats: dict[str, tuple[Run, ...]] = field(default_factory=dict)
    counterparts: tuple[Run, ...] = ()
    lock: bytes = LOCK
    left_out: tuple[str, ...] = ()
    extra: tuple[Source, ...] = ()
    sealed: SealedBundle | None = None
    replayed: int = 0

    @property
    def path(self) -> Path:
        return self.folder / "digits.rpb.zip"

    def pack(self) -> Bench:
        runs: list[tuple[Run, dict[str, object]]] = [
            (self.reference, {"role": "reference"})
        ]
        if self.repeat is not None:
            runs.append((self.repeat, {"role": "repeat", "pass_name": "repeat"}))
        again: dict[str, object] = {"role": "repeat", "pass_name": "repeat"}
        runs += [(run, again) for run in self.repeats]
        if self.truth is not None:
            runs.append((self.truth, {"role": "truth", "pass_name": "truth"}))
        for claim, run in self.claims.items():
            runs.append((run, {"role": "claim", "claim": claim}))
            same = {**again, "claim": claim}
            runs += [(one, same) for one in self.claim_repeats.get(claim, ())]
        if self.evidence is not None:
            traced: dict[str, object] = {
                "role": "evidence",
                "pass_name": "evidence",
                "phases": (),
            }
            runs.append((self.evidence, traced))
        runs += [(run, {"role": "counterpart"}) for run in self.counterparts]
        sources = [
            Source("project/train.py", "project", SCRIPT),
            Source("inputs/data.csv", "input", DATA),
            Source("lock/environment.json", "lock", self.lock),
            Source("policy.json", "policy", encode(self.policy)),
            *self.extra,
        ]
        for number, (run, fixed) in enumerate(runs, start=1):
            # No two runs take the same time.
            record, content = run.build(self.folder, elapsed_ns=number, **fixed)
            top = f"runs/{number}"
            sources.append(Source(f"{top}/record.json", "record", encode(record)))
            sources += [
                Source(f"{top}/{name}", _role(name), data)
                for name, data in content.items()
            ]
        kept = [source for source in sources if source.path not in self.left_out]
        self.sealed = write_bundle(self.path, kept)
        return self

    @property
    def id(self) -> str:
        assert self.sealed is not None
        return self.sealed.id

    def replay(self, run: Run | None = None, /, **changes: object) -> str:
        """Attach a replay of sealed run 1 and return its id."""
        record, sources = self.replay_tree(run, **changes)
        return attach_replay(self.path, encode(record), sources)

    def replay_alone(self, run: Run | None = None, /, **changes: object) -> Path:
        """Write a replay of sealed run 1 to a file of its own."""
        record, sources = self.replay_tree(run, **changes)
        alone = self.folder / "mine.rpr.zip"
        write_replay_file(alone, [(encode(record), sources)])
        return alone

    def replay_tree(self, run: Run | None = None, /, **changes: object):
        run = run or Run()
        run.changes = {**run.changes, **changes}
        fixed = {"role": "replay", "bundle": self.id, "runs": 1, "occasion": "0" * 16}
        self.replayed += 1
        fixed["elapsed_ns"] = 1000 + self.replayed
        record, content = run.build(self.folder, **fixed)
        return record, [
            Source(name, _role(name), data) for name, data in content.items()
        ]

    def verify(self, **options):
        return verify_bundle(self.path, **options)


def _role(name):
    if name in ("stdout.txt", "stderr.txt"):
        return "log"
    series = ("memory.json", "fingerprints.jsonl")
    return "series" if name in series else "output"


def found(report, name, outcome=None):
    """Return all findings called `name`, about the bundle and its replays."""
    everything = [
        *report.findings,
        *(one for judged in report.judgements for one in judged.findings),
    ]
    return [
        one
        for one in everything
        if one.id == name and (outcome is None or one.outcome == outcome)
    ]


VALUES = np.linspace(-1.0, 1.0, 24, dtype="f4").reshape(4, 6)
NEAR = npy(VALUES * np.float32(1 + 5e-7))
FAR = npy(VALUES * np.float32(1.01))

ERROR = ErrorReport(
    type="RuntimeError",
    message="out of memory: 12 MB",
    masked="out of memory: # MB",
    where="train.py:16",
    traceback="…",
    steps=6,
)
FAILED = Outcome(exit_status=1, expected_failure=True, error=ERROR)

DRIFTED = {**ENVIRONMENT, "torch.version": Fact(value="2.12.0+cpu", source="torch")}


def outputs(**changes):
    """Return the sound outputs with some replaced, or left out where None."""
    names = {"logits": "out/logits.npy", "metrics": "out/metrics.json"}
    merged = {**OUTPUTS, **{names.get(key, key): data for key, data in changes.items()}}
    return {name: data for name, data in merged.items() if data is not None}


def reasons(report):
    return " | ".join(report.reasons)
