"""What `inspect` shows of a record's randomness."""

import msgspec

from reprobundle.format.record import Loader, Randomness, StartTensor
from reprobundle.report.recorded import randomness_lines
from reprobundle.report.screen import Screen
from tests.report import bundles


def shown(known):
    screen = Screen()
    record = msgspec.structs.replace(bundles.RECORD, randomness=known)
    return screen.text(randomness_lines(record, screen, verbose=False))


def test_what_the_run_started_from_is_counted_by_kind():
    weight = StartTensor(
        name="Net/w", kind="weight", dtype="float32", shape=(2,), fingerprint="aa"
    )
    batch = StartTensor(name="b", kind="batch", dtype="float32", shape=(2,), reason="x")
    loader = Loader(
        where="t.py:3", base_seed="77", workers=2, start_method="fork", batch_size=16
    )
    text = shown(Randomness(start=(weight, batch), loaders=(loader,)))
    words = " ".join(text.split())
    assert "started from 1 weight tensor" in words
    assert "1 not read" in words
    assert "base seed 77, batch size 16, 2 workers by fork" in words


def test_modules_that_were_never_loaded_are_named():
    text = shown(Randomness(absent=("random", "torch")))
    assert "never loaded: random, torch" in text
    assert "started from" not in text
