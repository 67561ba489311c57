import json

import msgspec
import numpy as np
import pytest

from reprobundle.errors import BadCallError
from reprobundle.format.policy import Claim
from reprobundle.report.suggested import policy_file
from reprobundle.verify.suggest import suggest
from tests.verify.builder import NEAR, VALUES, Run, npy, outputs


def near(factor):
    return Run(outputs=outputs(logits=npy(VALUES * np.float32(1 + factor))))


def curve(seed):
    """Losses that part from one another by a factor of 1.6 with every step."""
    noise = np.random.default_rng(seed).standard_normal() * 1e-9 * 1.6 ** np.arange(40)
    losses = np.exp(-0.05 * np.arange(40)) + noise
    rows = b"".join(f"{value!r}\n".encode() for value in losses.tolist())
    return Run(outputs=outputs(**{"loss.csv": b"loss\n" + rows}))


def test_a_tolerance_is_five_times_the_largest_noise(bench):
    bench.repeat = near(1e-4)
    bench.pack()
    bench.replay(near(3e-4), occasion="a" * 16)
    derived = suggest(bench.path)
    (row,) = derived.tolerances
    assert (row.dtype, row.devices) == ("float32", "same")
    assert row.tolerance.rtol == pytest.approx(1.5e-3, rel=1e-2)
    assert derived.runs == 3
    assert "of 3 runs" in row.source


def test_runs_that_are_equal_need_no_tolerance(bench):
    bench.pack()
    derived = suggest(bench.path)
    assert (derived.tolerances, derived.outputs, derived.claims) == ((), (), ())
    assert any("bit-identical in all runs" in note for note in derived.notes)


def test_one_run_alone_suggests_nothing(bench):
    bench.repeat = None
    bench.pack()
    with pytest.raises(BadCallError, match="holds one run only"):
        suggest(bench.path)


def test_a_replay_of_something_else_is_no_repetition(bench):
    bench.pack().replay(near(0.5), files_digest="0" * 64)
    assert suggest(bench.path).runs == 2


def test_chaos_has_no_tolerance_but_first_rows_and_a_band(bench):
    bench.reference, bench.repeat = curve(1), curve(2)
    bench.pack()
    for number in (3, 4):
        bench.replay(curve(number), occasion=f"{number}" * 16)
    derived = suggest(bench.path)
    assert derived.runs == 4
    assert all(row.dtype != "number" for row in derived.tolerances)
    (rule,) = derived.outputs
    assert (rule.match, rule.rows is not None) == ("loss.csv", True)
    (claim,) = derived.claims
    (band,) = claim.bands
    assert band.metric == "loss.csv#loss"
    assert "prediction interval of 4 runs" in band.test
    assert any("no element-wise tolerance" in note for note in derived.notes)


def test_the_band_is_the_prediction_interval_of_one_more_run(bench):
    bench.reference, bench.repeat = curve(1), curve(2)
    bench.pack().replay(curve(3))
    last = [float(run.outputs["loss.csv"].split()[-1]) for run in map(curve, (1, 2, 3))]
    half = 4.303 * np.std(last, ddof=1) * np.sqrt(4 / 3)
    (claim,) = suggest(bench.path).claims
    (band,) = claim.bands
    assert band.least == pytest.approx(np.mean(last) - half)
    assert band.most == pytest.approx(np.mean(last) + half)


def test_two_runs_are_too_few_for_a_band(bench):
    bench.reference, bench.repeat = curve(1), curve(2)
    bench.pack()
    derived = suggest(bench.path)
    assert derived.claims == ()
    assert any("it rests on 2 runs" in note for note in derived.notes)


def test_the_file_leaves_the_author_open(bench):
    bench.repeat = Run(outputs=outputs(logits=NEAR))
    bench.pack()
    fields = policy_file(suggest(bench.path), "digits.rpb.zip")
    assert fields["author"] == ""
    assert set(fields) == {"author", "reason", "tolerances"}


def test_runs_of_a_claim_with_a_command_of_its_own_count_for_it(bench):
    command = ("python", "train.py", "--long")
    claims = (Claim(name="long", statement="It goes on", command=command),)
    bench.policy = msgspec.structs.replace(bench.policy, claims=claims)
    bench.claims = {"long": curve(1)}
    bench.claim_repeats = {"long": (curve(2), curve(3))}
    bench.pack()
    derived = suggest(bench.path)
    assert derived.runs == 2 + 3
    (claim,) = derived.claims
    assert (claim.name, claim.command) == ("long", command)
    assert "prediction interval of 3 runs" in claim.bands[0].test
    assert "it rests on 2 runs of claim 'main'" in derived.notes[0]
    fields = json.loads(json.dumps(policy_file(derived, "digits.rpb.zip")))
    (stated,) = fields["claims"]
    assert (stated["name"], stated["command"]) == ("long", list(command))
