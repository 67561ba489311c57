"""Facts that follow from what a run did."""

from reprobundle.format.record import Loader, Randomness, StartTensor
from reprobundle.run.events import EventFile, Open, Start
from reprobundle.run.observed import datasets, models, observed_facts

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PREPARED = "/home/a/.cache/huggingface/datasets"
HUB = "/home/a/.cache/huggingface/hub"


def files(*paths, mode="read"):
    start = Start(
        t_ns=0,
        pid=1,
        parent_pid=0,
        kind="main",
        argv=("t.py",),
        executable="python",
        working_directory="/",
    )
    opens = [Open(t_ns=1, path=path, mode=mode) for path in paths]
    return (EventFile(start=start, events=(start, *opens), damaged_lines=0),)


def tensor(name, kind, shape):
    return StartTensor(name=name, kind=kind, dtype="float32", shape=shape)


def test_sizes_are_those_of_the_first_loader_and_the_first_call():
    known = Randomness(
        loaders=(Loader(where="t.py:1", base_seed="1", batch_size=32),),
        start=(
            tensor("batch/0", "batch", (32, 8)),
            tensor("Net/w", "weight", (8,)),
            tensor("Net/input/0", "input", (32, 1, 8)),
        ),
    )
    facts = observed_facts(files(), known)
    assert facts["observed.batch_size"].value == 32
    assert facts["observed.input_shapes"].value == ("Net/input/0 float32[32, 1, 8]",)


def test_without_a_call_the_first_batch_shows_the_shape():
    known = Randomness(start=(tensor("batch/0", "batch", (4, 2)),))
    facts = observed_facts(files(), known)
    assert facts["observed.input_shapes"].value == ("batch/0 float32[4, 2]",)


def test_what_was_not_seen_is_unknown_with_the_reason():
    facts = observed_facts(files(), Randomness())
    assert all(fact.unknown and fact.source for fact in facts.values())
    unbatched = Randomness(loaders=(Loader(where="t.py:1", base_seed="1"),))
    fact = observed_facts(files(), unbatched)["observed.batch_size"]
    assert fact.unknown == "the data loader forms no batches"


def test_hub_files_name_model_and_commit():
    paths = [
        f"{HUB}/models--google--vit-base/snapshots/{COMMIT}/config.json",
        f"{HUB}/models--google--vit-base/snapshots/{COMMIT}/model.safetensors",
        f"{HUB}/models--gpt2/snapshots/{COMMIT}/config.json",
        f"{HUB}/models--x--y/refs/main",
        "/home/a/.cache/torch/hub/checkpoints/resnet18-f37072fd.pth",
        "/home/a/hub/checkpoints/mine.pth",
    ]
    facts = observed_facts(files(*paths), Randomness())
    assert facts["observed.models"].value == (
        f"google/vit-base@{COMMIT}",
        f"gpt2@{COMMIT}",
        "resnet18-f37072fd.pth",
    )
    assert facts["observed.datasets"].unknown


def test_hub_files_name_data_set_and_revision():
    paths = [
        f"{HUB}/datasets--owner--set/snapshots/{COMMIT}/data/train.parquet",
        f"{PREPARED}/owner___set/default/0.0.0/1234567890abcdef/set-train.arrow",
    ]
    assert datasets(paths) == [
        f"owner/set@{COMMIT}",
        "owner/set/default/0.0.0 1234567890abcdef",
    ]
    assert models(paths) == []


def test_a_file_that_was_written_was_not_read():
    path = f"{HUB}/models--a--b/snapshots/{COMMIT}/config.json"
    facts = observed_facts(files(path, mode="write"), Randomness())
    assert facts["observed.models"].unknown
