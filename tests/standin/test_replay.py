"""Replay bundles of a CPU on a device of type mps, and hear what is said about it."""

import json
import shutil

import pytest

from reprobundle.format.reader import open_bundle

# One script for all ways in which an operator can end up on the CPU. A run may have
# several of them, where what is found about one says nothing about the others.
TRAIN = """\
import _thread, json, os, sys, warnings
import torch

device, ways = sys.argv[1], sys.argv[2].split("+")
if "silenced" in ways:
    warnings.simplefilter("ignore")
torch.manual_seed(0)
model = torch.nn.Linear(4, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
table = torch.nn.Embedding(6, 4, max_norm=0.5).to(device)
losses = []
for step in range(4):
    x = torch.randn(8, 4).to(device)
    y = model(x)
    if "silenced" in ways:
        y = y + torch.heaviside(y.detach(), torch.zeros(1, device=device))
    if "composite" in ways:
        y = y * torch.linalg.lstsq(x, y.detach()).solution.abs().max()
    if "backward" in ways:
        image = y.reshape(1, 1, 4, 4)
        y = torch.nn.functional.interpolate(
            image, size=(2, 2), mode="bilinear", antialias=True
        )
    if "library" in ways:
        y = y + table(torch.arange(8, device=device) % 6).mean()
    if "crossing" in ways:
        y = y.cpu().to(device, non_blocking=True)
    if "index" in ways:
        rows = torch.arange(8, device=device) % 6
        if device == "mps":
            rows = rows + 1
        row = rows.clamp(max=6)
        plain = torch.ones(6, 4, device=device)
        y = y + torch.nn.functional.embedding(row, plain).mean()
        y = y + y.detach().gather(1, row[:, None] // 3).mean()
    if "detour" in ways:
        a, _ = torch.linalg.qr(torch.ones(513, 513, device=device))
        y = y + a[0, 0] * 0
    if "caught" in ways:
        try:
            kept = torch.heaviside(y.detach(), torch.zeros(1, device=device))
        except NotImplementedError:
            kept = torch.heaviside(y.detach().cpu(), torch.zeros(1)).to(device)
        y = y + kept
    if "float64" in ways:
        y = y.double().float()
    if "starved" in ways and device == "mps":
        try:
            y = y + torch.zeros(1 << 22, device=device)[0]
        except RuntimeError:
            pass
    if "memory" in ways and device == "mps":
        y = y + torch.zeros(1 << 22, device=device)[0]
    if "aside" in ways:
        values = y.detach()
        ended = _thread.allocate_lock()
        ended.acquire()
        def look():
            try:
                values.take(torch.zeros(1, dtype=torch.int64, device=device))
            except NotImplementedError:
                pass
            ended.release()
        _thread.start_new_thread(look, ())
        ended.acquire()
        try:
            values.double()
        except TypeError:
            pass
        child = os.fork()
        if not child:
            try:
                values.mode()
            except NotImplementedError:
                pass
            os._exit(0)
        os.waitpid(child, 0)
    loss = y.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
json.dump(losses, open("losses.json", "w"))
"""


# The smallest piece that the device's allocator hands out.
ONE_NUMBER_BYTES = 256


@pytest.fixture(scope="session")
def packed(standin, tmp_path_factory):
    """Return a function that packs one case on the CPU, once."""
    folder = tmp_path_factory.mktemp("packed")
    (folder / "project").mkdir()
    (folder / "project/train.py").write_text(TRAIN)

    def pack(case):
        bundle = folder / f"{case}.rpb.zip"
        if not bundle.exists():
            done = standin.call(
                *("pack", "--offline", "-o", bundle, "-q", "--passes", "measured"),
                *("--seed", "0", "--device", "cpu", "--"),
                *("python", "train.py", "{device}", case),
                cwd=folder / "project",
                plain=True,
            )
            assert done.status == 0, done.err
        return bundle

    return pack


@pytest.fixture(scope="session")
def replayed(standin, packed, tmp_path_factory):
    """Return a function that replays a case on the stand-in, once for each setting."""
    known = {}

    def replay(case, *options, **settings):
        key = (case, options, tuple(settings.items()))
        if key not in known:
            copy = tmp_path_factory.mktemp("replayed") / "case.rpb.zip"
            shutil.copy(packed(case), copy)
            done = standin.call(
                *("replay", copy, "--env", standin.python, "--yes", "-q", "--json"),
                *("--device", "mps", *options),
                **settings,
            )
            assert done.out, done.err
            known[key] = done, copy
        return known[key]

    return replay


def findings(done, name):
    """Return the outcomes and reasons of one kind of finding, measured run first."""
    return [
        (one["outcome"], one["reason"])
        for judged in done.report["judgements"]
        for one in judged["findings"]
        if one["id"] == name
    ]


def truths(done):
    """Return what the device itself says of each run, measured run first.

    Before any run a process of our own asks the device for one number, whether it works
    at all: it is none of them.
    """
    return [truth for truth in done.truth if truth["peak_bytes"] > ONE_NUMBER_BYTES]


def fell_back(done):
    """Return what the device itself says about fallback, in the measured run."""
    return truths(done)[0]["fell_back"]


def test_a_run_that_stayed_on_the_device_is_known_to_have_stayed(replayed):
    done, _ = replayed("plain")
    outcome, reason = findings(done, "cpu-fallback")[0]
    assert outcome == "pass"
    assert reason.startswith("three witnesses saw none in ")
    assert fell_back(done) == {}


def test_a_stand_in_never_verifies_as_mps(replayed, standin):
    done, copy = replayed("plain")
    assert {judged["device"] for judged in done.report["judgements"]} == {"mps-standin"}
    assert done.status == 12, done.report["reasons"]
    again = standin.call("verify", copy, "--allow", "standin-device")
    assert again.status == 12


def test_tracing_changes_no_result_on_the_device(replayed):
    done, _ = replayed("plain")
    results = [judged["outputs"] for judged in done.report["judgements"]]
    assert len(results) == 2
    assert results[0] == results[1]


def test_the_memory_log_agrees_with_the_allocator(replayed):
    done, copy = replayed("plain")
    peaks = {truth["peak_bytes"] for truth in truths(done)}
    with open_bundle(copy) as bundle:
        logged = [
            json.loads(bundle.read_unsealed(f"replays/{one}/memory.json"))
            for one in bundle.replay_ids
            if f"replays/{one}/memory.json" in bundle.replay_entries(one)
        ]
    (series,) = logged
    seen = [
        s["bytes"]["mps_allocated"]
        for s in series["samples"]
        if "mps_allocated" in s["bytes"]
    ]
    truth = min(one["current_bytes"] for one in truths(done))
    assert seen[-1] == truth
    assert max(seen) <= max(peaks)


def test_every_phase_of_the_device_was_synchronised(replayed):
    done, _ = replayed("plain")
    assert findings(done, "unsynchronised-timing")[0][0] == "pass"


MISSING = "silenced+composite+backward"
WITHOUT_LEAVE = "library+caught+aside+starved"
WITHOUT_FALLBACK = "crossing+index+detour"


def test_with_fallback_off_a_missing_operator_stops_the_replay(replayed):
    done, _ = replayed(MISSING)
    assert (done.status, done.report["verdict"]) == (11, "NOT RUN HERE")
    assert len(done.report["judgements"]) == 1
    assert "stopped: operator: " in done.report["reasons"][0]
    assert "aten::heaviside.out" in done.report["reasons"][0]
    assert "{project}/train.py:16" in done.report["reasons"][0]
    assert fell_back(done) == {}


@pytest.mark.parametrize(
    ("operator", "phase"),
    [
        ("heaviside", ""),
        ("_upsample_bilinear2d_aa_backward", "in backward"),
        ("linalg_lstsq", ""),
    ],
)
def test_with_diagnose_the_run_goes_on_and_is_a_mixed_one(replayed, operator, phase):
    done, _ = replayed(MISSING, "--fallback", "diagnose")
    for outcome, reason in findings(done, "cpu-fallback"):
        assert outcome == "warn"
        assert reason.startswith("a mixed run: ")
        assert f"{operator} 4 times" in reason
        assert "central: in every step" in reason
        assert phase in reason
    assert {o for o, _ in findings(done, "fallback-witnesses")} <= {
        "pass",
        "not-checked",
    }
    true = {name.split("::")[1].split(".")[0]: n for name, n in fell_back(done).items()}
    assert true[operator] == 4
    assert done.status != 0


def test_an_operator_that_always_goes_to_the_cpu_is_found_in_a_library_call(replayed):
    done, _ = replayed(WITHOUT_LEAVE, recommended_bytes=1 << 20)
    outcome, reason = findings(done, "cpu-fallback")[0]
    assert outcome == "warn"
    assert "embedding_renorm 4 times" in reason
    assert "whatever the fallback variable says" in reason
    assert fell_back(done) == {"aten::embedding_renorm_": 4}
    assert done.status == 12, done.report["reasons"]


def test_an_explicit_round_trip_is_no_fallback(replayed):
    done, _ = replayed(WITHOUT_FALLBACK, silent_indices=True)
    assert findings(done, "cpu-fallback")[0][0] == "pass"
    told = findings(done, "host-transfers")[0][1]
    assert "8 explicit copies to the CPU" in told
    assert "inputs that start on the CPU" in told
    assert "4 scalar reads" in told


def test_a_copy_that_does_not_wait_is_told(replayed):
    done, _ = replayed(WITHOUT_FALLBACK, silent_indices=True)
    outcome, reason = findings(done, "non-blocking-copy")[0]
    assert outcome == "warn"
    assert reason.startswith("4 copies from or to MPS were made with non_blocking=True")


def test_a_refusal_that_the_script_catches_makes_a_mixed_run(replayed):
    done, _ = replayed(WITHOUT_LEAVE, recommended_bytes=1 << 20)
    told = findings(done, "cpu-fallback")
    assert {outcome for outcome, _ in told} == {"warn"}
    assert "heaviside 4 times" in told[0][1]
    assert "central: in every step" in told[0][1]
    assert "refused by the device 4 times, and the script went on" in told[0][1]
    assert findings(done, "fallback-witnesses")[0][0] == "pass"
    assert not any("heaviside" in name for name in fell_back(done))
    assert done.status != 0


@pytest.mark.parametrize("operator", ["take", "_to_copy", "mode"])
def test_a_refusal_in_a_bare_thread_of_float64_or_in_a_fork_is_one(replayed, operator):
    done, _ = replayed(WITHOUT_LEAVE, recommended_bytes=1 << 20)
    (first, _) = findings(done, "cpu-fallback")
    assert f"{operator} 4 times" in first[1]


def test_float64_stops_with_the_reason_dtype(replayed):
    done, _ = replayed("float64")
    assert done.status == 11
    assert "stopped: dtype: Cannot convert a" in done.report["reasons"][0]
    assert "{project}/train.py:46" in done.report["reasons"][0]


def test_too_little_memory_stops_with_the_reason_memory(replayed):
    done, _ = replayed("memory", recommended_bytes=1 << 20)
    assert done.status == 11
    assert "stopped: memory: MPS backend out of memory" in done.report["reasons"][0]


def test_too_little_memory_that_the_script_catches_is_told(replayed):
    done, _ = replayed(WITHOUT_LEAVE, recommended_bytes=1 << 20)
    outcome, reason = findings(done, "out-of-memory-caught")[0]
    assert outcome == "warn"
    assert "no memory for aten.zeros.default" in reason
    assert done.status == 12, done.report["reasons"]


def test_an_index_out_of_range_that_raises_nothing_is_found(replayed):
    done, _ = replayed(WITHOUT_FALLBACK, silent_indices=True)
    found = [
        (one["outcome"], one["reason"].partition(" ")[0], one["expected"], one["got"])
        for one in done.report["judgements"][0]["findings"]
        if one["id"] == "index-out-of-range"
    ]
    assert ("warn", "aten.embedding.default", "0 to 5", "1 to 6") in found
    assert ("warn", "aten.gather.default", "0 to 1", "0 to 2") in found
    assert done.status != 0


def test_a_kernel_that_leaves_for_the_cpu_by_its_size_is_found(replayed):
    done, _ = replayed(WITHOUT_FALLBACK, silent_indices=True)
    outcome, reason = findings(done, "in-kernel-detour")[0]
    assert outcome == "warn"
    assert "linalg_qr ×4 at {project}/train.py:" in reason


def test_a_run_in_plain_forms_makes_no_detour(replayed):
    done, _ = replayed("plain")
    assert findings(done, "in-kernel-detour")[0][0] == "pass"


def test_forms_of_operators_name_what_is_known_to_be_wrong(replayed):
    # A linear layer's backward multiplies with a transposed left factor.
    done, _ = replayed("plain")
    outcome, reason = findings(done, "known-mps-fault")[0]
    assert (outcome, "193487" in reason) == ("not-checked", True)
