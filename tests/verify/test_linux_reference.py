"""A bundle packed on a Mac: which attached record is its Linux reference."""

from __future__ import annotations

import msgspec
import pytest

from reprobundle.errors import BadCallError
from reprobundle.format.record import Fact, Outcome
from reprobundle.verify.linux_reference import require_linux_reference
from tests.verify.builder import ENVIRONMENT, FAR, NEAR, Run, found, on, outputs

LINUX = {**ENVIRONMENT, "os.system": Fact(value="Linux", source="os.uname()")}
MAC = {**ENVIRONMENT, "os.system": Fact(value="Darwin", source="os.uname()")}
GOOD = {"environment": LINUX, "elapsed_ns": 2, "reference_by": "Ada, second lab"}
MAPPED = msgspec.structs.replace(on("cpu", "none-possible"), mapping="cuda=cpu")


@pytest.fixture
def packed(bench):
    """Return a bundle whose reference was made on a Mac."""
    bench.reference = Run(changes={"platform": "darwin", "environment": MAC})
    bench.repeat = None
    return bench.pack()


def test_a_marked_record_from_linux_meets_the_demand_and_says_by_whom(packed):
    assert found(packed.verify(), "has-linux-reference", "fail")
    packed.replay(**GOOD)
    report = packed.verify()
    (one,) = found(report, "has-linux-reference", "pass")
    assert one.got == "Ada, second lab"
    assert "attached by Ada, second lab (stated, not proven)" in one.reason
    assert "the origin on darwin stays" in one.reason
    assert report.verdict != "INCOMPLETE", report.reasons


def facts(**changes):
    """Return the facts of a Linux machine with some of another one."""
    told = {key.replace("_", "."): value for key, value in changes.items()}
    return {**LINUX, **{name: Fact(value=v, source="x") for name, v in told.items()}}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"reference_by": ""}, "no record is marked"),
        ({"elapsed_ns": 1}, "a copy of sealed run 1"),
        ({"platform": "darwin"}, "made on darwin"),
        ({"environment": ENVIRONMENT}, "no fact of its environment says"),
        ({"environment": MAC}, "it says linux, and its environment darwin"),
        ({"environment": facts(os_build="24D60")}, "facts of macOS"),
        ({"environment": facts(cpu_model="Apple M3")}, "its processor apple m3"),
        (
            {"environment": facts(python_platform="macosx-14.0-arm64")},
            "its Python macosx-14.0-arm64",
        ),
        ({"pass_name": "evidence", "phases": ()}, "no measured pass"),
        ({"runs": 9}, "the bundle has no such run"),
        ({"files_digest": "cd" * 32}, "other files"),
        ({"outcome": Outcome(exit_status=1)}, "the command failed"),
        (
            {"outcome": Outcome(exit_status=0, completed=False, stop="interrupted")},
            "did not come to its end",
        ),
        ({"processes": ()}, "no process of it was observed"),
        ({"devices": on("mps")}, "a stand-in took the place"),
        ({"devices": MAPPED}, "a mapped run"),
        ({"outputs": ()}, "it has no outputs"),
    ],
)
def test_a_record_that_is_none_is_refused_with_its_reason(packed, changes, why):
    changed = {**GOOD, **changes}
    if "outputs" in changes:
        changed.pop("outputs")
        packed.replay(Run(outputs={}), **changed)
    else:
        packed.replay(**changed)
    (one,) = found(packed.verify(), "has-linux-reference", "fail")
    assert why in one.reason
    assert packed.verify().exit_status != 0


def test_another_persons_replay_cannot_be_marked_again(packed):
    packed.replay(**{**GOOD, "reference_by": ""})
    packed.replay(**GOOD)
    (one,) = found(packed.verify(), "has-linux-reference", "fail")
    assert "a copy of another attached record" in one.reason


def test_a_marked_record_that_differs_does_not_replace_the_origin(packed):
    packed.replay(Run(outputs={"out/metrics.json": b'{"accuracy": 0.1}\n'}), **GOOD)
    report = packed.verify()
    assert found(report, "has-linux-reference", "pass")
    assert report.verdict == "NOT REPRODUCED"


def test_attach_says_before_it_attaches_whether_a_file_brings_one(packed):
    require_linux_reference(packed.path, packed.replay_alone(**GOOD))
    with pytest.raises(BadCallError, match="it is not marked: only its maker can"):
        require_linux_reference(
            packed.path, packed.replay_alone(**{**GOOD, "reference_by": ""})
        )
    with pytest.raises(BadCallError, match="a copy of sealed run 1"):
        require_linux_reference(
            packed.path, packed.replay_alone(**{**GOOD, "elapsed_ns": 1})
        )
    with pytest.raises(BadCallError, match="a replay of another bundle"):
        require_linux_reference(
            packed.path, packed.replay_alone(**{**GOOD, "bundle": "ab" * 32})
        )


NAME = "linux-reference-differs"


def beside(report):
    """Return what is said of each replay and the Linux reference, oldest first."""
    return [
        next(one for one in judged.findings if one.id == NAME)
        for judged in report.judgements
    ]


def test_a_replay_is_compared_with_the_linux_reference_too(packed):
    packed.replay(Run(outputs(logits=NEAR)), **GOOD)
    packed.replay(environment=LINUX, elapsed_ns=3)
    report = packed.verify()
    itself, other = beside(report)
    assert (itself.outcome, itself.reason) == (
        "not-applicable",
        "it is the Linux reference itself",
    )
    assert other.outcome == "pass"
    assert other.reason.startswith("within tolerance (out/logits.npy differs by up to")
    assert "attached by Ada, second lab (linux-cpu) too" in other.reason
    assert other.reason.endswith("the origin on darwin stays the verdict's base")
    assert other.where == f"replays/{report.judgements[0].replay}"


def test_a_replay_that_differs_from_the_linux_reference_alone_is_warned_of(packed):
    packed.replay(Run(outputs(logits=NEAR)), **GOOD)
    other = Run(outputs(logits=FAR))
    packed.replay(other, environment=LINUX, elapsed_ns=3)
    found_ = beside(packed.verify())[1]
    assert found_.outcome == "warn"
    assert "differs from the Linux reference attached by Ada" in found_.reason
    assert "out/logits.npy" in found_.reason


def test_the_origin_stays_the_base_when_only_the_linux_reference_differs(packed):
    packed.replay(Run(outputs(logits=FAR)), **GOOD)
    packed.replay(environment=LINUX, elapsed_ns=3)
    report = packed.verify()
    newest = report.judgements[1]
    assert newest.against == 1
    assert {one.result for one in newest.outputs} == {"bit-identical"}
    assert newest.verdict == "REPRODUCED WITH WARNINGS"
    assert beside(report)[1].outcome == "warn"
    allowed = packed.verify(allow=(NAME,))
    assert allowed.judgements[1].verdict == "REPRODUCED, bit-identical"


def test_without_a_linux_reference_the_question_is_open_and_elsewhere_not_asked(
    packed, tmp_path
):
    packed.replay(environment=LINUX, elapsed_ns=3)
    (one,) = beside(packed.verify())
    assert one.outcome == "not-checked"
    packed.reference = Run()
    packed.pack().replay()
    report = packed.verify()
    assert not found(report, NAME, "not-checked")
    assert not found(report, NAME, "pass")
