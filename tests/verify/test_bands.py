import msgspec
import numpy as np
import pytest

from reprobundle.format.policy import Band, Claim
from tests.verify.builder import NEAR, Run, found, npy, outputs

STATEMENT = "Accuracy is above 90 %"
ACCURACY = "out/metrics.json#accuracy"


def claiming(bench, *bands, statement=STATEMENT, **more):
    claim = Claim(name="main", statement=statement, bands=bands, **more)
    bench.policy = msgspec.structs.replace(bench.policy, claims=(claim,))
    return bench.pack()


def judged(bench, *bands, metrics=None, **more):
    changed = {} if metrics is None else {"metrics": metrics}
    claiming(bench, *bands, **more).replay(Run(outputs=outputs(**changed)))
    return bench.verify()


@pytest.mark.parametrize(
    ("least", "most", "result"),
    [
        (0.9, None, "within"),
        (0.9375, 0.9375, "within"),
        (None, 0.9, "outside"),
        (0.95, 0.99, "outside"),
    ],
)
def test_a_number_is_judged_by_its_band_with_both_ends(bench, least, most, result):
    report = judged(bench, Band(metric=ACCURACY, least=least, most=most, test="t"))
    (band,) = report.judgements[0].bands
    assert (band.result, band.reference, band.replay) == (result, 0.9375, 0.9375)
    expected = {"within": 0, "outside": 10}[result]
    assert report.exit_status == expected
    assert report.claims[0].judged


def test_a_number_outside_its_band_is_not_reproduced_and_names_the_test(bench):
    band = Band(metric=ACCURACY, least=0.95, test="prediction interval of 5 runs")
    report = judged(bench, band)
    (one,) = found(report, "claim-band", "fail")
    assert (one.expected, one.got) == ("at least 0.95", "0.9375")
    assert "prediction interval of 5 runs" in one.reason
    assert report.claims[0].result == "NOT REPRODUCED"


def test_a_nan_lies_in_no_band(bench):
    metrics = b'{"accuracy": NaN, "epochs": 3, "train_seconds": 1.0}\n'
    report = judged(bench, Band(metric=ACCURACY, most=5.0), metrics=metrics)
    assert report.judgements[0].bands[0].result == "outside"


def test_a_number_that_is_not_there_is_never_a_success(bench):
    report = judged(bench, Band(metric="out/metrics.json#f1", least=0.5))
    assert found(report, "claim-band", "not-checked")
    assert report.verdict == "INCOMPLETE"


@pytest.mark.parametrize("bands", [(), (Band(metric=ACCURACY),)])
def test_a_claim_without_a_band_is_shown_and_not_judged(bench, bands):
    report = judged(bench, *bands)
    assert found(report, "claim-judged", "not-checked")
    assert "claim-judged" in report.not_checked
    assert report.exit_status == 0
    (claim,) = report.claims
    assert (claim.statement, claim.judged) == (STATEMENT, False)
    assert [band.result for band in claim.bands] == ["not-judged"] * len(bands)


def test_a_claim_that_nobody_ran_is_not_run(bench):
    other = Claim(name="full", statement="The table", command=("python", "full.py"))
    main = Claim(name="main", minutes=2.0, disk_bytes=1000)
    bench.policy = msgspec.structs.replace(bench.policy, claims=(main, other))
    bench.claims = {"full": Run()}
    bench.pack().replay(Run())
    report = bench.verify()
    results = {claim.name: claim.result for claim in report.claims}
    assert results == {"main": "REPRODUCED, bit-identical", "full": "NOT RUN"}
    assert report.verdict == "PARTIAL"
    assert (report.claims[0].minutes, report.claims[0].disk_bytes) == (2.0, 1000)


def test_a_band_excuses_no_output_outside_its_tolerance(bench):
    claiming(bench, Band(metric=ACCURACY, least=0.9))
    far = npy(np.zeros((4, 6), "f4"))
    bench.replay(Run(outputs=outputs(logits=far)))
    assert bench.verify().verdict == "NOT REPRODUCED"


def test_the_last_number_of_a_column_counts(bench):
    table = b"epoch,loss\n1,0.9\n2,0.5\n3,0.25\n"
    bench.reference.outputs = outputs(**{"log.csv": table})
    bench.repeat.outputs = outputs(**{"log.csv": table})
    claiming(bench, Band(metric="log.csv#loss", most=0.3))
    bench.replay(Run(outputs=outputs(**{"log.csv": table, "logits": NEAR})))
    (band,) = bench.verify().judgements[0].bands
    assert (band.replay, band.result) == (0.25, "within")


def test_the_number_can_be_the_last_element_of_an_array(bench):
    claiming(bench, Band(metric="out/logits.npy", least=0.5, most=2.0, test="t"))
    bench.replay(Run())
    (band,) = bench.verify().judgements[0].bands
    assert (band.result, band.replay) == ("within", 1.0)


def test_an_array_that_ends_outside_its_band_is_not_reproduced(bench):
    claiming(bench, Band(metric="out/logits.npy", least=1.5))
    bench.replay(Run())
    report = bench.verify()
    assert report.judgements[0].bands[0].result == "outside"
    assert report.verdict == "NOT REPRODUCED"


def test_an_array_that_does_not_exist_is_not_found(bench):
    claiming(bench, Band(metric="out/logits.npy#other", least=0.0))
    bench.replay(Run())
    assert bench.verify().judgements[0].bands[0].result == "not-found"
