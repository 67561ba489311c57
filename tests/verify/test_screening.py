import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprobundle.format.policy import Tolerance
from reprobundle.verify import samples
from reprobundle.verify.compare_arrays import describe
from reprobundle.verify.deviation import Deviation

RULES = (
    Tolerance(rtol=1e-4, atol=1e-5),
    Tolerance(rtol=1e-4, atol=1e-5, floor=0.1),
    Tolerance(rtol=0.0, atol=1e-6),
    Tolerance(rtol=1e-6, atol=0.0),
)


def measured(rule, reference, replay, *, screened):
    deviation = Deviation(rule, elements=reference.size, scale=1.0)
    if not screened:
        deviation._screening = None
    for start in range(0, reference.size, 512):
        part = slice(start, start + 512)
        deviation.add(reference[part], replay[part])
    return deviation


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", ["f4", "f2"])
@given(seed=st.integers(0, 2**32 - 1), size=st.floats(-7, 0), odd=st.booleans())
@settings(max_examples=15, deadline=None)
def test_screening_changes_no_figure(rule, dtype, seed, size, odd):
    draw = np.random.default_rng(seed)
    reference = (draw.standard_normal(8192) * draw.random(8192) ** 4).astype(dtype)
    reference[draw.random(8192) < 0.1] = 0.0
    noise = 10.0**size * draw.standard_normal(8192)
    replay = (reference * (1 + noise)).astype(dtype)
    if odd:
        replay[draw.integers(0, 8192, 5)] += np.array(0.5, dtype)
        replay[draw.integers(0, 8192)] = np.nan
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples, "SAMPLE_ELEMENTS", 1 << 10)
        plain, fast = (
            measured(rule, reference, replay, screened=screened)
            for screened in (False, True)
        )
    both = [
        describe(one, "x", dtype, reference.shape, equal=False) for one in (fast, plain)
    ]
    # The squares of a settled step may be those of float32.
    loose = ("relative_l2", "cosine")
    for name in loose:
        first, second = (getattr(one, name) for one in both)
        assert first == (second and pytest.approx(second, rel=1e-5))
    # Bit for bit: scale, quantiles, counts, worst place and its values.
    strict = [msgspec.structs.replace(one, relative_l2=0, cosine=0) for one in both]
    assert strict[0] == strict[1]
    assert fast.misplaced == plain.misplaced


@pytest.mark.parametrize("scale", [1e-16, 1e-8, 1.0, 1e8, 1e17])
@pytest.mark.parametrize("noise", [1e-6, 1e-3])
def test_norms_of_settled_steps_hold_at_every_scale(scale, noise):
    draw = np.random.default_rng(7)
    b = (scale * draw.standard_normal(1 << 18)).astype("f4")
    a = (b * (1 + noise * draw.standard_normal(b.size))).astype("f4")
    rule = Tolerance(rtol=1e-2, atol=1e-5 * scale)
    deviation = Deviation(rule, elements=b.size, scale=1.0)
    deviation.add(b, a)
    found = describe(deviation, "x", "float32", b.shape, equal=False)
    wide, other = b.astype("f8"), a.astype("f8")
    # numpy's own sum depends on the number of threads in the last digits.
    norm = math.sqrt(math.fsum((wide * wide).tolist()))
    assert found.relative_l2 == pytest.approx(
        np.linalg.norm(other - wide) / norm, rel=1e-5
    )
    assert found.scale == pytest.approx(norm / 512, rel=1e-14)
    cosine = wide @ other / (norm * np.linalg.norm(other))
    assert found.cosine == pytest.approx(cosine, abs=1e-9)


def test_screening_spares_most_steps():
    reference = np.random.default_rng(0).standard_normal(1 << 18).astype("f4")
    replay = reference * np.float32(1 + 1e-6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples, "SAMPLE_ELEMENTS", 1 << 10)
        deviation = Deviation(RULES[0], elements=reference.size, scale=1.0)
        exact = []
        patch.setattr(
            Deviation,
            "_finite",
            lambda *arguments: exact.append(arguments),
            raising=True,
        )
        deviation.max_abs, deviation.max_rel = 1e-5, 1e-5
        deviation._excess = -1e-6
        deviation.add(reference, replay)
    assert exact == []
