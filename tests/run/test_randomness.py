"""Who seeded what, put together from the events of all processes."""

from reprobundle.run.events import (
    Absent,
    Began,
    Beginning,
    EventFile,
    Generators,
    LoaderPass,
    Seed,
    Start,
)
from reprobundle.run.randomness import randomness

ALL = ("numpy.random", "random", "torch")


def process(*events, pid=1, kind="main"):
    first = Start(
        t_ns=pid,
        pid=pid,
        parent_pid=0,
        kind=kind,
        argv=("train.py",),
        executable="python",
        working_directory="/",
    )
    return EventFile(start=first, events=(first, *events), damaged_lines=0)


def found(*files, seed=None, hide=(), complete=True):
    return randomness(files, seed, list(hide), complete=complete)


def absent(*modules):
    return Absent(t_ns=1, modules=modules)


def test_seed_calls_name_function_value_and_place():
    seed = Seed(t_ns=1, function="torch.manual_seed", value="7", where="/w/train.py:3")
    told = found(process(seed), seed=5, hide=[("/w", "{project}")])
    assert told.seed == 5
    assert [(c.function, c.value, c.where) for c in told.calls] == [
        ("torch.manual_seed", "7", "{project}/train.py:3")
    ]


def test_final_states_come_from_the_main_process_only():
    final = Generators(t_ns=1, when="final", fingerprints={"python": "aa"})
    other = Generators(t_ns=1, when="final", fingerprints={"python": "bb"})
    assert found(process(), process(other, pid=2)).final == {}
    assert found(process(final)).final == {"python": "aa"}


def test_modules_are_absent_when_every_process_says_so():
    helper = process(pid=9, kind="helper")
    two = process(absent("random", "torch"), pid=2)
    assert found(process(absent(*ALL)), helper).absent == ALL
    assert found(process(absent(*ALL)), two).absent == ("random", "torch")


def test_a_killed_or_unseen_process_leaves_it_unknown():
    assert found(process(absent(*ALL)), process(pid=2, kind="fork")).absent == ()
    assert found(process(absent(*ALL)), complete=False).absent == ()
    assert found().absent == ()


def test_passes_over_loaders_are_those_of_one_process():
    def seen(seed):
        return LoaderPass(t_ns=1, where="/w/a.py:1", base_seed=seed, workers=2)

    told = found(process(), process(seen("7"), pid=2), process(seen("8"), pid=3))
    assert [(one.base_seed, one.workers) for one in told.loaders] == [("7", 2)]


def began(name):
    return Began(name=name, kind="weight", dtype="float32", shape=(2,), fingerprint="a")


def test_the_start_of_one_process_counts_and_of_every_rank():
    def starts(*names, pid=1):
        event = Beginning(t_ns=1, tensors=tuple(began(name) for name in names))
        return process(event, pid=pid)

    plain = found(starts("Net/w"), starts("Net/w", "Net/b", pid=2))
    assert [tensor.name for tensor in plain.start] == ["Net/w"]
    ranks = found(starts("rank0/Net/w"), starts("rank1/Net/w", pid=2))
    assert [tensor.name for tensor in ranks.start] == ["rank0/Net/w", "rank1/Net/w"]
