"""A fault of one tenth of a percent is found at the place where it was planted."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from reprobundle.format.policy import DtypeTolerance, Policy, Tolerance
from reprobundle.recorder.fingerprints import FILE, Fingerprints, is_sampled
from reprobundle.recorder.operators import OperatorStream, _mode_class
from reprobundle.verify.divergence import check_divergence, read_fingerprints

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
nn = torch.nn
Function: Any = torch.autograd.Function

POLICY = Policy(
    tolerances=(
        DtypeTolerance(
            dtype="float32",
            devices="same",
            tolerance=Tolerance(rtol=1.3e-6, atol=1e-5),
            source="torch.testing",
        ),
    )
)


class Clock:
    steps = 0
    open_phase = ""


class Session:
    kind = "main"

    def __init__(self, folder):
        self.values = str(folder)

    def attempt(self, part, action, *arguments):
        return action(*arguments)


def make_model():
    return nn.ModuleDict(
        {
            "embedding": nn.Embedding(10, 8),
            "conv": nn.Conv1d(8, 8, 3, padding=1),
            "norm": nn.BatchNorm1d(8),
            "attention": nn.MultiheadAttention(8, 2, batch_first=True),
            "dropout": nn.Dropout(0.3),
            "linear": nn.Linear(8, 3),
        }
    )


def forward(self, tokens):
    parts = self.parts
    x = parts["conv"](parts["embedding"](tokens).transpose(1, 2))
    x = parts["norm"](x).transpose(1, 2)
    x = self.between(parts["attention"](x, x, x, need_weights=False)[0])
    return parts["linear"](parts["dropout"](x).mean(1))


def as_model(parts):
    model = type("Model", (nn.Module,), {"forward": forward})()
    model.parts = parts
    model.between = lambda x: x
    return model


class BackwardFault(Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 1.001


class WeightFault(Function):  # type: ignore[misc]
    """A linear layer whose gradient of the weight alone is off."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return torch.nn.functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return gradient @ weight, gradient.t() @ x * 1.001, gradient.sum(0)


def traced(folder, fault=""):
    """Train three steps with one fault and return the path of the fingerprints."""
    folder.mkdir()
    session: Any = Session(folder)
    clock: Any = Clock()
    torch.manual_seed(0)
    parts = make_model()
    model = as_model(parts)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if fault in parts:
        with torch.no_grad():
            for parameter in parts[fault].parameters():
                parameter.mul_(1.001)
    torch.manual_seed(1)
    data = torch.randint(10, (3, 4, 6))
    observer = Fingerprints(session, clock)
    observer.start(torch)
    stream = OperatorStream(session, clock, observer.operator)
    from torch.utils._python_dispatch import TorchDispatchMode

    with _mode_class(TorchDispatchMode, stream)():
        for step in range(3):
            if fault == "backward" and step == 1:
                model.between = BackwardFault.apply
            if fault == "weight" and step == 1:
                linear = parts["linear"]
                linear.forward = lambda x, f=linear: WeightFault.apply(
                    x, f.weight, f.bias
                )
            if fault == "draw" and step == 1:
                torch.rand(1)
            batch = data[(step + 1) % 3 if fault == "order" and step else step]
            optimizer.zero_grad()
            loss = model(batch).square().sum()
            loss.backward()
            if fault == "gradient" and step == 1:
                parts["conv"].weight.grad.mul_(1.001)
            if fault == "optimizer" and step == 1:
                optimizer.param_groups[0]["lr"] *= 1.5
            optimizer.step()
            clock.steps += 1
            observer.step(clock.steps)
    observer.finish()
    weights = [parameter.detach().clone() for parameter in model.parameters()]
    return folder / FILE, weights


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return traced(tmp_path_factory.mktemp("reference") / "r")


def judged(left, right, *, differs=True):
    with left.open("rb") as one, right.open("rb") as two:
        return check_divergence(
            one, two, policy=POLICY, devices="same", differs=differs
        )


PLACES = {
    "embedding": "step 0, operator 0.parts.embedding, aten.embedding",
    "conv": "step 0, operator 0.parts.conv, aten.convolution",
    "norm": "step 0, operator 0.parts.norm, aten.",
    "attention": "step 0, operator 0.parts.attention, aten.",
    "linear": "step 0, operator 0.parts.linear, aten.",
    "draw": "step 1, operator 0.parts.dropout, aten.",
    "order": "step 1, input 0, int64",
    "backward": "step 1, gradient coming back to 0.parts.attention",
    "weight": "step 1, gradient of 0.parts.linear.weight, float32",
    "gradient": "step 1, gradient of 0.parts.conv.weight",
    "optimizer": "step 1, parameter 0.parts.",
}


def test_the_page_about_draws_has_the_table_of_planted_faults():
    page = (Path(__file__).parents[2] / "docs/draws.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .* \| `(step [^`]+)` \|$", page, re.MULTILINE)
    assert [place.rstrip(".") for place in PLACES.values()] == [
        row.rstrip(".…") for row in rows
    ]


@pytest.mark.parametrize(("fault", "place"), PLACES.items())
def test_a_planted_fault_is_found_where_it_is(tmp_path, reference, fault, place):
    path, _ = traced(tmp_path / "run", fault)
    found = judged(reference[0], path)
    assert (found.id, found.outcome) == ("first-divergence", "fail")
    assert found.where.startswith(place)
    assert "its inputs agreed" in found.reason or fault == "order"
    assert found.expected != found.got


def test_a_fault_of_the_optimizer_is_told_from_one_of_the_backward_pass(
    tmp_path, reference
):
    path, _ = traced(tmp_path / "optimizer", "optimizer")
    assert "the optimizer's step made it" in judged(reference[0], path).reason
    path, _ = traced(tmp_path / "backward", "backward")
    assert judged(reference[0], path).reason.endswith(
        "the backward pass before this place made it, after the gradient that came "
        "back to 0.parts.dropout agreed"
    )


def test_a_fault_in_the_last_layers_backward_has_no_gradient_before_it(
    tmp_path, reference
):
    with reference[0].open() as stream:
        header, *lines = stream
    first = next(n for n, line in enumerate(lines) if '"returned"' in line)
    entry = json.loads(lines[first])
    entry["norm"] *= 1.001
    lines[first] = json.dumps(entry) + "\n"
    path = tmp_path / "loss"
    path.write_text("".join((header, *lines)))
    found = judged(reference[0], path)
    assert found.where.startswith("step 0, gradient coming back to 0.parts.linear,")
    assert found.reason.endswith("the backward pass before this place made it")


def test_equal_runs_part_nowhere_and_tracing_changes_no_bit(tmp_path, reference):
    path, weights = traced(tmp_path / "run")
    found = judged(reference[0], path, differs=False)
    assert found.outcome == "pass"
    assert found.reason.startswith("no divergence seen at ")
    assert all(map(torch.equal, weights, reference[1]))
    # If outputs differ and no place does, that is no success.
    assert judged(reference[0], path).outcome == "not-applicable"


def test_runs_that_part_and_agree_in_the_end_are_told_so(tmp_path, reference):
    path, _ = traced(tmp_path / "run", "linear")
    found = judged(reference[0], path, differs=False)
    assert found.outcome == "not-applicable"
    assert "the outputs agree all the same" in found.reason


def test_without_fingerprints_nothing_is_checked(reference):
    for left, right in ((None, True), (True, None), (None, None)):
        with reference[0].open("rb") as one, reference[0].open("rb") as two:
            found = check_divergence(
                one if left else None,
                two if right else None,
                policy=POLICY,
                devices="same",
                differs=True,
            )
        assert found.outcome == "not-checked"


@pytest.mark.parametrize("text", [b"", b"{}", b'{"format": "x", "complete": true}'])
def test_a_damaged_member_is_no_success(tmp_path, reference, text):
    bad = tmp_path / "bad"
    bad.write_bytes(text)
    assert judged(reference[0], bad).outcome == "not-checked"


def test_entries_tell_kind_dtype_shape_and_strides(reference):
    with reference[0].open("rb") as stream:
        entries = read_fingerprints(stream)
    assert {entry.kind for entry in entries} == {
        "input",
        "module",
        "operator",
        "returned",
        "gradient",
        "parameter",
    }
    conv = next(e for e in entries if (e.kind, e.path) == ("module", "0.parts.conv"))
    assert (conv.dtype, conv.shape, conv.stride) == ("float32", (4, 8, 6), (48, 6, 1))


def test_memory_that_nobody_wrote_has_no_fingerprint(reference):
    with reference[0].open("rb") as stream:
        names = {entry.operator for entry in read_fingerprints(stream)}
    assert any(name.startswith("aten.bernoulli_") for name in names)
    assert not any("empty" in name for name in names)


def test_another_dtype_at_a_place_is_named():
    lines = {}
    for dtype in ("float32", "float16"):
        entry = {"kind": "module", "step": 0, "path": "0", "call": 0, "operator": ""}
        entry |= {"place": 0, "dtype": dtype, "shape": [2], "stride": [1]}
        header = {"format": "reprobundle/fingerprints/1", "complete": True}
        rows = (header, entry | {"norm": 1.0, "sum": 1.0})
        lines[dtype] = io.BytesIO("\n".join(map(json.dumps, rows)).encode())
    found = check_divergence(
        lines["float32"],
        lines["float16"],
        policy=POLICY,
        devices="same",
        differs=True,
    )
    assert found.expected == "float32, norm 1.0, sum 1.0, shape [2]"
    assert found.got == "float16, norm 1.0, sum 1.0, shape [2]"


def test_the_first_steps_and_powers_of_two_are_sampled():
    assert [n for n in range(40) if is_sampled(n)] == [0, 1, 2, 4, 8, 16, 32]
