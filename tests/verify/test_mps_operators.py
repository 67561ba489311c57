"""The table of MPS operators."""

import pytest

from reprobundle.verify.mps_operators import base_name, table_of


@pytest.mark.parametrize(
    ("version", "operator", "placement"),
    [
        ("2.13.0+cpu", "aten.addmm.default", "native"),
        ("2.13.0", "aten.mode.default", "missing"),
        ("2.14.1", "aten.heaviside.default", "missing"),
        ("2.15.0", "aten.heaviside.default", "native"),
        ("2.13.0", "aten.linalg_svd.default", "always-cpu"),
        ("2.14.0", "aten.embedding_renorm_.default", "always-cpu"),
        ("2.13.0", "aten.linalg_lstsq.default", "missing"),
        ("2.13.0", "aten.zeros_like.default", "composite"),
        ("2.13.0", "torchvision.nms.default", "unknown"),
        ("2.13.0", "aten.no_such_operator.default", "unknown"),
    ],
)
def test_an_operator_has_its_place_in_each_version(version, operator, placement):
    table = table_of(version)
    assert table is not None
    assert table.placement(operator) == placement


@pytest.mark.parametrize("version", ["2.8.0", "2.16.0", "", "unknown"])
def test_a_version_that_nobody_listed_has_no_table(version):
    assert table_of(version) is None


def test_the_number_of_missing_operators_falls_as_published():
    counts = []
    for minor in (9, 10, 11, 12, 13, 14, 15):
        table = table_of(f"2.{minor}.0")
        assert table is not None
        counts.append(len(table.missing()))
    assert counts == [388, 380, 374, 372, 362, 344, 334]


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("aten::heaviside.out", "heaviside"),
        ("aten::heaviside", "heaviside"),
        ("aten.heaviside.default", "heaviside"),
        ("aten.logit_.default", "logit"),
        ("aten.__and__.Tensor", "__and__"),
    ],
)
def test_all_witnesses_mean_the_same_operator(name, base):
    assert base_name(name) == base
