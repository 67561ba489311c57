"""Hints about kept memory: each of the three faults, and what only looks like one."""

import ast
import textwrap
from pathlib import Path

import pytest

from reprobundle.run.hints import MOST_HINTS, hints, hints_in

TRAINING = """
model = Net(); model.train()
history = []; total = 0
for x, y in loader:
    out = model(x)
    loss = criterion(out, y)
    loss.backward()
    optimizer.step()
    {line}
"""
LAST = 9


def hinted(source):
    tree = ast.parse(textwrap.dedent(source))
    return [(hint.id, hint.where) for hint in hints(tree, "train.py")]


@pytest.mark.parametrize(
    "line",
    [
        "history.append(loss)",
        "history.append(loss / 4)",
        "history.append((x.shape, loss))",
        "logs['loss'].append(loss.cpu())",
        "history.append({'loss': loss})",
        "history.append(torch.sqrt(loss))",
        "total += loss",
        "self.total += loss * len(x)",
    ],
)
def test_a_loss_that_is_kept_with_its_graph_is_named(line):
    found = hinted(TRAINING.format(line=line))
    assert found == [("keeps-loss-graph", f"train.py:{LAST}")]


@pytest.mark.parametrize(
    "line",
    [
        "history.append(loss.item())",
        "history.append(float(loss))",
        "history.append(loss.detach())",
        "history.append(loss.detach().cpu())",
        "history.append(loss.data)",
        "history.append(accuracy(loss))",
        "total += loss.item()",
        "total = loss",
        "with torch.no_grad(): total += loss",
        "history.append(len(x))",
        "print(loss)",
    ],
)
def test_a_loss_that_is_cut_off_is_none(line):
    assert hinted(TRAINING.format(line=line)) == []


def test_a_loss_cut_off_under_its_own_name_is_none():
    line = "loss = loss.item(); history.append(loss)"
    assert hinted(TRAINING.format(line=line)) == []


@pytest.mark.parametrize(
    "call",
    [
        "(loss / 4).backward()",
        "scaler.scale(loss).backward()",
        "accelerator.backward(loss)",
        "torch.autograd.backward(loss)",
    ],
)
def test_every_way_to_call_backward_counts(call):
    source = f"""
    for x in loader:
        loss = f(x)
        {call}
        history.append(loss)
    """
    assert hinted(source) == [("keeps-loss-graph", "train.py:5")]


def test_a_loss_that_is_gathered_for_one_backward_pass_is_none():
    source = """
    for batch in loader:
        loss = 0
        for part in batch:
            loss += criterion(model(part))
        loss.backward()
    for x in loader:
        losses = []
        for part in x:
            losses.append(criterion(part))
        sum(losses).backward()
    """
    assert hinted(source) == []


@pytest.mark.parametrize(
    "line",
    [
        "predictions.append(out)",
        "predictions.append(out.softmax(1))",
        "predictions.extend(out)",
        "predictions.append(torch.softmax(out, 1))",
        "predictions.append((y, out))",
    ],
)
def test_predictions_kept_whole_are_named(line):
    found = hinted(TRAINING.format(line=line))
    assert found == [("keeps-predictions", f"train.py:{LAST}")]


@pytest.mark.parametrize(
    "line",
    [
        "predictions.append(out.detach())",
        "predictions.append(out.argmax(1))",
        "predictions.append(torch.argmax(out, 1))",
        "predictions.append(out.mean().item())",
        "predictions.append(y)",
        "predictions.append(metric(out, y))",
    ],
)
def test_an_extract_of_the_predictions_is_none(line):
    assert hinted(TRAINING.format(line=line)) == []


def test_inference_that_keeps_gradients_is_named_and_without_them_is_not():
    source = """
    model.eval()
    for x in loader:
        kept.append(model(x))
    with torch.no_grad():
        for x in loader:
            kept.append(model(x))
    @torch.inference_mode()
    def predict():
        for x in loader:
            kept.append(model(x))
    """
    assert hinted(source) == [("keeps-predictions", "train.py:4")]


@pytest.mark.parametrize(
    "line",
    [
        "out, hidden = rnn(x, hidden)",
        "out, (h, c) = lstm(x, (h, c))",
        "state = cell(x, state)",
    ],
)
def test_a_state_carried_into_the_next_round_is_named(line):
    source = f"""
    hidden = h = c = state = None
    for x, y in loader:
        {line}
        loss = criterion(out, y)
        loss.backward(retain_graph=True)
    """
    assert hinted(source) == [("carries-hidden-state", "train.py:4")]


@pytest.mark.parametrize(
    "lines",
    [
        "hidden = hidden.detach(); out, hidden = rnn(x, hidden)",
        "out, hidden = rnn(x, hidden.detach())",
        "out, hidden = rnn(x, hidden); hidden = repackage(hidden)",
        "hidden.detach_(); out, hidden = rnn(x, hidden)",
        "hidden = model.init(len(x)); out, hidden = rnn(x, hidden)",
        "out, other = rnn(x, hidden)",
        "x = model(x)",
        "x, y = augment(x, y)",
    ],
)
def test_a_state_that_begins_anew_is_none(lines):
    source = f"""
    for x, y in loader:
        {lines}
        loss = criterion(out, y)
        loss.backward()
    """
    assert hinted(source) == []


def test_a_state_within_one_sequence_is_none():
    source = """
    for sequence in loader:
        hidden = None
        for x in sequence:
            out, hidden = rnn(x, hidden)
        loss = criterion(out)
        loss.backward()
    """
    assert hinted(source) == []


def test_a_state_over_all_sequences_is_named_at_its_line():
    source = """
    hidden = None
    for sequence in loader:
        for x in sequence:
            out, hidden = rnn(x, hidden)
        criterion(out).backward(retain_graph=True)
    """
    assert hinted(source) == [("carries-hidden-state", "train.py:5")]


def test_hints_come_from_the_files_named_and_never_stop_a_run(tmp_path):
    loop = TRAINING.format(line="history.append(loss)")
    (tmp_path / "train.py").write_text(loop)
    (tmp_path / "broken.py").write_text("for x in\n")
    (tmp_path / "zero.py").write_bytes(b"\0")
    (tmp_path / "data.csv").write_text(loop)
    names = ("absent.py", "broken.py", "data.csv", "train.py", "zero.py")
    (hint,) = hints_in(tmp_path, names)
    assert (hint.severity, hint.where) == ("gap", f"train.py:{LAST}")
    assert ".item()" in hint.text


def test_there_are_only_so_many_hints(tmp_path):
    many = TRAINING.format(line="; ".join(["pass"])) + "".join(
        f"    history.append(loss + {n})\n" for n in range(50)
    )
    (tmp_path / "train.py").write_text(many)
    assert len(hints_in(tmp_path, ["train.py"])) == MOST_HINTS


def test_a_source_of_more_than_a_mebibyte_is_not_read(tmp_path):
    source = textwrap.dedent(TRAINING).format(line="history.append(loss)")
    (tmp_path / "train.py").write_text(source)
    assert len(hints_in(tmp_path, ["train.py"])) == 1
    (tmp_path / "train.py").write_text(source + "#" * (1 << 20))
    assert hints_in(tmp_path, ["train.py"]) == ()


def test_the_project_own_examples_have_no_hints():
    top = Path(__file__).parents[2] / "examples"
    names = [path.relative_to(top).as_posix() for path in top.rglob("*.py")]
    assert len(names) >= 8
    assert hints_in(top, names) == ()


def test_a_source_without_a_backward_pass_or_a_model_is_not_parsed(
    tmp_path, monkeypatch
):
    parsed = []
    parse = ast.parse

    def watched(source):
        parsed.append(source)
        return parse(source)

    monkeypatch.setattr(ast, "parse", watched)
    (tmp_path / "a.py").write_text(
        "for n in evaluated:\n    train(n)\n    x.append(n)\n"
    )
    (tmp_path / "b.py").write_text("model. eval()\nfor x in y:\n    z += model(x)\n")
    tuple(hints_in(tmp_path, ["a.py", "b.py"]))
    assert [source[:5] for source in parsed] == [b"model"]
