import shlex
import subprocess
from pathlib import Path

import click
import msgspec
import pytest

from reprobundle.cli.group import cli
from reprobundle.cli.options import DEVICES
from reprobundle.errors import BadCallError
from reprobundle.format.findings import (
    ArrayComparison,
    EnvironmentDifference,
    OutputComparison,
)
from reprobundle.format.judged import Segment
from reprobundle.format.record import Devices, Drawn, Fact, FileRead, Outcome
from reprobundle.run.asked import parse_asked
from reprobundle.verify.causes.case import Case
from reprobundle.verify.causes.likely import likely_causes, next_change
from reprobundle.verify.causes.rules import RULES
from reprobundle.verify.checks import finding
from tests.verify.builder import ENVIRONMENT, ERROR, FAR, NEAR, Run, outputs

DIFFERS = OutputComparison(
    name="out.npy", kind="arrays", format="npy", result="outside-tolerance"
)


@pytest.fixture
def case(bench):
    """A case in which one output differs and nothing else is known."""
    record, _ = bench.reference.build(bench.folder)
    return Case("a.rpb.zip", record, record, (DIFFERS,), (), ())


def fact(name, reference, replay, grade="numeric"):
    return EnvironmentDifference(
        name=name, reference=reference, replay=replay, grade=grade
    )


def ids(case):
    return [cause.id for cause in likely_causes(case)]


@pytest.mark.parametrize(
    ("name", "sides", "cause", "command"),
    [
        (
            "torch.cpu_capability",
            ("AVX512", "AVX2"),
            "cpu-capability",
            "reprobundle replay a.rpb.zip --set ATEN_CPU_CAPABILITY=avx512",
        ),
        ("torch.cpu_capability", ("NEON", "AVX2"), "cpu-capability", ""),
        (
            "torch.num_threads",
            ("2", "16"),
            "threads",
            "reprobundle replay a.rpb.zip --set OMP_NUM_THREADS=2",
        ),
        (
            "torch.version",
            ("2.13.0", "2.12.0"),
            "torch-version",
            "reprobundle replay a.rpb.zip --env fresh",
        ),
        (
            "numpy.version",
            ("2.0.0", "1.26.0"),
            "numpy-version",
            "reprobundle replay a.rpb.zip --env fresh",
        ),
        (
            "torch.cuda.matmul.allow_tf32",
            ("False", "True"),
            "tf32",
            "reprobundle replay a.rpb.zip --set allow_tf32=false",
        ),
        (
            "mps.graph_version",
            ("5.6.2", "6.4.2"),
            "mps-graph",
            "reprobundle replay a.rpb.zip --device cpu",
        ),
        (
            "env.PYTORCH_MPS_FAST_MATH",
            ("(unset)", "1"),
            "mps-fast-math",
            "reprobundle replay a.rpb.zip --set fast_math=false",
        ),
        (
            "env.OPENBLAS_CORETYPE",
            ("Haswell", "(unset)"),
            "blas",
            "reprobundle replay a.rpb.zip --set OPENBLAS_CORETYPE=Haswell",
        ),
        (
            "env.NPY_DISABLE_CPU_FEATURES",
            ("AVX512F", "(unset)"),
            "cpu-capability",
            "reprobundle replay a.rpb.zip --set NPY_DISABLE_CPU_FEATURES=AVX512F",
        ),
        (
            "env.VECLIB_MAXIMUM_THREADS",
            ("2", "(unset)"),
            "threads",
            "reprobundle replay a.rpb.zip --set VECLIB_MAXIMUM_THREADS=2",
        ),
        (
            "randomness.draws.torch.cpu",
            ("aa", "bb"),
            "generators",
            "reprobundle pack --rng portable -- python train.py",
        ),
    ],
)
def test_a_fact_that_changes_numbers_is_named_with_what_to_try(
    case, name, sides, cause, command
):
    found = likely_causes(case._replace(differences=(fact(name, *sides),)))
    assert [one.id for one in found] == [cause]
    assert found[0].command == command
    assert found[0].source
    generator = name.removeprefix("randomness.draws.")
    assert (sides[0] in found[0].evidence) or generator in found[0].evidence


def test_a_fact_that_changes_nothing_explains_nothing(case):
    other = fact("torch.num_threads", "2", "16", grade="other")
    assert ids(case._replace(differences=(other,))) == []


def test_where_nothing_differs_there_is_no_cause(case):
    equal = OutputComparison(
        name="o", kind="arrays", format="npy", result="bit-identical"
    )
    drift = (fact("torch.version", "1", "2"),)
    assert ids(case._replace(comparisons=(equal,), differences=drift)) == []


@pytest.mark.parametrize(
    ("name", "outcome", "cause"),
    [
        ("same-files", "fail", "changed-files"),
        ("same-inputs", "fail", "changed-input"),
        ("same-command", "fail", "changed-command"),
        ("same-seed", "fail", "changed-command"),
        ("reduced-input", "warn", "reduced-input"),
        ("masked-failure", "fail", "masked-failure"),
        ("cpu-fallback", "warn", "cpu-fallback"),
        ("seed-calls", "warn", "no-seed"),
    ],
)
def test_a_finding_explains_before_any_fact_of_the_machine(case, name, outcome, cause):
    one = finding(name, outcome, "it is so", where="here", expected="a", got="b")
    drift = (fact("torch.cpu_capability", "AVX512", "AVX2"),)
    found = likely_causes(case._replace(findings=(one,), differences=drift))
    assert [one.id for one in found] == [cause, "cpu-capability"]
    assert next_change(found).startswith(("reprobundle", "bash"))


def test_a_pipeline_is_to_be_run_by_a_shell_that_notices(case):
    argv = ("sh", "-c", "python run.py | cat")
    command = msgspec.structs.replace(case.reference.command, argv=argv)
    reference = msgspec.structs.replace(case.reference, command=command)
    one = finding("masked-failure", "fail", "it failed", where="run.py")
    (found,) = likely_causes(case._replace(findings=(one,), reference=reference))
    assert found.command == "bash -o pipefail -c 'python run.py | cat'"


def test_a_check_that_passed_or_was_not_made_explains_nothing(case):
    findings = (
        finding("same-files", "pass"),
        finding("cpu-fallback", "not-checked", "nobody looked"),
    )
    assert ids(case._replace(findings=findings)) == []


def part(**changes):
    base = {"name": "", "dtype": "float32", "elements": 9, "equal": False, "outside": 1}
    return ArrayComparison(**{**base, **changes})


def with_part(case, **changes):
    item = OutputComparison(
        name="out.npy",
        kind="arrays",
        format="npy",
        result="outside-tolerance",
        parts=(part(**changes),),
    )
    return case._replace(comparisons=(item,))


@pytest.mark.parametrize(
    ("dtype", "error", "named"),
    [
        ("float32", 3e-3, True),
        ("float32", 1e-6, False),
        ("float32", 0.3, False),
        ("float16", 3e-3, False),
    ],
)
def test_an_error_of_the_size_of_short_mantissas_is_told(case, dtype, error, named):
    found = ids(with_part(case, dtype=dtype, relative_l2=error))
    assert ("short-mantissa" in found) is named


def test_a_difference_that_grows_with_the_steps_is_told(case):
    grows = tuple(
        Segment(first=n, rows=1, max_rel=1e-7 * 4**n, max_abs=1.0) for n in range(8)
    )
    assert ids(with_part(case, drift=grows))[0] == "chaotic"
    stays = tuple(Segment(first=n, rows=1, max_rel=1e-4) for n in range(8))
    assert "chaotic" not in ids(with_part(case, drift=stays))


def test_another_kind_of_device_is_told_with_the_way_back(case):
    cuda = Devices(observed=("cuda",), fallback="none-seen", reason="profiler")
    replay = msgspec.structs.replace(case.replay, devices=cuda)
    found = likely_causes(case._replace(replay=replay))
    assert [one.id for one in found] == ["other-device"]
    assert found[0].command == "reprobundle replay a.rpb.zip --device cpu"


def test_only_texts_are_told_apart_from_numbers(case):
    log = OutputComparison(
        name="run.log", kind="log", format="text", result="outside-tolerance"
    )
    assert ids(case._replace(comparisons=(log,))) == ["text"]
    assert ids(case._replace(comparisons=(log, DIFFERS))) == []


def known(value):
    return Fact(value=value, unknown="" if value is not None else "not", source="here")


HIDDEN = "env -u CUDA_VISIBLE_DEVICES reprobundle replay a.rpb.zip"
MAPPED = "reprobundle replay a.rpb.zip --map-device cuda=cpu"


@pytest.mark.parametrize(
    ("built", "variable", "requested", "words", "command"),
    [
        ("12.8", "", "as-is", "No CUDA GPUs are available", HIDDEN),
        ("12.8", "-1", "cuda", "No CUDA GPUs are available", HIDDEN),
        # A build without CUDA gets none by a variable.
        (None, "", "as-is", "Torch not compiled with CUDA enabled", MAPPED),
        ("12.8", None, "as-is", "No CUDA GPUs are available", MAPPED),
        ("12.8", "", "as-is", "Found no NVIDIA driver on your system", MAPPED),
        # Here the replay itself hides them.
        ("12.8", "", "cpu", "No CUDA GPUs are available", MAPPED),
    ],
)
def test_hidden_gpus_are_shown_again_and_missing_ones_mapped(
    case, built, variable, requested, words, command
):
    facts = {
        **ENVIRONMENT,
        "torch.cuda.built": known(built),
        "env.CUDA_VISIBLE_DEVICES": known(variable),
    }
    replay = msgspec.structs.replace(
        case.replay,
        outcome=Outcome(
            exit_status=1, completed=False, stop="cuda_required", stop_detail=words
        ),
        devices=Devices(requested=requested),
        environment=facts,
    )
    (found,) = [
        one
        for one in likely_causes(case._replace(replay=replay))
        if one.id == "needs-cuda"
    ]
    assert found.command == command
    assert ("hides every GPU" in found.evidence) == (command == HIDDEN)


# --- every rule fires, and what it suggests can be pasted


def because(name, outcome="warn"):
    one = finding(name, outcome, "it is so", where="here", expected="a", got="b")
    return lambda case: case._replace(findings=(one,))


def because_of(name, reference="a", replay="b"):
    return lambda case: case._replace(differences=(fact(name, reference, replay),))


def because_stopped(reason):
    outcome = Outcome(exit_status=1, completed=False, stop=reason, stop_detail="so")
    return lambda case: case._replace(
        replay=msgspec.structs.replace(case.replay, outcome=outcome)
    )


def because_it_lacks_a_package(case):
    error = msgspec.structs.replace(ERROR, type="ModuleNotFoundError")
    outcome = Outcome(exit_status=1, error=error)
    failed = finding("exit-status", "fail", "it failed")
    replay = msgspec.structs.replace(case.replay, outcome=outcome)
    return case._replace(replay=replay, findings=(failed,))


def because_asked(case):
    facts = {**ENVIRONMENT, "asked.threads": Fact(value="1", source="replay")}
    return case._replace(replay=msgspec.structs.replace(case.replay, environment=facts))


def because_of_the_device(case):
    cuda = Devices(observed=("cuda",), fallback="none-seen", reason="profiler")
    return case._replace(replay=msgspec.structs.replace(case.replay, devices=cuda))


def because_it_grows(case):
    rows = [
        Segment(first=n, rows=1, max_rel=1e-7 * 4**n, max_abs=1.0) for n in range(8)
    ]
    return with_part(case, drift=tuple(rows))


def because_of_text(case):
    log = OutputComparison(
        name="run.log", kind="log", format="text", result="outside-tolerance"
    )
    return case._replace(comparisons=(log,))


FIRES = {
    "missing-operator": because_stopped("operator"),
    "no-memory": because_stopped("memory"),
    "no-float64": because_stopped("dtype"),
    "needs-cuda": because_stopped("cuda_required"),
    "missing-package": because_it_lacks_a_package,
    "asked-otherwise": because_asked,
    "changed-files": because("same-files", "fail"),
    "changed-input": because("same-inputs", "fail"),
    "changed-command": because("same-seed", "fail"),
    "reduced-input": because("reduced-input"),
    "masked-failure": because("masked-failure", "fail"),
    "cpu-fallback": because("cpu-fallback"),
    "mps-fault": because("index-out-of-range"),
    "draw-mode": because("same-draws"),
    "no-seed": because("seed-calls"),
    "other-start": because("same-start"),
    "other-steps": because("same-steps"),
    "tf32": because_of("torch.matmul_precision", "highest", "medium"),
    "autocast": because_of("torch.default_dtype", "float32", "bfloat16"),
    "kernel-choice": because_of("torch.cudnn.benchmark", "False", "True"),
    "compiler": because_of("env.TORCH_COMPILE_DISABLE", "1", "(unset)"),
    "attention": because_of("torch.sdp.flash", "True", "False"),
    "hash-seed": because_of("env.PYTHONHASHSEED", "0", "7"),
    "torch-version": because_of("torch.version"),
    "numpy-version": because_of("numpy.version"),
    "python-version": because_of("python.version", "3.11.7", "3.13.1"),
    "package-version": because_of("package.scipy", "1.10.0", "1.13.1"),
    "c-library": because_of("os.libc", "glibc 2.36", "glibc 2.31"),
    "mps-fast-math": because_of("env.PYTORCH_MPS_FAST_MATH", "1", "0"),
    "mps-graph": because_of("mps.graph_version"),
    "gpu": because_of("torch.cuda.capabilities"),
    "cpu-capability": because_of("torch.cpu_capability", "AVX2", "AVX512"),
    "threads": because_of("torch.num_threads", "2", "16"),
    "blas": because_of("torch.blas"),
    "denormals": because_of("torch.flush_denormal", "False", "True"),
    "generators": because_of("randomness.draws.torch.cpu"),
    "other-device": because_of_the_device,
    "short-mantissa": lambda case: with_part(case, relative_l2=3e-3),
    "chaotic": because_it_grows,
    "text": because_of_text,
    "not-repeatable": lambda case: with_part(case),
}
# What no setting of a replay can bring back is named without a command.
WITHOUT_A_COMMAND = {
    *("attention", "autocast", "blas", "c-library", "denormals", "text")
}


@pytest.fixture
def hostile(case):
    """The case with names and arguments that a shell would take apart."""
    argv = ("python", "a b.py", "$(reboot)", "--lr=1e-3;", "it's")
    command = msgspec.structs.replace(case.reference.command, argv=argv)
    reference = msgspec.structs.replace(case.reference, command=command)
    return case._replace(bundle=shlex.quote("my run (1).rpb.zip"), reference=reference)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_fires_and_its_command_can_be_pasted(hostile, rule):
    found = likely_causes(FIRES[rule.id](hostile))
    (cause,) = (one for one in found if one.id == rule.id)
    assert cause.evidence
    assert bool(cause.command) is (rule.id not in WITHOUT_A_COMMAND)
    if cause.command:
        accept(cause.command)


def accept(line):
    """Parse a command line as a shell and then the program itself would."""
    words = shlex.split(line)
    assert "COMMAND" not in words
    assert "BUNDLE" not in words
    if words[0] == "bash":
        assert words[1:4] == ["-o", "pipefail", "-c"]
        subprocess.run(["bash", "-n", "-c", words[4]], check=True)
        return
    assert words[0] == "reprobundle"
    context = click.Context(cli, info_name="reprobundle")
    command: click.Command | None = cli
    rest = words[1:]
    while isinstance(command, click.Group):
        _, command, rest = command.resolve_command(context, rest)
    assert command is not None
    command.make_context(words[1], rest)
    if "--set" in words:
        parse_asked([words[words.index("--set") + 1]])
    if "--device" in words:
        assert words[words.index("--device") + 1] in DEVICES
    if "pack" in words:
        argv = words[words.index("--") + 1 :]
        assert argv == ["python", "a b.py", "$(reboot)", "--lr=1e-3;", "it's"]
    else:
        assert "my run (1).rpb.zip" in words


@pytest.mark.parametrize(
    "line",
    [
        "reprobundle replay a.rpb.zip --sett threads=1",
        "reprobundle replai a.rpb.zip",
        "reprobundle replay a.rpb.zip --fallback maybe",
        "reprobundle policy suggests a.rpb.zip",
    ],
)
def test_a_command_that_does_not_exist_would_be_noticed(line):
    with pytest.raises(click.ClickException):
        accept(line)


def test_a_setting_that_does_not_exist_would_be_noticed():
    with pytest.raises(BadCallError):
        accept("reprobundle replay 'my run (1).rpb.zip' --set THREADS=1")


def test_a_replay_on_mps_is_repeated_where_nothing_explains_it(case):
    mps = Devices(observed=("mps",), fallback="none-seen", reason="profiler")
    sides = (case.reference, case.replay)
    changes = {"devices": mps, "platform": "darwin"}
    reference, replay = (msgspec.structs.replace(one, **changes) for one in sides)
    moved = with_part(case._replace(reference=reference, replay=replay))
    (cause,) = likely_causes(moved)
    assert cause.command == "reprobundle replay a.rpb.zip --repeat 3"


def test_a_switch_of_torch_is_not_proposed_where_torch_was_not_loaded(case):
    bare = {name: ENVIRONMENT[name] for name in ("python.version", "machine.model")}
    replay = msgspec.structs.replace(case.replay, environment=bare)
    (cause,) = likely_causes(with_part(case._replace(replay=replay)))
    assert (cause.id, cause.command) == (
        "not-repeatable",
        "reprobundle replay a.rpb.zip --repeat 3",
    )


def test_kept_draws_are_taken_where_the_reference_has_them(case):
    drawn = Drawn(mode="recorded")
    randomness = msgspec.structs.replace(case.reference.randomness, drawn=drawn)
    reference = msgspec.structs.replace(case.reference, randomness=randomness)
    began = because("same-start")(case._replace(reference=reference))
    assert likely_causes(began)[0].command == (
        "reprobundle replay a.rpb.zip --rng recorded"
    )


def test_every_rule_has_a_source_and_a_name_of_its_own():
    assert all(rule.source and rule.text.endswith(".") for rule in RULES)
    assert len({rule.id for rule in RULES}) == len(RULES)


def test_every_page_that_a_rule_cites_is_there():
    root = Path(__file__).parents[2]
    cited = {
        part.split(" (")[0].split(",")[0]
        for rule in RULES
        for part in rule.source.split("; ")
        if part.startswith(("docs/", "spec.md"))
    }
    assert cited
    assert all((root / page).is_file() for page in cited)


def test_the_judgement_carries_the_cause_and_the_pass(bench):
    threads = {**ENVIRONMENT, "torch.num_threads": Fact(value=16, source="torch")}
    bench.pack().replay(Run(outputs=outputs(logits=FAR)), environment=threads)
    judgement = bench.verify().judgements[0]
    assert (judgement.pass_name, judgement.claim) == ("measured", "main")
    assert judgement.causes[0].id == "threads"


def test_causes_change_no_verdict(bench):
    threads = {**ENVIRONMENT, "torch.num_threads": Fact(value=16, source="torch")}
    bench.pack().replay(Run(outputs=outputs(logits=NEAR)), environment=threads)
    report = bench.verify()
    assert report.judgements[0].causes
    assert report.verdict == "REPRODUCED WITH WARNINGS"


def test_a_changed_input_comes_first(bench):
    reads = (
        FileRead(
            path="project:data.csv",
            member="inputs/data.csv",
            size_bytes=3,
            blake3="cd" * 32,
        ),
    )
    bench.pack().replay(Run(outputs=outputs(logits=FAR)), reads=reads)
    causes = bench.verify().judgements[0].causes
    assert causes[0].id == "changed-input"
    assert causes[0].command == "reprobundle replay digits.rpb.zip"


@pytest.mark.parametrize("side", ["not recorded", "unknown: numpy was not loaded"])
def test_draws_that_one_side_did_not_record_are_no_cause(case, side):
    differences = (fact("randomness.draws.numpy", side, "aa"),)
    assert "generators" not in ids(case._replace(differences=differences))


def test_bytes_that_differ_are_not_called_texts(case):
    binary = msgspec.structs.replace(DIFFERS, kind="bytes", name="model.bin")
    assert "text" not in ids(case._replace(comparisons=(binary,)))
