"""Places in sources that make generators which nobody sees being made."""

from __future__ import annotations

import ast

import pytest

from reprobundle.run.unseen_generators import unseen, unseen_in


def places(source):
    return [
        (one.where, one.text.partition(" stands here")[0])
        for one in unseen(ast.parse(source), "a.py")
    ]


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\nnp.random.RandomState(3)",
        "import numpy\nnumpy.random.RandomState(3)",
        "import numpy.random\nnumpy.random.RandomState(3)",
        "import numpy.random as r\nr.RandomState(3)",
        "from numpy import random\nrandom.RandomState(3)",
        "from numpy.random import RandomState\nRandomState(3)",
        "from numpy.random import RandomState as R\nR(3)",
        "from numpy.random import Generator, PCG64\nGenerator(PCG64(3))",
        "from numpy.random.mtrand import RandomState\nRandomState(3)",
    ],
)
def test_a_place_is_found_by_what_its_imports_mean(source):
    ((where, text),) = places(source)
    assert where == "a.py:2"
    assert text == source.partition("\n")[2]


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\nnp.random.default_rng(3)\nnp.random.seed(3)",
        "import random\nrandom.Random(3)",
        "class RandomState: pass\nRandomState(3)",
        "from mine import RandomState\nRandomState(3)",
        "from .random import Generator\nGenerator(3)",
        "import torch\ntorch.Generator()",
        "import numpy as np\nisinstance(x, np.random.RandomState)",
    ],
)
def test_what_is_seen_or_is_another_thing_is_no_place(source):
    assert places(source) == []


def test_files_that_are_no_python_are_passed_over(tmp_path):
    (tmp_path / "a.py").write_text("import numpy as np\nr = np.random.RandomState(1)\n")
    (tmp_path / "b.py").write_text("def broken(:")
    (tmp_path / "c.txt").write_text("np.random.RandomState(1)")
    found = unseen_in(tmp_path, ["a.py", "b.py", "c.txt", "gone.py"])
    assert [one.where for one in found] == ["a.py:2"]
    assert found[0].severity == "gap"
    assert found[0].id == "generator-not-seen"
