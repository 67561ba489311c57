import msgspec
import pytest

from reprobundle.format.canonical import encode
from reprobundle.format.lock import Lock
from reprobundle.format.record import (
    Command,
    Fact,
    FileRead,
    Memory,
    Outcome,
    Process,
    Randomness,
    SeedCall,
)
from reprobundle.format.writer import Source
from tests.verify.builder import DATA, ENVIRONMENT, FAILED, LOCK, Run, found


def sealed_with(bench, **changes):
    bench.reference = Run(changes=changes)
    bench.repeat = None
    return bench.pack().verify(integrity_only=True)


def lacks(report, name):
    assert (report.verdict, report.exit_status) == ("INCOMPLETE", 11)
    lacking = found(report, name, "fail")[0]
    assert f"{name}" in " ".join(report.reasons)
    assert found(report, "lists-together", "not-checked")
    return lacking


def test_a_complete_bundle_has_all_eight(bench):
    report = bench.pack().verify(integrity_only=True)
    nine = [one for one in report.findings if one.check == "V9"]
    eight = [one for one in nine if one.id != "lock-for-others"]
    assert [one.outcome for one in eight] == ["pass"] * 8
    assert found(report, "lists-together", "pass")


def test_a_bundle_without_lockfile_is_incomplete(bench):
    bench.left_out = ("lock/environment.json",)
    bench.extra = (Source("lock/git.diff", "lock", b"+x\n"),)
    lacks(bench.pack().verify(integrity_only=True), "has-lockfile")


def test_a_lock_without_a_package_is_no_lockfile_but_the_projects_own_is(bench):
    lock = msgspec.json.decode(LOCK, type=Lock)
    bench.lock = encode(msgspec.structs.replace(lock, distributions=()))
    lacks(bench.pack().verify(integrity_only=True), "has-lockfile")
    bench.extra = (Source("lock/project/uv.lock", "lock", b"version = 1\n"),)
    assert found(bench.pack().verify(integrity_only=True), "has-lockfile", "pass")


def test_an_incomplete_bundle_stays_incomplete_after_a_good_replay(bench):
    bench.left_out = ("lock/environment.json",)
    bench.pack().replay()
    report = bench.verify()
    assert (report.verdict, report.exit_status) == ("INCOMPLETE", 11)
    assert report.judgements[0].exit_status == 0


def test_a_source_file_that_is_not_included_is_missing(bench):
    report = sealed_with(bench, sources=("train.py", "model.py"))
    assert lacks(report, "has-script").where == "model.py"


def test_a_command_that_names_no_project_file_has_no_script(bench):
    bench.left_out = ("project/train.py",)
    lacks(sealed_with(bench, sources=()), "has-script")


def test_a_script_that_imports_nothing_is_found_by_its_argument(bench):
    report = sealed_with(bench, sources=())
    assert found(report, "has-script", "pass")[0].where == "project/train.py"


def test_inputs_that_were_read_but_not_included_are_missing(bench):
    read = FileRead(path="external:1/big.bin", size_bytes=9, blake3="0" * 64)
    report = sealed_with(bench, reads=(read,))
    assert lacks(report, "has-input-sample").where == "external:1/big.bin"


def test_a_run_that_reads_no_input_needs_no_sample(bench):
    report = sealed_with(bench, reads=())
    assert report.verdict == "INTACT"
    assert found(report, "has-input-sample", "not-applicable")


def test_unrecorded_seeds_are_missing(bench):
    lacks(sealed_with(bench, randomness=Randomness()), "has-seeds")


@pytest.mark.parametrize(
    "known",
    [
        Randomness(seed=3),
        Randomness(
            calls=(SeedCall(function="random.seed", value="3", where="a.py:1", pid=1),)
        ),
    ],
)
def test_a_given_seed_or_a_seed_call_is_enough(bench, known):
    report = sealed_with(bench, randomness=known)
    assert found(report, "has-seeds", "pass")


def test_a_run_that_drew_nothing_needs_no_seed(bench):
    still = Randomness(initial={"torch.cpu": "0"}, final={"torch.cpu": "0"})
    report = sealed_with(bench, randomness=still)
    assert found(report, "has-seeds", "not-applicable")


def test_a_run_that_loaded_no_generator_needs_no_seed(bench):
    none = Randomness(absent=("numpy.random", "random", "torch"))
    (told,) = found(sealed_with(bench, randomness=none), "has-seeds")
    assert told.outcome == "not-applicable"
    assert "no process imported random, numpy.random, torch" in told.reason


def test_one_module_that_may_have_been_loaded_keeps_seeds_missing(bench):
    some = Randomness(absent=("random", "torch"))
    lacks(sealed_with(bench, randomness=some), "has-seeds")


@pytest.mark.parametrize(
    "call",
    [
        SeedCall(function="numpy.random.default_rng", value="None", where="a:1", pid=1),
        SeedCall(function="torch.seed", value="None", where="a:1", pid=1, drawn="7"),
        SeedCall(
            function="torch.manual_seed",
            value="12345",
            where="/x/torch/utils/data/_utils/worker.py:262",
            pid=2,
        ),
    ],
)
def test_a_seed_that_nobody_chose_is_none(bench, call):
    drawn = Randomness(
        calls=(call,), initial={"torch.cpu": "0"}, final={"torch.cpu": "1"}
    )
    report = sealed_with(bench, randomness=drawn)
    (told,) = found(report, "has-seeds")
    assert told.outcome == "warn"
    assert ("torch.seed took 7" in told.reason) == bool(call.drawn)


def seeded_by(function):
    """Return a randomness in which one call set a seed and torch's draws moved."""
    return Randomness(
        calls=(SeedCall(function=function, value="3", where="train.py:4", pid=1),),
        initial={"torch.cpu": "00"},
        final={"torch.cpu": "11"},
    )


@pytest.mark.parametrize(
    "function",
    [
        "random.Random",
        "numpy.random.default_rng",
        "torch.Generator",
        # Under --map-device cuda=cpu it becomes nothing.
        "torch.cuda.manual_seed",
        "torch.cuda.manual_seed_all",
        "torch.mps.manual_seed",
    ],
)
def test_a_generator_of_its_own_is_no_seed_for_the_global_one_that_moved(
    bench, function
):
    report = sealed_with(bench, randomness=seeded_by(function))
    (told,) = found(report, "has-seeds", "warn")
    assert told.where == "torch.cpu"
    assert f"and {function} does not seed torch.cpu" in told.reason
    rested = msgspec.structs.replace(seeded_by(function), final={"torch.cpu": "00"})
    report = sealed_with(bench, randomness=rested)
    assert found(report, "has-seeds", "pass")


def test_an_unseeded_run_tells_the_seed_it_happened_to_use(bench):
    drawn = Randomness(initial={"torch.cpu": "0"}, final={"torch.cpu": "1"})
    seed = Fact(value="1234567", source="torch.initial_seed()")
    facts = {**ENVIRONMENT, "torch.initial_seed": seed}
    report = sealed_with(bench, randomness=drawn, environment=facts)
    assert "torch started from 1234567" in found(report, "has-seeds", "warn")[0].reason


def test_a_generator_that_nobody_seeded_is_named_beside_those_that_were(bench):
    call = SeedCall(function="torch.manual_seed", value="3", where="a.py:1", pid=1)
    known = Randomness(
        calls=(call,),
        initial={"torch.cpu": "0", "numpy": "0", "python": "0"},
        final={"torch.cpu": "1", "numpy": "1", "python": "0"},
    )
    report = sealed_with(bench, randomness=known)
    assert found(report, "has-seeds", "pass")[0].reason == (
        "1 calls; numpy moved without a seed"
    )


@pytest.mark.parametrize("final", [{"torch.cpu": "1"}, {}])
def test_random_draws_without_a_seed_are_a_warning(bench, final):
    drawn = Randomness(initial={"torch.cpu": "0"}, final=final)
    bench.reference = Run(changes={"randomness": drawn})
    bench.pack().replay(randomness=drawn)
    report = bench.verify()
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    assert found(report, "has-seeds", "warn")[0].where == "torch.cpu"


@pytest.mark.parametrize("name", ["python.version", "torch.version"])
def test_an_unknown_version_is_missing(bench, name):
    facts = {**ENVIRONMENT, name: Fact(unknown="could not be read")}
    assert lacks(sealed_with(bench, environment=facts), "has-versions").where == name


def test_a_run_without_torch_needs_no_torch_version(bench):
    facts = {"python.version": ENVIRONMENT["python.version"]}
    assert found(sealed_with(bench, environment=facts), "has-versions", "pass")


def test_a_run_without_memory_series_lacks_the_memory_log(bench):
    memory = Memory(
        peak_rss_bytes=Fact(unknown="no sample"), peak_device_bytes=Fact(unknown="none")
    )
    bench.reference = Run(changes={"memory": memory})
    assert lacks(bench.pack().verify(integrity_only=True), "has-memory-log")


def test_a_memory_log_is_a_series(bench):
    memory = Memory(
        series="",
        samples=2,
        peak_rss_bytes=Fact(value=1, source="x"),
        peak_device_bytes=Fact(unknown="none"),
    )
    bench.reference = Run(changes={"memory": memory})
    assert found(bench.pack().verify(integrity_only=True), "has-memory-log", "fail")


@pytest.mark.parametrize("samples", [0, 1, 3])
def test_a_series_has_as_many_samples_as_its_record_states(bench, samples):
    record, _ = bench.reference.build(bench.folder)
    memory = msgspec.structs.replace(record.memory, samples=samples)
    bench.reference = Run(changes={"memory": memory})
    (bad,) = found(bench.pack().verify(integrity_only=True), "run-members", "fail")
    assert (bad.where, bad.expected, bad.got) == (
        "runs/1/memory.json",
        str(samples),
        "2",
    )


def test_a_run_without_outputs_has_no_output_summary(bench):
    bench.reference, bench.repeat = Run({}), None
    lacks(bench.pack().verify(integrity_only=True), "has-output-summary")


def test_an_expected_failure_is_described_by_its_error_only(bench):
    failed = Outcome(exit_status=1, expected_failure=True)
    bench.reference, bench.repeat = Run({}, {"outcome": failed}), None
    lacks(bench.pack().verify(integrity_only=True), "has-output-summary")
    bench.reference = Run({}, {"outcome": FAILED})
    report = bench.pack().verify(integrity_only=True)
    assert found(report, "has-output-summary", "pass")[0].reason


def test_a_reference_made_on_a_mac_needs_a_replay_on_linux(bench):
    bench.reference = Run(changes={"platform": "darwin"})
    bench.repeat = None
    lacks(bench.pack().verify(integrity_only=True), "has-linux-reference")
    stopped = Outcome(exit_status=0, completed=False, stop="data", stop_detail="gone")
    bench.replay(outcome=stopped)
    assert found(bench.verify(), "has-linux-reference", "fail")
    bench.replay()
    # Not even a whole replay on Linux is one by itself: it has to be marked.
    assert found(bench.verify(), "has-linux-reference", "fail")


# --- the acceptance list --------------------------------------------------------------


def ticks(report):
    return {one.id: one for one in report.findings if one.check == "V10"}


def test_all_eleven_points_are_answered_with_a_reason_where_not_ticked(bench):
    points = ticks(bench.pack().verify())
    assert len(points) == 11
    assert all(one.outcome == "pass" or one.reason for one in points.values())
    assert all(one.outcome != "fail" for one in points.values())


def test_mac_facts_do_not_apply_to_a_bundle_made_on_linux_only(bench):
    points = ticks(bench.pack().verify())
    for name in ("lists-versions", "lists-pressure", "lists-fallback"):
        assert points[name].outcome == "not-applicable"


def test_a_replay_on_a_mac_makes_the_mac_facts_apply(bench):
    bench.pack()
    record, _ = bench.replay_tree()
    devices = msgspec.structs.replace(
        record.devices, observed=("mps",), fallback="none-seen", reason="traced"
    )
    bench.replay(platform="darwin", devices=devices, phases=())
    points = ticks(bench.verify())
    assert points["lists-versions"].outcome == "not-checked"
    assert points["lists-versions"].where == "os.version"
    assert points["lists-pressure"].outcome == "not-checked"
    assert points["lists-same-script"].outcome == "pass"
    assert points["lists-fallback"].outcome == "pass"
    assert points["lists-memory"].outcome == "not-checked"
    facts = {
        **ENVIRONMENT,
        "os.version": Fact(value="15.3", source="platform"),
        "os.build": Fact(value="24D60", source="sw_vers"),
        "cpu.model": Fact(value="Apple M3", source="sysctl"),
        "machine.model": Fact(value="Mac15,3", source="sysctl"),
        "state.memory_pressure_level": Fact(value=1, source="sysctl"),
    }
    bench.replay(platform="darwin", environment=facts, devices=devices, phases=())
    points = ticks(bench.verify())
    assert points["lists-versions"].outcome == "pass"
    # A fact from the start tells nothing about the run.
    assert points["lists-pressure"].outcome == "not-checked"
    assert "not during the run" in points["lists-pressure"].reason
    memory = msgspec.structs.replace(record.memory, with_pressure=7)
    bench.replay(platform="darwin", environment=facts, memory=memory, devices=devices)
    points = ticks(bench.verify())
    assert points["lists-pressure"].outcome == "pass"
    assert "7 samples" in points["lists-pressure"].reason


def test_memory_of_an_accelerator_is_ticked_where_it_was_logged(bench):
    bench.pack()
    record, _ = bench.replay_tree()
    peak = Fact(value=1 << 30, source="allocator")
    bench.replay(
        devices=msgspec.structs.replace(record.devices, observed=("cuda",)),
        memory=msgspec.structs.replace(record.memory, peak_device_bytes=peak),
        phases=(),
    )
    assert ticks(bench.verify())["lists-memory"].outcome == "pass"


def test_the_input_of_a_complete_bundle_is_what_was_read(bench):
    bench.pack()
    assert bench.reference.build(bench.folder)[0].reads[0].size_bytes == len(DATA)


def test_a_replay_of_another_claim_is_no_linux_reference(bench):
    bench.reference = Run(changes={"platform": "darwin"})
    bench.claims = {"smoke": Run()}
    bench.pack().replay(claim="smoke", runs=3)
    assert found(bench.verify(), "has-linux-reference", "fail")


SHELL = Command(argv=("bash", "-c", "python train.py | cat"), seed=0)


@pytest.mark.parametrize(
    ("argv", "outcome"),
    [
        (("python", "train.py"), "pass"),
        (("python", "-u", "-X", "dev", "./train.py", "x.csv"), "pass"),
        (("python", "-c", "code", "train.py"), "fail"),
        (("python", "other.py", "train.py"), "fail"),
    ],
)
def test_the_scripts_of_a_shell_line_are_those_of_its_pythons(bench, argv, outcome):
    process = Process(pid=1, kind="main", argv=argv, ended=True, exit_status=0)
    changes = {"command": SHELL, "processes": (process,), "sources": ()}
    bench.reference = bench.repeat = bench.evidence = Run(changes=changes)
    assert found(bench.pack().verify(), "has-script", outcome)
