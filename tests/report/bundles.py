"""A bundle's contents, made up, for the tests that show them."""

from __future__ import annotations

from reprobundle.format.lock import Distribution, Interpreter, Lock
from reprobundle.format.manifest import Manifest, Member
from reprobundle.format.policy import (
    Claim,
    DtypeTolerance,
    Intent,
    Metric,
    OutputRule,
    Policy,
    Tolerance,
)
from reprobundle.format.record import (
    ArraySummary,
    Command,
    Devices,
    Fact,
    FileRead,
    Memory,
    Outcome,
    Output,
    Phase,
    Randomness,
    Record,
    Remark,
    SeedCall,
)
from reprobundle.report.view import BundleView, MemoryPoint, ReplayView, RunView

BUNDLE = "3f9a2c81d07b" + "1" * 52
REPLAY = "9b1f0c22d3aa" + "0" * 52
MIB = 1 << 20

MEMBERS = (
    Member(path="README.txt", size_bytes=2_100, blake3="a" * 64, role="readme"),
    Member(path="project/train.py", size_bytes=4_096, blake3="b" * 64, role="project"),
    Member(path="inputs/digits.csv", size_bytes=264_712, blake3="c" * 64, role="input"),
    Member(path="policy.json", size_bytes=900, blake3="d" * 64, role="policy"),
    Member(
        path="runs/1/outputs/logits.npy", size_bytes=MIB, blake3="e" * 64, role="output"
    ),
    Member(path="runs/1/record.json", size_bytes=9_000, blake3="f" * 64, role="record"),
    Member(path="B3SUMS", size_bytes=400, blake3="0" * 64, role="checksums"),
)

POLICY = Policy(
    author="A. Author",
    reason="measured over five runs",
    tolerances=(
        DtypeTolerance(
            dtype="float32",
            devices="same",
            tolerance=Tolerance(rtol=1.3e-6, atol=1e-5),
            source="defaults of the framework's tests",
        ),
        DtypeTolerance(
            dtype="bfloat16",
            devices="same",
            tolerance=Tolerance(rtol=1.6e-2, atol=1e-5),
            source="the same",
        ),
    ),
    ignore_keys=("elapsed_s",),
    outputs=(OutputRule(match="*.png", compare=False, reason="fonts differ"),),
    metrics=(Metric(name="accuracy", pattern="accuracy ([0-9.]+)"),),
    claims=(
        Claim(name="main", statement="93 % accuracy"),
        Claim(name="smoke", command=("python", "train.py", "--quick"), minutes=0.5),
    ),
    intent=Intent(purpose="Digits with a small network", fallback="forbidden"),
)

PHASES = (
    Phase(
        name="import",
        count=1,
        total_ns=1_200_000_000,
        median_ns=1_200_000_000,
        longest_ns=1_200_000_000,
        synchronized="cpu",
    ),
    Phase(
        name="forward",
        count=300,
        total_ns=777_000_001,
        median_ns=555_000_002,
        longest_ns=333_000_003,
        synchronized="none",
    ),
    Phase(
        name="backward",
        count=300,
        total_ns=4_000_000_000,
        median_ns=13_000_000,
        longest_ns=40_000_000,
        synchronized="cuda",
        synchronizations=600,
    ),
)

ENVIRONMENT = {
    "cpu.model": Fact(value="AMD EPYC 7R13", source="/proc/cpuinfo"),
    "env.OMP_NUM_THREADS": Fact(value="2"),
    "env.PYTHONPATH": Fact(value=""),
    "git.commit": Fact(value="4" * 40),
    "git.dirty": Fact(value=True),
    "memory.total_bytes": Fact(value=16 << 30),
    "os.name": Fact(value="Debian GNU/Linux 12"),
    "os.version": Fact(value="12"),
    "python.version": Fact(value="3.11.7"),
    "torch.cuda.driver": Fact(unknown="no CUDA device"),
    "torch.cuda.name": Fact(unknown="no CUDA device"),
    "torch.version": Fact(value="2.13.0+cpu"),
}

REMARKS = (
    Remark(id="no-seed", severity="gap", text="no seed was set"),
    Remark(
        id="network-used",
        severity="warning",
        where="example.org:443",
        text="the run used the network",
    ),
)

RECORD = Record(
    role="reference",
    pass_name="measured",
    tool="reprobundle 0.1.0",
    started="2026-01-02T03:04:05Z",
    elapsed_ns=12_300_000_000,
    platform="linux",
    command=Command(argv=("python", "train.py", "--name", "two words"), seed=7),
    environment=ENVIRONMENT,
    randomness=Randomness(
        seed=7,
        calls=(
            SeedCall(
                function="torch.manual_seed", value="7", where="train.py:12", pid=10
            ),
        ),
        python_hash_seed="0",
        initial={"python": "0" * 16, "torch.cpu": "1" * 16},
        draws={"torch.cpu": "2" * 16},
    ),
    processes=(),
    phases=PHASES,
    memory=Memory(
        series="memory.json",
        samples=12,
        peak_rss_bytes=Fact(value=412 * MIB),
        peak_device_bytes=Fact(unknown="no device allocator was seen in use"),
    ),
    devices=Devices(observed=("cpu",), fallback="none-possible"),
    files_digest="9" * 64,
    reads=(
        FileRead(
            path="project:digits.csv",
            member="inputs/digits.csv",
            size_bytes=264_712,
            blake3="c" * 64,
        ),
        FileRead(
            path="external:1/big.bin",
            origin="~/big.bin",
            size_bytes=5 << 30,
            blake3="8" * 64,
            how="declared",
        ),
        FileRead(path="missing:gone.csv", size_bytes=0, blake3=""),
    ),
    sources=("train.py",),
    outputs=(
        Output(
            name="logits.npy",
            kind="arrays",
            format="npy",
            size_bytes=MIB,
            blake3="e" * 64,
            stored="here",
            member="outputs/logits.npy",
            arrays=(
                ArraySummary(
                    name="",
                    dtype="float32",
                    shape=(1797, 10),
                    minimum=-12.34567,
                    maximum="inf",
                    mean=0.001,
                    positive_infinity=1,
                ),
            ),
        ),
        Output(
            name="model.pt",
            kind="arrays",
            format="checkpoint",
            size_bytes=80_000,
            blake3="7" * 64,
            stored="none",
            arrays=tuple(
                ArraySummary(
                    name=f"layer{at}.weight",
                    dtype="float32",
                    shape=(64,),
                    minimum=-1.0,
                    maximum=1.0,
                    mean=0.0,
                )
                for at in range(5)
            ),
        ),
        Output(
            name="loss.csv",
            kind="table",
            format="csv",
            size_bytes=3_000,
            blake3="6" * 64,
            stored="none",
            rows=300,
        ),
    ),
    outcome=Outcome(exit_status=0),
    remarks=REMARKS,
    members=(),
)

LOCK = Lock(
    python=Interpreter(
        version="3.11.7",
        implementation="CPython",
        architecture="x86_64",
        system="linux",
        platform="linux_x86_64",
    ),
    distributions=(
        Distribution(
            name="torch",
            version="2.13.0+cpu",
            local_label="cpu",
            record_digest="5" * 64,
        ),
    ),
)

VIEW = BundleView(
    bundle=BUNDLE,
    size_bytes=412 * 1024,
    newer_minor=False,
    manifest=Manifest(members=MEMBERS),
    policy=POLICY,
    lock=LOCK,
    runs=(
        RunView(
            number=1,
            record=RECORD,
            memory_points=(
                MemoryPoint(
                    point="start",
                    samples=1,
                    first_ns=40_000_000,
                    peak_bytes={"rss": 64 * MIB},
                ),
                MemoryPoint(
                    point="step",
                    samples=11,
                    first_ns=2_000_000_000,
                    peak_bytes={"rss": 412 * MIB, "cuda_allocated": 9 * MIB},
                ),
            ),
        ),
    ),
    replays=(
        ReplayView(id=REPLAY, record=RECORD),
        ReplayView(id="7" * 64, problem="no valid JSON [R-6.4]"),
    ),
    signatures=(),
)
