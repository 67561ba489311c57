"""The table of checks, the code and the cases belong together, without a gap.

`CASES` makes every finding that can take something from a verdict. A new kind of
finding without a case fails here.
"""

import ast
import re
import subprocess
from pathlib import Path

import msgspec
import numpy as np
import pytest

import reprobundle.verify
from reprobundle.errors import (
    BundleError,
    DocumentError,
    LimitError,
    MissingMemberError,
    UnsafeNameError,
    UnsupportedVersionError,
)
from reprobundle.format.attach import attach_replay, attach_signature
from reprobundle.format.canonical import encode
from reprobundle.format.digests import digest_bytes
from reprobundle.format.findings import Verdict
from reprobundle.format.pairing import acceptance_name
from reprobundle.format.parting import split_bundle
from reprobundle.format.policy import (
    Band,
    Claim,
    EndTest,
    Intent,
    OutputRule,
    Policy,
    Tolerance,
)
from reprobundle.format.reader import Damage, open_bundle
from reprobundle.format.record import (
    BadIndex,
    Command,
    Devices,
    Drawn,
    ErrorReport,
    Experiment,
    Fact,
    FileRead,
    Float64Search,
    Float64Site,
    Memory,
    OperatorForm,
    Outcome,
    Phase,
    Process,
    Randomness,
    Rank,
    Remark,
    Restart,
    TensorForm,
    Transfer,
)
from reprobundle.format.writer import Source
from reprobundle.sign.sign import sign
from reprobundle.sign.signers import Signers
from reprobundle.verify import integrity
from reprobundle.verify.checks import (
    BY_NUMBER,
    CHECKS,
    ITEMS,
    OF_ONE_REPLAY,
    area_of,
    finding,
)
from reprobundle.verify.defaults import default_policy
from reprobundle.verify.selftest.of_acceptance import honest, put_behind
from reprobundle.verify.verdict import PRECEDENCE, consequence
from tests.verify import builder
from tests.verify.builder import ENVIRONMENT, OUTPUTS, START, Run, found, npy

VALUES = np.linspace(-1.0, 1.0, 24, dtype="f4").reshape(4, 6)
FAR = {**OUTPUTS, "out/logits.npy": npy(VALUES * 2)}
NEAR = {**OUTPUTS, "out/logits.npy": npy(VALUES * np.float32(1 + 5e-7))}
ERROR = ErrorReport(
    type="ValueError", message="m", masked="m", where="a.py:1", traceback="", steps=0
)
FAILED = Outcome(exit_status=1, expected_failure=True, error=ERROR)
NO_MEMORY = Memory(
    peak_rss_bytes=Fact(unknown="none"), peak_device_bytes=Fact(unknown="none")
)


def replayed(outputs=None, /, **changes):
    """A sound bundle with a replay that is changed in one place."""

    def case(bench):
        bench.pack().replay(Run(dict(outputs or OUTPUTS)), **changes)
        return bench.verify()

    return case


def sealed(**changes):
    """A bundle whose reference record is changed in one place."""

    def case(bench):
        bench.reference = Run(changes=changes)
        return bench.pack().verify()

    return case


def withheld_results(bench):
    bench.reference, bench.repeat, again = (
        Run(stored="withheld", summaries=False) for _ in range(3)
    )
    bench.pack().replay(again)
    return bench.verify()


def one_part_of_two(bench):
    bench.pack()
    whole = bench.path.rename(bench.path.with_name("whole.rpb.zip"))
    with open_bundle(whole) as bundle:
        rest = bench.path.with_name("rest.rpb.zip")
        split_bundle(bundle, ["inputs/data.csv"], first=bench.path, rest=rest)
    return bench.verify()


def without(*paths):
    def case(bench):
        bench.left_out = paths
        return bench.pack().verify()

    return case


def policy(outputs=None, /, **changes):
    def case(bench):
        bench.policy = msgspec.structs.replace(default_policy(), **changes)
        return replayed(outputs)(bench)

    return case


def admitting_half(bench):
    """Half of the elements may be anything, and some are."""
    tolerance = Tolerance(rtol=1e-6, atol=0.0, share=0.4)
    rule = OutputRule(match="out/logits.npy", tolerance=tolerance, reason="x")
    bench.policy = msgspec.structs.replace(default_policy(), outputs=(rule,))
    wrong = VALUES.copy()
    wrong.flat[:8] = 1e6
    outputs = {**OUTPUTS, "out/logits.npy": npy(wrong)}
    return replayed(outputs)(bench)


def same_outputs(outputs, replay=None):
    def case(bench):
        bench.reference, bench.repeat = Run(dict(outputs)), None
        bench.pack().replay(Run(dict(replay or outputs)))
        return bench.verify()

    return case


def failing(outcome):
    def case(bench):
        bench.reference = bench.repeat = Run({}, {"outcome": FAILED})
        bench.pack().replay(Run({}), outcome=outcome)
        return bench.verify()

    return case


def remark(name, severity):
    return replayed(remarks=(Remark(id=name, severity=severity, text="it did"),))


def refused(error):
    """Stand in for a container that only hand-made bytes could bring about."""

    def case(bench):
        class Report:
            findings = (integrity.refusal(error),)
            judgements = ()

        return Report

    return case


def damaged_chunk(bench):
    bench.reference, bench.repeat = Run({"big.npy": npy([1.0] * 600_000)}), None
    bench.pack()
    with pytest.MonkeyPatch.context() as patch:
        damage = Damage("runs/1/outputs/big.npy", 0, 1, "0" * 64, "1" * 64)
        patch.setattr(integrity, "check_digests", lambda *_, **__: [damage])
        return bench.verify(deep=True)


def flipped_script(bench):
    data = bench.pack().path.read_bytes()
    bench.path.write_bytes(data.replace(b"manual_seed(0)\n", b"manual_seed(1)\n", 1))
    return bench.verify()


def other_id(bench):
    return bench.pack().verify(expect_id="0" * 64)


def edited_replay(bench):
    bench.pack().replay(tool="reprobundle 7")
    data = bench.path.read_bytes()
    bench.path.write_bytes(data.replace(b"reprobundle 7", b"reprobundle 8"))
    return bench.verify()


def replay_of_another(bench):
    alone = bench.pack().replay_alone(bundle="0" * 64)
    return bench.verify(replay_file=alone)


def replay_without_members(bench):
    bench.pack()
    record, _ = bench.replay_tree()
    attach_replay(bench.path, encode(record), [])
    return bench.verify()


def replay_without_schema(bench):
    bench.pack()
    attach_replay(bench.path, b"{}\n", [])
    return bench.verify()


def unknown_member(bench):
    bench.extra = (Source("runs/1/outputs/more.bin", "output", b"x"),)
    return bench.pack().verify()


def repeat_differs(bench):
    bench.repeat = Run(dict(FAR))
    return bench.pack().verify()


def other_device_differs(bench):
    """Pack a run on CUDA and another result on the CPU."""
    for_device = {
        name: msgspec.structs.replace(builder.on(name, "none-possible"), requested=name)
        for name in ("cuda", "cpu")
    }
    bench.reference = Run(changes={"devices": for_device["cuda"], "phases": ()})
    bench.counterparts = (Run(dict(FAR), {"devices": for_device["cpu"], "phases": ()}),)
    return bench.pack().verify()


def linux_reference_differs(bench):
    """Pack on a Mac; a marked record from Linux has another result than a replay."""
    mac, linux = (
        {**builder.ENVIRONMENT, "os.system": Fact(value=name, source="os.uname()")}
        for name in ("Darwin", "Linux")
    )
    bench.reference = Run(changes={"platform": "darwin", "environment": mac})
    bench.repeat = None
    bench.pack().replay(
        Run(dict(FAR)), environment=linux, elapsed_ns=2, reference_by="Ada"
    )
    bench.replay(environment=linux, elapsed_ns=3)
    return bench.verify()


def other_start(bench):
    weight = msgspec.structs.replace(START[0], fingerprint="cc", l2=9.0)
    began = Randomness(seed=0, start=(weight, START[1]))
    bench.pack().replay(Run(dict(NEAR)), randomness=began)
    return bench.verify()


def restarted(outputs, restart, **changes):
    """A replay with a restart pass of the same occasion."""

    def case(bench):
        bench.pack().replay()
        fixed = {"pass_name": "restart", "restart": restart, **changes}
        bench.replay(Run(dict(outputs)), **fixed)
        return bench.verify()

    return case


def copied_repeat(bench):
    bench.repeat = Run(changes={"elapsed_ns": 1})
    return bench.pack().verify()


def tracing_differs(bench):
    bench.evidence = Run(FAR)
    bench.pack().replay()
    return bench.verify()


def fingerprints(norm):
    """One place of a traced run, as the recorder writes it."""
    entry = {
        "kind": "module",
        "step": 0,
        "path": "0.head",
        "call": 0,
        "operator": "",
        "place": 0,
        "dtype": "float32",
        "shape": [4],
        "stride": [1],
        "norm": norm,
        "sum": 1.0,
    }
    header = {"format": "reprobundle/fingerprints/1", "complete": True}
    return b"\n".join(msgspec.json.encode(line) for line in (header, entry))


def float64_met(bench):
    """The traced run moved float64 to its device, and the result is to count on MPS."""
    site = Float64Site(how="moved", dtype="float64", where="train.py:3", count=1)
    search = Float64Search(operators=9, sites=(site,))
    devices = Devices(observed=("cpu",), fallback="none-possible", float64=search)
    bench.evidence = Run(changes={"devices": devices})
    return policy(intent=Intent(accepting_platforms=("linux-cpu", "macos-mps")))(bench)


def runs_that_part(bench):
    """Both sides were traced, and one module gives another norm."""
    bench.evidence = Run(fingerprints=fingerprints(2.0))
    bench.pack().replay(
        Run(dict(FAR), fingerprints=fingerprints(2.002)), pass_name="evidence"
    )
    return bench.verify()


OTHER_BUNDLE = b' "bundle": "' + b"0" * 64 + b'"'


def _signed(bench):
    key = bench.folder / "key"
    call = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key]
    subprocess.run(call, check=True)
    sign(bench.pack().path, key)
    return key.with_suffix(".pub").read_text()


def signature_of_nobody(bench):
    attach_signature(bench.pack().path, bench.id, b"no signature")
    return bench.verify()


def signature_moved(bench):
    _signed(bench)
    with open_bundle(bench.path) as bundle:
        (name,) = bundle.signatures
        data = bundle.read_unsealed(name)
    attach_signature(bench.path, bench.replay(), data)
    return bench.verify()


def signature_of_an_old_key(bench):
    public = _signed(bench)
    signers = f'alice valid-before="20200101" {public}'
    return bench.verify(signers=Signers(signers.encode()))


def nobody_signed(bench):
    bench.pack().replay()
    return bench.verify(signers=Signers(b"alice ssh-ed25519 AAAA"))


NOT_DECIDED = b'"acceptance": "accepted"'


def accepted(change, name=""):
    """Attach an acceptance record whose bytes were changed."""

    def make(bench):
        bench.pack().replay()
        data = change(encode(honest(bench.path)))
        put_behind(bench.path, acceptance_name(name or digest_bytes(data)), data)
        return bench.verify()

    return make


def an_experiment(bench):
    replay = bench.pack().replay(experiment=Experiment(id="ab" * 8, side="A"))
    return bench.verify(replay=replay)


def two_replays(bench):
    bench.pack().replay(Run(dict(FAR)), occasion="1" * 16)
    bench.replay(occasion="2" * 16)
    return bench.verify()


def one_claim_of_two(bench):
    claims = (Claim(name="main"), Claim(name="other", command=("python", "train.py")))
    bench.policy = msgspec.structs.replace(default_policy(), claims=claims)
    bench.claims = {"other": Run()}
    bench.pack().replay()
    return bench.verify()


def on(device, fallback="none-seen", **changes):
    seen = builder.on(device, fallback, **changes)
    return replayed(devices=seen, phases=(), platform="darwin")


LATE = Transfer(
    kind="to-device", where="train.py:3", non_blocking=True, count=2, bytes=64
)
LARGE_QR = OperatorForm(
    operator="aten.linalg_qr.default",
    device="mps",
    tensors=(TensorForm(dtype="float32", shape=(600, 600), stride=(600, 1)),),
    count=1,
)
SLICED_WEIGHT = OperatorForm(
    operator="aten.convolution.default",
    device="mps",
    tensors=(
        TensorForm(dtype="float32", shape=(1, 1, 4, 4), stride=(16, 16, 4, 1)),
        TensorForm(dtype="float32", shape=(1, 1, 3, 3), stride=(27, 27, 3, 2)),
    ),
    count=1,
)
BEYOND = BadIndex(
    operator="aten.embedding.default", where="train.py:9", low=0, high=10, size=10
)
STARVED = builder.used("aten.zeros.default", out_of_memory=2)
STOPPED = Outcome(exit_status=0, completed=False, stop="memory", stop_detail="16 GB")
OTHER_READ = FileRead(
    path="project:data.csv", member="inputs/data.csv", size_bytes=1, blake3="0" * 64
)
TIMED = Phase(
    name="forward",
    count=1,
    total_ns=1,
    median_ns=1,
    longest_ns=1,
    synchronized="none",
)
LOG = Memory(
    series="memory.json",
    samples=2,
    peak_rss_bytes=Fact(value=2000, source="largest sample"),
    peak_device_bytes=Fact(unknown="no device"),
    rounds="step",
    course="flat",
)
MISSED = (Process(pid=1, kind="main"), Process(pid=2, entered=False))
LOOSE = default_policy().tolerances[0]
SAME_READ = FileRead(
    path="project:data.csv",
    member="inputs/data.csv",
    size_bytes=len(builder.DATA),
    blake3=digest_bytes(builder.DATA),
)
EARLIER_RESULT = FileRead(
    path="external:1/logits.npy",
    size_bytes=len(builder.LOGITS),
    blake3=digest_bytes(builder.LOGITS),
)
BAND = Band(metric="out/metrics.json#accuracy", least=0.99)
EXCLUDED = OutputRule(match="*", compare=False, reason="x")

# What a sound bundle with a sound replay on one CPU shows to be in order.
PASSED = set(
    """
    container limits format-version manifest member-names membership member-digest
    sealed-document run-members replay-record replay-name replay-bundle replay-members
    expect-id vacuous-tolerance has-lockfile has-script has-input-sample has-seeds
    has-versions has-memory-log has-output-summary has-linux-reference lists-start
    lists-together reference-ending reference-trouble reference-not-repeatable
    copied-run same-run copied-replay replay-time
    same-files same-command same-seed same-draws seed-calls same-start further-input
    same-inputs nothing-entered python-not-entered run-completed exit-status
    device-asked device-mapped standin-device cpu-fallback accepting-platform
    output-missing output-differs
    environment-drift unsynchronised-timing memory-limits memory-growth replayed
    claim-replayed replays-disagree
    """.split()  # noqa: SIM905 - a list of fifty strings is harder to read
)

STEPPED = Phase(
    name="optimizer",
    count=1,
    total_ns=1,
    median_ns=1,
    longest_ns=1,
    synchronized="cpu",
)


def leaking(bench):
    """A replay whose memory grows where the reference's did not."""
    bench.pack().replay(memory=msgspec.structs.replace(LOG, course="linear"))
    return bench.verify()


def drawn(**changes):
    return replayed(randomness=Randomness(seed=0, drawn=Drawn(**changes)))


CASES = {
    "container": refused(BundleError("m", rule="R")),
    "limits": refused(LimitError("m", rule="R")),
    "format-version": refused(UnsupportedVersionError("m", version="2.0", rule="R")),
    "manifest": refused(DocumentError("m", rule="R")),
    "member-names": refused(UnsafeNameError("../a", "m", rule="R")),
    "membership": refused(MissingMemberError("m", rule="R")),
    "all-parts": one_part_of_two,
    "member-digest": flipped_script,
    "chunk-digests": damaged_chunk,
    "sealed-document": without("policy.json"),
    "run-members": unknown_member,
    "replay-record": replay_without_schema,
    "replay-name": edited_replay,
    "replay-bundle": replay_of_another,
    "replay-members": replay_without_members,
    "expect-id": other_id,
    "vacuous-tolerance": policy(
        tolerances=(
            msgspec.structs.replace(
                LOOSE, tolerance=msgspec.structs.replace(LOOSE.tolerance, share=1.0)
            ),
        )
    ),
    "has-lockfile": without("lock/environment.json"),
    "has-script": without("project/train.py"),
    "has-input-sample": sealed(
        reads=(FileRead(path="external:1/x", size_bytes=1, blake3="0" * 64),)
    ),
    "has-seeds": sealed(randomness=Randomness()),
    "has-versions": sealed(environment={}),
    "has-memory-log": sealed(memory=NO_MEMORY),
    "has-output-summary": same_outputs({}),
    "has-linux-reference": sealed(platform="darwin"),
    "reference-ending": sealed(outcome=Outcome(exit_status=3)),
    "reference-trouble": sealed(processes=MISSED),
    "reference-not-repeatable": repeat_differs,
    "copied-run": copied_repeat,
    "tracing-changed-reference": tracing_differs,
    "references-differ": other_device_differs,
    "linux-reference-differs": linux_reference_differs,
    "restart-made": restarted(OUTPUTS, Restart(reason="it began anew")),
    "restart-differs": restarted(FAR, Restart(checkpoint="state.pt", steps_after=1)),
    "same-run": replayed(runs=9),
    "copied-replay": replayed(elapsed_ns=1),
    "replay-time": replayed(started="2999-01-01T00:00:00Z"),
    "experiment": an_experiment,
    "same-files": replayed(files_digest="0" * 64),
    "same-command": replayed(command=Command(argv=("python", "x.py"), seed=0)),
    "same-seed": replayed(command=Command(argv=("python", "train.py"), seed=9)),
    "same-draws": drawn(mode="portable"),
    "draws-taken": drawn(mode="recorded", stopped="draw.3 is another"),
    "draws-on-device": drawn(mode="portable", on_device=("cuda:0",)),
    "seed-calls": replayed(randomness=Randomness(seed=0)),
    "same-steps": replayed(phases=(STEPPED,)),
    "same-start": other_start,
    "same-inputs": replayed(reads=(OTHER_READ,)),
    "further-input": replayed(reads=(SAME_READ, EARLIER_RESULT)),
    "reduced-input": replayed(reads=()),
    "standin-data": remark("standin-data", "warning"),
    "nothing-entered": replayed(processes=()),
    "masked-failure": remark("masked-failure", "failure"),
    "wrote-original-project": remark("wrote-original-project", "failure"),
    "python-not-entered": replayed(processes=MISSED),
    "rank-missing": replayed(
        ranks=(Rank(rank=0, world_size=2, pid=1, ended=True),),
    ),
    "ranks-disagree": replayed(
        ranks=(
            Rank(rank=0, world_size=2, pid=1, ended=True, steps=3),
            Rank(rank=1, world_size=2, pid=2, ended=True, steps=2),
        ),
    ),
    "cell-failed": remark("cell-failed", "warning"),
    "read-original-project": remark("read-original-project", "warning"),
    "read-outside-project": replayed(
        remarks=(Remark(id="read-outside-project", severity="warning", text="x"),),
        reads=(FileRead(path="missing:x", size_bytes=0, blake3=""),),
    ),
    "wrote-outside-project": remark("wrote-outside-project", "warning"),
    "network-used": remark("network-used", "warning"),
    "data-rule-overridden": remark("data-rule-overridden", "warning"),
    "handoff-policy-overridden": remark("handoff-policy-overridden", "warning"),
    "run-warning": remark("new", "warning"),
    "run-failure": remark("new", "failure"),
    "stopped": replayed(outcome=STOPPED),
    "run-completed": replayed(outcome=Outcome(exit_status=-2, completed=False)),
    "exit-status": replayed(outcome=Outcome(exit_status=1)),
    "expected-failure": failing(Outcome(exit_status=0)),
    "same-failure": failing(Outcome(exit_status=1)),
    "device-asked": on("cpu", "none-possible", requested="mps"),
    "standin-device": on("mps", standin=True),
    "device-mapped": on("cpu", "none-possible", mapping="cuda=cpu"),
    "cpu-fallback": on("mps", "seen"),
    "fallback-witnesses": on("mps", operators=(builder.used("aten.mode.default"),)),
    "non-blocking-copy": on("mps", transfers=(LATE,)),
    "index-out-of-range": on("mps", bad_indices=(BEYOND,)),
    "out-of-memory-caught": on("mps", operators=(STARVED,)),
    "in-kernel-detour": on("mps", forms=(LARGE_QR,)),
    "known-mps-fault": on("mps", forms=(SLICED_WEIGHT,)),
    "float64-on-mps": float64_met,
    "accepting-platform": policy(intent=Intent(accepting_platforms=("macos-mps",))),
    "output-missing": replayed({"out/metrics.json": OUTPUTS["out/metrics.json"]}),
    "output-unexpected": replayed({**OUTPUTS, "more.txt": b"x"}),
    "output-differs": replayed(FAR),
    "first-divergence": runs_that_part,
    "output-not-compared": same_outputs(
        {"m.pt": b"\x80\x02}1."}, {"m.pt": b"\x80\x02}2."}
    ),
    "claim-band": policy(claims=(Claim(name="main", bands=(BAND,)),)),
    "nothing-compared": policy(outputs=(EXCLUDED,)),
    "hidden-by-atol": same_outputs(
        {"v.npy": npy(np.full(4, 1e-7, "f4"))}, {"v.npy": npy(np.full(4, 3e-7, "f4"))}
    ),
    "large-error": admitting_half,
    "claim-ends": policy(
        claims=(Claim(name="main", ends=(EndTest(metric="loss.csv#f1"),)),)
    ),
    "values-not-compared": policy(FAR, profile="compat"),
    "output-withheld": withheld_results,
    "nan-in-output": same_outputs({"a.npy": npy(np.array([1.0, np.nan]))}),
    "output-all-zero": same_outputs({"a.npy": npy(np.zeros(3))}),
    "output-empty": same_outputs({"a.txt": b""}),
    "environment-drift": replayed(
        NEAR, environment={**ENVIRONMENT, "torch.version": Fact(value="2.12.0")}
    ),
    "unsynchronised-timing": replayed(phases=(TIMED,)),
    "timing-self-check": replayed(
        devices=builder.on("mps", "none-seen"),
        platform="darwin",
        phases=(
            msgspec.structs.replace(
                TIMED, synchronized="mps", synchronizations=2, unwaited_median_ns=2
            ),
        ),
    ),
    "memory-limits": replayed(
        memory=msgspec.structs.replace(LOG, limits={"PYTHONMALLOC": "malloc"})
    ),
    "memory-growth": leaking,
    "signature-form": signature_of_nobody,
    "signature-holds": signature_moved,
    "signer-known": signature_of_an_old_key,
    "author-signed": nobody_signed,
    "acceptance-record": accepted(lambda data: data + b"\n"),
    "acceptance-name": accepted(bytes, name="0" * 64),
    "acceptance-bundle": accepted(
        lambda data: re.sub(rb'(?m)^ "bundle": "[0-9a-f]{64}"', OTHER_BUNDLE, data)
    ),
    "acceptance-derived": accepted(
        lambda data: data.replace(b'"acceptance": "not-decided"', NOT_DECIDED)
    ),
    "replayed": without(),
    "claim-replayed": one_claim_of_two,
    "replays-disagree": two_replays,
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_check_can_fail(bench, name):
    report = CASES[name](bench)
    bad = [one for one in found(report, name) if one.outcome != "pass"]
    assert bad, f"nothing but a pass of {name}"
    assert bad[0].check == ITEMS[name].check
    assert bad[0].reason
    # A wrong chunk alone does not exist: its member is then wrong as well.
    if name != "chunk-digests":
        assert any(consequence(one) is not None for one in bad)


def test_every_finding_with_a_consequence_has_a_case():
    assert set(CASES) == {name for name, item in ITEMS.items() if item.consequence}


def test_a_sound_bundle_passes_every_check_that_applies(bench):
    bench.pack().replay()
    report = bench.verify(expect_id=bench.id)
    bad = {
        one.id
        for one in (*report.findings, *report.judgements[0].findings)
        if one.outcome in ("warn", "fail")
    }
    assert bad == set()
    assert report.exit_status == 0
    everything = [*report.findings, *report.judgements[0].findings]
    assert {one.check for one in everything} == set(BY_NUMBER)
    assert {one.id for one in everything if one.outcome == "pass"} == PASSED


def _names_in_code():
    for path in sorted(Path(reprobundle.verify.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path.name, node.value


def test_the_table_names_only_findings_that_the_code_makes():
    used = {text for name, text in _names_in_code() if name != "checks.py"}
    # Remarks keep their own name, which the recorder's side chooses.
    from_remarks = {name for name, item in ITEMS.items() if item.check == "V13"}
    assert set(ITEMS) - from_remarks <= used


def test_the_code_makes_only_findings_of_the_table():
    for path in sorted(Path(reprobundle.verify.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "finding"
                and isinstance(node.args[0], ast.Constant)
            ):
                assert node.args[0].value in ITEMS, path.name


def test_checks_are_numbered_without_a_gap_and_each_has_findings():
    numbered = [f"V{number}" for number in range(1, 26)]
    assert [check.number for check in CHECKS] == numbered
    assert {item.check for item in ITEMS.values()} == set(BY_NUMBER)


def numbers(findings):
    return {one.check for one in findings}


def test_every_check_has_a_finding_whatever_stopped_the_verification(bench):
    everything = set(BY_NUMBER)
    bench.path.write_bytes(b"no bundle")
    assert numbers(bench.verify().findings) == everything
    bench.pack().replay(outcome=Outcome(exit_status=-2, completed=False))
    report = bench.verify()
    of_replay = numbers(report.judgements[0].findings)
    assert of_replay == set(OF_ONE_REPLAY)
    assert of_replay | numbers(report.findings) == everything
    flip = bench.path.read_bytes().replace(b"manual_seed(0)\n", b"manual_seed(1)\n", 1)
    bench.path.write_bytes(flip)
    assert numbers(bench.verify().findings) == everything


def test_a_check_that_was_not_made_leads_nowhere_by_itself(bench):
    bench.path.write_bytes(b"no bundle")
    report = bench.verify()
    skipped = [one for one in report.findings if one.outcome == "not-checked"]
    assert len(skipped) == len(CHECKS) - 1
    assert all(consequence(one) is None for one in skipped)
    assert set(report.not_checked) == {one.id for one in skipped}


def test_integrity_alone_says_that_no_replay_was_judged(bench):
    replay = bench.pack().replay()
    report = bench.verify(integrity_only=True)
    assert "reference-not-repeatable" in report.not_checked
    (skipped,) = found(report, "same-run", "not-checked")
    assert skipped.where == f"replays/{replay}"


def test_every_text_is_a_sentence():
    for check in CHECKS:
        assert check.text.endswith(".")
    for item in ITEMS.values():
        assert item.text.endswith(".")


def test_no_warning_that_hides_the_device_or_the_input_can_be_allowed():
    fixed = {name for name, item in ITEMS.items() if not item.allowable}
    assert fixed == {
        "cpu-fallback",
        "standin-device",
        "reduced-input",
        "further-input",
        "index-out-of-range",
        "in-kernel-detour",
        "values-not-compared",
        "experiment",
    }


def test_every_failure_leads_somewhere():
    for item in ITEMS.values():
        for verdict in item.consequence.values():
            assert verdict in PRECEDENCE
            assert verdict not in (Verdict.BIT_IDENTICAL, Verdict.WITHIN_TOLERANCE)


def test_a_failure_that_the_table_does_not_name_is_no_success():
    assert consequence(finding("lists-error", "fail", "x")) is Verdict.INCOMPLETE
    assert consequence(finding("lists-error", "warn", "x")) is Verdict.WITH_WARNINGS
    assert consequence(finding("lists-error", "not-checked", "x")) is None


def test_a_finding_knows_its_area():
    assert area_of(finding("member-digest", "pass")) == "integrity"
    assert area_of(finding("output-differs", "pass")) == "result"


def test_a_policy_without_rows_compares_floats_exactly(bench):
    bench.policy = Policy()
    bench.pack().replay(Run(dict(NEAR)))
    assert bench.verify().verdict == "NOT REPRODUCED"


def test_a_restart_that_agrees_with_the_straight_replay_passes(bench):
    report = restarted(OUTPUTS, Restart(checkpoint="state.pt", steps_after=1))(bench)
    assert report.exit_status == 0
    assert found(report, "restart-differs", "pass")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"outcome": Outcome(exit_status=0, completed=False)}, "did not end by itself"),
        ({"files_digest": "0" * 64}, "started from other files"),
    ],
)
def test_a_restart_that_shows_nothing_keeps_the_verdict_from_green(
    bench, changes, reason
):
    restart = Restart(checkpoint="state.pt", steps_after=1)
    report = restarted(OUTPUTS, restart, **changes)(bench)
    (finding_,) = found(report, "restart-made", "not-checked")
    assert reason in finding_.reason
    assert report.exit_status == 11


def test_the_place_where_runs_part_is_among_the_reasons(bench):
    report = runs_that_part(bench)
    assert any("step 0, module 0.head, float32" in reason for reason in report.reasons)
    assert found(report, "first-divergence")[0].expected.startswith("norm 2.0,")


def test_equal_traced_runs_pass_and_an_equal_measured_run_is_not_asked(bench):
    bench.evidence = Run(fingerprints=fingerprints(2.0))
    bench.pack().replay(Run(fingerprints=fingerprints(2.0)), pass_name="evidence")
    (one,) = found(bench.verify(), "first-divergence")
    assert (one.outcome, one.reason) == ("pass", "no divergence seen at 1 places")
    bench.pack().replay()
    assert found(bench.verify(), "first-divergence") == []


def test_a_run_that_differs_and_was_not_traced_is_not_checked(bench):
    bench.pack().replay(Run(dict(FAR)))
    (one,) = found(bench.verify(), "first-divergence")
    assert one.outcome == "not-checked"
