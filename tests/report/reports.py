"""Reports of every kind that the tests of this area render."""

from __future__ import annotations

from reprobundle.format.findings import (
    EXIT_STATUS,
    ArrayComparison,
    EnvironmentDifference,
    Finding,
    Judgement,
    OutputComparison,
    Report,
    Verdict,
)
from reprobundle.verify.checks import finding

BUNDLE = "3f9a2c81d07b" + "1" * 52
REPLAY = "9b1f0c22d3aa" + "0" * 52

INTACT = (
    finding("container", "pass"),
    finding("member-digest", "pass", where="project/train.py"),
    finding("member-digest", "pass", where="project/model.py"),
)
NO_CHUNKS = finding(
    "chunk-digests",
    "not-checked",
    "only whole members were checked",
    advice="add --deep",
)
LOCKED = finding("has-lockfile", "pass")
VACUOUS = finding(
    "vacuous-tolerance", "warn", "every value would meet it", where="out/*.npy"
)
NO_MAC = finding("lists-pressure", "not-applicable", "the reference ran on Linux")

TF32 = EnvironmentDifference(
    name="torch.allow_tf32",
    reference="False",
    replay="True",
    grade="numeric",
    why="TF32 keeps 10 mantissa bits of a product",
)
CPU = EnvironmentDifference(
    name="cpu.model", reference="AMD EPYC", replay="Apple M2 Pro", grade="other"
)

LOSS = OutputComparison(
    name="metrics.json",
    kind="document",
    format="json",
    result="bit-identical",
    ignored=("elapsed_s",),
    parts=(
        ArrayComparison(
            name="loss",
            dtype="number",
            elements=1,
            equal=True,
            outside=0,
            max_abs=0.0,
            max_rel=0.0,
        ),
    ),
)
LOGITS = OutputComparison(
    name="out/logits.npy",
    kind="arrays",
    format="npy",
    result="outside-tolerance",
    reason="95.5 % of the elements lie outside",
    parts=(
        ArrayComparison(
            name="",
            dtype="float32",
            elements=20_000,
            equal=False,
            outside=19_100,
            rtol=1.3e-6,
            atol=1e-5,
            floor=0.0,
            share=0.0,
            max_abs=9.537e-4,
            max_rel=45.21,
            worst_index=(12, 3),
            expected="0.01172",
            got="0.54137",
        ),
    ),
)
GONE = OutputComparison(
    name="figure.png",
    kind="bytes",
    format="bytes",
    result="missing",
    reason="the replay did not write it",
)


def judgement(
    verdict: Verdict,
    *,
    reasons: tuple[str, ...] = (),
    outputs: tuple[OutputComparison, ...] = (),
    environment: tuple[EnvironmentDifference, ...] = (),
    findings: tuple[Finding, ...] = (),
    replay: str = REPLAY,
    device: str = "cpu",
) -> Judgement:
    """Return a judgement with the status that belongs to its verdict."""
    return Judgement(
        replay=replay,
        verdict=verdict.value,
        exit_status=EXIT_STATUS[verdict],
        reasons=reasons,
        device=device,
        outputs=outputs,
        environment=environment,
        findings=findings,
    )


def report(
    verdict: Verdict,
    *,
    reasons: tuple[str, ...] = (),
    not_checked: tuple[str, ...] = (),
    findings: tuple[Finding, ...] = INTACT,
    judgements: tuple[Judgement, ...] = (),
    file: str = "digits.rpb.zip",
    bundle: str = BUNDLE,
    format_version: str = "1.0",
) -> Report:
    """Return a report with the status that belongs to its verdict."""
    return Report(
        bundle=bundle,
        file=file,
        format_version=format_version,
        verdict=verdict.value,
        exit_status=EXIT_STATUS[verdict],
        reasons=reasons,
        not_checked=not_checked,
        findings=findings,
        judgements=judgements,
    )


REPRODUCED = report(
    Verdict.BIT_IDENTICAL,
    judgements=(judgement(Verdict.BIT_IDENTICAL, outputs=(LOSS,)),),
)
NOT_REPRODUCED = report(
    Verdict.NOT_REPRODUCED,
    reasons=("2 of 3 outputs are not the same",),
    not_checked=("chunk-digests",),
    findings=(*INTACT, NO_CHUNKS, VACUOUS, LOCKED, NO_MAC),
    judgements=(
        judgement(
            Verdict.NOT_REPRODUCED,
            reasons=("2 of 3 outputs are not the same",),
            outputs=(LOSS, GONE, LOGITS),
            environment=(CPU, TF32),
            device="cuda",
        ),
    ),
)
INCOMPLETE = report(
    Verdict.INCOMPLETE,
    reasons=("has-memory-log (runs/1): no sample was taken",),
    not_checked=("chunk-digests", "has-memory-log"),
    findings=(
        *INTACT,
        NO_CHUNKS,
        LOCKED,
        finding("has-memory-log", "not-checked", "no sample was taken", where="runs/1"),
    ),
)
TAMPERED = report(
    Verdict.TAMPERED,
    reasons=("member-digest (project/model.py): the content was altered",),
    not_checked=("outputs",),
    findings=(
        INTACT[0],
        INTACT[1],
        finding(
            "member-digest",
            "fail",
            "the content was altered",
            where="project/model.py",
            expected="ab" * 32,
            got="cd" * 32,
            advice="obtain the bundle again",
        ),
    ),
)
NOT_YET_REPLAYED = report(
    Verdict.NOT_YET_REPLAYED,
    reasons=("replayed: nobody has replayed it",),
    not_checked=("replayed",),
    findings=(
        *INTACT,
        finding(
            "replayed",
            "not-checked",
            "nobody has replayed it",
            advice="reprobundle replay digits.rpb.zip",
        ),
    ),
)
ALL = (REPRODUCED, NOT_REPRODUCED, INCOMPLETE, TAMPERED, NOT_YET_REPLAYED)
