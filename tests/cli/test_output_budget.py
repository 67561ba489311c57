"""A large output: a small bundle, and a comparison that says what it rests on."""

from __future__ import annotations

import zipfile

import pytest

from tests.cli.conftest import reprobundle

# The factor moves every element by one or two units in the last place.
SCRIPT = """\
import os
import numpy as np

weights = np.random.default_rng(1).standard_normal(1_500_000, dtype="f4")
kind = os.environ.get("LANG", "")
if kind == "near":
    weights *= np.float32(1 + 2e-7)
if kind == "far":
    weights[::97] += 1
np.save("weights.npy", weights)
losses = weights[:200_000].astype("f8")
with open("losses.csv", "w") as stream:
    print("step,loss,note", file=stream)
    for step, loss in enumerate(losses.tolist()):
        print(step, loss, "ok", sep=",", file=stream)
print("norm", float(np.sqrt((weights.astype("f8") ** 2).sum())))
"""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    (folder / "project").mkdir()
    (folder / "project/train.py").write_text(SCRIPT)
    target = folder / "large.rpb.zip"
    done = reprobundle(
        "pack",
        *("-o", target, "-q", "--offline", "--output-budget", "1MB"),
        *("--", "python", "train.py"),
        cwd=folder / "project",
        env={"LANG": "C.UTF-8"},
    )
    assert done.status == 0, done.err
    assert "output weights.npy: 6,000,128 bytes, a sample" in done.err
    assert "a sample of 100,000 of its 200,000 rows" in done.err
    return target


def replayed(bundle, name, language):
    alone = bundle.parent / f"{name}.rpr.zip"
    done = reprobundle(
        "replay",
        *(bundle, "--yes", "-q", "--passes", "measured", "--record", alone),
        env={"LANG": language},
    )
    return done, alone


def test_the_bundle_holds_the_sample_once_and_not_the_output(bundle):
    names = zipfile.ZipFile(bundle).namelist()
    kept = [name for name in names if "weights" in name or "losses" in name]
    assert [name.removesuffix(".zst") for name in kept] == [
        "runs/1/samples/outputs/losses.csv",
        "runs/1/samples/outputs/weights.npy.safetensors",
    ]
    assert bundle.stat().st_size < 2_000_000
    done = reprobundle("verify", bundle, "--integrity")
    assert done.status == 0, done.out


@pytest.mark.parametrize(
    ("language", "result", "words"),
    [
        ("C.UTF-8", "bit-identical", ()),
        (
            "near",
            "within-tolerance",
            (
                "compared at 100,000 of 1,500,000 places",
                "sampled at 100,000 rows of 200,000; 2 of 2 blocks differ",
            ),
        ),
        ("far", "outside-tolerance", ("of 100,000 elements",)),
    ],
)
def test_a_replay_is_compared_by_digests_and_places(bundle, language, result, words):
    done, alone = replayed(bundle, language, language)
    shown = " ".join(done.out.split())
    assert f" {result}" in shown, done.out + done.err
    assert all(one in shown for one in words), shown
    assert alone.stat().st_size < 4_000_000
    # Of a sample that equals the sealed one a record refers to that.
    samples = [one for one in zipfile.ZipFile(alone).namelist() if "/samples/" in one]
    assert bool(samples) is (language != "C.UTF-8")


def test_a_budget_that_is_no_size_is_a_bad_call(bundle):
    done = reprobundle("pack", "--output-budget", "much", "--", "python", "x.py")
    assert done.status == 20
    assert "'much' is no size: write it like 25MB or 16MiB" in done.err
