"""Executed notebooks: what counts as their result, and what no run repeats."""

from __future__ import annotations

import base64
import copy
import io
import json

import pytest

from reprobundle.errors import UnreadableOutputError
from reprobundle.format.policy import Tolerance
from reprobundle.outputs.documents import read_leaves
from reprobundle.outputs.kinds import detect
from reprobundle.verify.compare_cells import compare_documents

PNG = base64.b64encode(b"\x89PNG image").decode()
NOTEBOOK = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {"kernelspec": {"name": "python3"}},
    "cells": [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": ["# Title"]},
        {
            "cell_type": "code",
            "id": "b",
            "execution_count": 1,
            "metadata": {"execution": {"iopub.execute_input": "2026-01-01T00:00:00Z"}},
            "source": ["loss = train()\n", "print(loss)"],
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["epoch 1 "]},
                {"output_type": "stream", "name": "stdout", "text": ["loss 0.25\n"]},
                {
                    "output_type": "execute_result",
                    "execution_count": 1,
                    "metadata": {},
                    "data": {
                        "text/plain": ["<Figure at 0x7f00aa11bb22>"],
                        "image/png": PNG,
                        "application/json": {"acc": 0.5},
                        "application/vnd.jupyter.widget-view+json": {"model_id": "q"},
                    },
                },
            ],
        },
        {
            "cell_type": "code",
            "id": "c",
            "execution_count": 2,
            "metadata": {},
            "source": "raise ValueError(3)",
            "outputs": [
                {
                    "output_type": "error",
                    "ename": "ValueError",
                    "evalue": "3",
                    "traceback": ["long", "and coloured"],
                }
            ],
        },
    ],
}


def compared(other):
    return compare_documents(
        io.BytesIO(json.dumps(NOTEBOOK).encode()),
        io.BytesIO(json.dumps(other).encode()),
        ("notebook", "notebook"),
        tolerance=Tolerance(rtol=1e-6, atol=0.0),
        ignored=lambda keys: False,
    ).parts


def changed(change):
    other = copy.deepcopy(NOTEBOOK)
    change(other["cells"])
    return other


def test_a_notebook_is_a_kind_of_its_own():
    head = json.dumps(NOTEBOOK).encode()
    assert detect("analysis.ipynb", head) == ("document", "notebook")


@pytest.mark.parametrize(
    "change",
    [
        lambda cells: cells[1].update(execution_count=7, id="z", metadata={}),
        lambda cells: cells[1]["outputs"][2].update(execution_count=7),
        lambda cells: cells[1]["outputs"][2]["data"].update(
            {"text/plain": "<Figure at 0x7faabbccddee>"}
        ),
        lambda cells: cells[1]["outputs"][2]["data"].pop(
            "application/vnd.jupyter.widget-view+json"
        ),
        lambda cells: cells[2]["outputs"][0].update(traceback=["otherwise"]),
        lambda cells: cells[1].update(source="loss = train()\nprint(loss)"),
        lambda cells: cells[1].update(
            outputs=[
                {
                    "output_type": "stream",
                    "name": "stdout",
                    "text": "epoch 1 loss 0.25\n",
                },
                cells[1]["outputs"][2],
            ]
        ),
    ],
    ids=["cell", "count", "address", "widget", "traceback", "lines", "pieces"],
)
def test_what_no_run_repeats_does_not_count(change):
    parts = compared(changed(change))
    assert not [part for part in parts if part.problem or not part.equal]
    assert sum(part.elements for part in parts) > 10


@pytest.mark.parametrize(
    ("change", "column", "place"),
    [
        (
            lambda cells: cells[1].update(source="loss = 1"),
            "cells[].source",
            (2,),
        ),
        (
            lambda cells: cells[1]["outputs"][1].update(text="loss 0.26\n"),
            "cells[].outputs[].stdout[].numbers[]",
            (2, 1, 1, 2),
        ),
        (
            lambda cells: cells[1]["outputs"][0].update(text="epoch 2 "),
            "cells[].outputs[].stdout[].numbers[]",
            (2, 1, 1, 1),
        ),
        (
            lambda cells: cells[1]["outputs"][1].update(text="gain 0.25\n"),
            "cells[].outputs[].stdout[]",
            (2, 1, 1),
        ),
        (
            lambda cells: cells[1]["outputs"][2]["data"].update({"image/png": "AAAA"}),
            "cells[].outputs[].image/png",
            (2, 2),
        ),
        (
            lambda cells: cells[1]["outputs"][2]["data"].update(
                {"application/json": {"acc": 0.6}}
            ),
            "cells[].outputs[].application/json.acc",
            (2, 2),
        ),
        (
            lambda cells: cells[2]["outputs"][0].update(ename="KeyError"),
            "cells[].outputs[].ename",
            (3, 1),
        ),
    ],
    ids=["source", "loss", "epoch", "words", "image", "json", "error"],
)
def test_a_difference_is_told_by_cell_and_output(change, column, place):
    bad = [part for part in compared(changed(change)) if part.problem]
    assert [(part.name, part.worst_index) for part in bad] == [(column, place)]


def test_a_small_difference_of_a_printed_number_is_within_tolerance():
    near = changed(lambda cells: cells[1]["outputs"][1].update(text="loss 0.2500001\n"))
    parts = compared(near)
    assert not [part for part in parts if part.problem]
    assert [part.name for part in parts if not part.equal] == [
        "cells[].outputs[].stdout[].numbers[]"
    ]


def test_a_cell_that_was_not_run_is_a_difference():
    other = changed(lambda cells: cells[2].update(outputs=[]))
    assert [part for part in compared(other) if part.problem]


@pytest.mark.parametrize("cell", [3, {}, {"cell_type": "code", "source": 1}], ids=str)
def test_a_broken_cell_is_named(cell):
    stream = io.BytesIO(json.dumps({"cells": [cell]}).encode())
    with pytest.raises(UnreadableOutputError, match="cell 1 is not of notebook"):
        list(read_leaves(stream, "notebook"))


def test_an_older_notebook_is_compared_as_a_document():
    stream = io.BytesIO(b'{"nbformat": 3, "worksheets": [{"x": 1}]}')
    columns = [leaf.column for leaf in read_leaves(stream, "notebook")]
    assert columns == ["nbformat", "worksheets[].x"]
