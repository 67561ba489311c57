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
    # Bit for bit: norms, cosine, quantiles, counts, worst place and its values.
    assert both[0] == both[1]
    assert fast.misplaced == plain.misplaced


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
