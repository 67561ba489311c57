"""How a memory counter went: leaks, noise, steps, and growth with shapes."""

import random

import pytest

from reprobundle.outputs.growth import FEWEST_SAMPLES, Point, classify

MIB = 1 << 20
KIB = 1 << 10


def rounds(count):
    """The rounds that the recorder samples: ever further apart."""
    at, distance, taken = 1, 1, 0
    while at <= count:
        yield at
        taken += 1
        distance *= 2 if taken % 32 == 0 else 1
        at += distance


def series(count, size, *, shapes=lambda n: 1):
    return [Point(n, int(size(n)), shapes(n)) for n in rounds(count)]


def noise(seed, *, scale):
    """A resident size as it was measured: it wanders, jumps and comes back."""
    draw = random.Random(seed)
    sizes, at = [], 0.0
    for _ in range(5000):
        at = 0.7 * at + draw.gauss(0, scale)
        sizes.append(max(at, -50 * MIB) + (draw.random() < 0.05) * 4 * scale)
    return sizes


def kind(points, **options):
    return classify("anonymous", points, **options).kind


@pytest.mark.parametrize("count", [30, 200, 3000])
@pytest.mark.parametrize("seed", range(8))
def test_a_kept_loss_is_told_from_noise(count, seed):
    # Measured on another machine: 2.2 to 2.6 MiB a step against noise of up to
    # 67 KiB a step.
    wander = noise(seed, scale=400 * KIB)
    draw = random.Random(seed)
    leak = [0.0]
    for _ in range(5000):
        leak.append(leak[-1] + draw.uniform(2.2, 2.6) * MIB)
    quiet = classify("anonymous", series(count, lambda n: 300 * MIB + wander[n]))
    assert quiet.kind in ("flat", "step", "unclear")
    leaking = classify(
        "anonymous", series(count, lambda n: 300 * MIB + wander[n] + leak[n])
    )
    assert leaking.kind == "linear"
    assert 2.1 * MIB < float(leaking.bytes_per_round) < 2.7 * MIB
    assert float(leaking.bytes_per_round) > float(leaking.noise_bytes_per_round)


def test_a_small_but_steady_leak_is_found_where_the_counter_is_quiet():
    grown = classify("cuda_allocated", series(500, lambda n: 10**9 + n * 4096))
    assert grown.kind == "linear"
    assert grown.bytes_per_round == 4096


def test_a_slope_below_the_band_is_no_growth():
    assert kind(series(500, lambda n: 10**9 + n * 500)) == "flat"


def test_the_beginning_is_not_judged():
    assert kind(series(100, lambda n: 10**9 + min(n, 10) * 50 * MIB)) == "flat"


def test_one_jump_is_a_step():
    grown = classify("rss", series(200, lambda n: 10**9 + (n > 120) * 300 * MIB))
    assert grown.kind == "step"
    assert str(300 * MIB) in grown.reason


def test_what_falls_is_flat():
    assert kind(series(200, lambda n: 10**9 - n * MIB)) == "flat"


def test_growth_with_new_shapes_only_is_told_from_a_leak():
    # A new length comes every fifth round; each leaves 30 MiB behind.
    def known(n):
        return 1 + n // 5

    grown = classify(
        "mps_driver",
        series(60, lambda n: 10**9 + known(n) * 30 * MIB, shapes=known),
    )
    assert grown.kind == "with-shapes"
    assert "where a new input shape came" in grown.reason


def test_a_leak_in_a_run_with_changing_shapes_stays_a_leak():
    grown = classify(
        "mps_driver",
        series(60, lambda n: 10**9 + n * 2 * MIB, shapes=lambda n: 1 + n // 5),
    )
    assert grown.kind == "linear"
    assert "known input shapes too" in grown.reason


def test_a_new_shape_in_every_round_cannot_be_told_from_a_leak():
    grown = classify(
        "mps_driver", series(30, lambda n: 10**9 + n * 2 * MIB, shapes=lambda n: n)
    )
    assert grown.kind == "unclear"
    assert "only a run with one shape tells" in grown.reason


def test_few_samples_are_not_classified():
    grown = classify("rss", series(FEWEST_SAMPLES, lambda n: 10**9))
    assert grown.kind == "not-classified"
    assert "fewest" in grown.reason
    assert classify("rss", []).kind == "not-classified"


def test_uneven_growth_is_called_unclear():
    jumps = {40: 1, 60: 2, 61: 4, 90: 5, 140: 9, 150: 10}

    def size(n):
        return 10**9 + 60 * MIB * max(
            (count for at, count in jumps.items() if at <= n), default=0
        )

    assert kind(series(200, size)) == "unclear"


def test_noise_beside_the_one_new_shape_of_a_last_batch_is_no_growth_with_shapes():
    steps = (0, 1, -1, 2, -1, 1, 2, -2, 2, 1)

    def loaded(n):
        return 10**9 + sum(steps[: n * 10 // 60]) * MIB

    found = classify("rss", series(60, loaded, shapes=lambda n: 1 + (n > 40)))
    assert found.kind == "unclear"
    assert isinstance(found.noise_bytes_per_round, float)
    assert isinstance(found.bytes_per_round, float)
    assert found.noise_bytes_per_round > found.bytes_per_round


def test_noise_beside_several_new_shapes_that_brought_nothing_is_none_either():
    steps = (0, 1, -1, 2, -1, 1, 2, -2, 2, 1)

    def loaded(n):
        return 10**9 + sum(steps[: n * 10 // 60]) * MIB

    def shapes(n):
        return 1 + (n > 20) + (n > 32) + (n > 44)

    assert kind(series(60, loaded, shapes=shapes)) == "unclear"
