"""Indices against the tables they look into, operator by operator."""

from typing import Any

import pytest

from reprobundle.recorder.lookups import lookups

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
aten = torch.ops.aten
F = torch.nn.functional
INDEX = torch.tensor([0, 7])
TABLE = torch.zeros(5, 3)


def called(action):
    """Return the ranges that a call looks up, and whether it is an error here."""
    from torch.utils._python_dispatch import TorchDispatchMode

    found: list[tuple[int, int, int]] = []

    class Mode(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, operator: Any, types: Any, arguments: Any = (), named: Any = None
        ) -> Any:
            found.extend(
                (int(one.indices.max()), one.size, one.lowest)
                for one in lookups(operator, arguments, named or {})
            )
            return operator(*arguments, **(named or {}))

    raised = False
    with Mode():
        try:
            action()
        except (IndexError, RuntimeError):
            raised = True
    return found, raised


CASES = {
    "embedding": (lambda i: F.embedding(i, TABLE), 5, 0),
    "embedding_bag": (lambda i: F.embedding_bag(i[None], TABLE), 5, 0),
    "index_select": (lambda i: TABLE.index_select(0, i), 5, 0),
    "gather": (lambda i: TABLE.gather(0, i[:, None]), 5, 0),
    "take": (lambda i: TABLE[0].take(i), 3, -3),
    "advanced": (lambda i: TABLE[i], 5, -5),
    "second dimension": (lambda i: TABLE[:, i], 3, -3),
    "assignment": (lambda i: TABLE.clone().__setitem__(i, 1.0), 5, -5),
    "scatter": (lambda i: TABLE.scatter(0, i[:, None], 1.0), 5, 0),
    "scatter_add": (
        lambda i: TABLE.scatter_add(0, i[:, None], torch.ones(2, 1)),
        5,
        0,
    ),
    "index_add": (lambda i: TABLE.index_add(0, i, torch.ones(2, 3)), 5, 0),
    "cross_entropy": (lambda i: F.cross_entropy(torch.zeros(2, 5), i), 5, 0),
    "nll_loss2d": (
        lambda i: F.nll_loss(torch.zeros(1, 5, 2, 1), i.reshape(1, 2, 1)),
        5,
        0,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_indices_and_size_are_told_where_the_cpu_raises(name):
    action, size, lowest = CASES[name]
    found, raised = called(lambda: action(INDEX))
    assert raised
    assert found == [(7, size, lowest)]


def test_a_target_that_is_ignored_and_a_mask_are_no_lookups_out_of_range():
    target = torch.tensor([1, -100])
    found, raised = called(lambda: F.cross_entropy(torch.zeros(2, 5), target))
    assert (found, raised) == ([(1, 5, 0)], False)
    mask = torch.tensor([True, False, True, False, False])
    found, raised = called(lambda: TABLE[mask, torch.tensor([0, 1])])
    assert not raised
    assert found[-1] == (1, 3, -3)
