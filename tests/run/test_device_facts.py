"""What the events of a run say about devices and CPU fallback."""

import pytest

from reprobundle.format.record import Fact
from reprobundle.run.device_facts import devices
from reprobundle.run.events import (
    Device,
    EventFile,
    FallbackEvent,
    Start,
    WarningEvent,
    WitnessEvent,
)

TORCH = {"torch.version": Fact(value="2.13.0")}
PRINTED = (
    "[W1202 MPSFallback.mm:11] Warning: The operator 'aten::exp.out' is not currently "
    "supported on the MPS backend and will fall back to run on the CPU. (function x)\n"
)


@pytest.fixture
def of(tmp_path):
    """Return what events of one process, and of others, say."""

    def made(*events, facts=TORCH, printed="", others=()):
        stderr = tmp_path / "stderr.txt"
        stderr.write_text(printed)
        files = tuple(
            events_of_process(pid, one) for pid, one in enumerate((events, *others), 1)
        )
        return devices(files, facts, "mps", stderr=stderr, hide=[("/w", "{project}")])

    return made


def events_of_process(pid, events):
    start = Start(
        t_ns=0,
        pid=pid,
        parent_pid=0,
        kind="main",
        argv=("python",),
        executable="python",
        working_directory="/",
    )
    return EventFile(start=start, events=(start, *events), damaged_lines=0)


def device(name):
    return Device(t_ns=1, device=name, seen_on="input")


def looked(name, **more):
    return WitnessEvent(t_ns=1, name=name, looked=True, **more)


def test_no_fallback_is_possible_where_no_accelerator_was(of):
    found = of(device("cpu"))
    assert (found.observed, found.fallback) == (("cpu",), "none-possible")


@pytest.mark.parametrize("name", ["mps", "mps-standin"])
def test_on_mps_the_absence_of_a_warning_proves_nothing(of, name):
    found = of(device(name), looked("warnings"))
    assert found.fallback == "not-checked"
    assert found.reason == "did not look in this pass: profiler, census"


def test_three_witnesses_that_saw_nothing_are_evidence(of):
    names = ("warnings", "profiler", "census")
    assert of(device("mps"), *map(looked, names)).fallback == "none-seen"


def test_a_process_that_owes_its_census_makes_the_evidence_a_part(of):
    names = ("warnings", "profiler", "census")
    owed = WitnessEvent(t_ns=1, name="census", looked=False, reason="it was killed")
    one = [device("mps"), *map(looked, names)]
    paid = of(owed, *one)
    assert paid.fallback == "none-seen"
    found = of(*one, others=[[owed]])
    assert found.fallback == "not-checked"
    (census,) = [w for w in found.witnesses if w.name == "census"]
    assert (census.looked, census.reason) == (False, "it was killed")


def test_the_largest_count_of_one_key_holds(of):
    events = [
        FallbackEvent(
            t_ns=1, witness="warnings", operator="aten::a", count=n, where="/w/t.py:3"
        )
        for n in (1, 7)
    ]
    found = of(device("mps"), *events)
    assert found.fallback == "seen"
    ((count, where),) = {(one.count, one.where) for one in found.fallbacks}
    assert (count, where) == (7, "{project}/t.py:3")


@pytest.mark.parametrize(
    "message",
    [
        (
            "The operator 'aten::_ctc_loss' is not currently supported on the MPS "
            "backend and will fall back to run on the CPU."
        ),
        (
            "linalg_qr: limited to min(m,n) <= 512, falling back to CPU. (Triggered "
            "internally at …/LinearAlgebra.mm:3.)"
        ),
    ],
)
def test_an_ordinary_warning_is_heard_too(of, message):
    warning = WarningEvent(
        t_ns=1, category="UserWarning", message=message, where="t.py:4"
    )
    assert of(device("mps"), warning).fallback == "seen"


def test_a_scripts_own_words_are_no_fallback(of):
    warning = WarningEvent(
        t_ns=1, category="UserWarning", message="falling back to CPU", where="t.py:4"
    )
    assert of(device("mps"), warning).fallback == "not-checked"


def test_a_warning_that_torch_only_prints_is_heard(of):
    found = of(device("mps"), printed=PRINTED)
    assert [one.operator for one in found.fallbacks] == ["aten::exp.out"]
