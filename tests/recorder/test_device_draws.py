"""The kernels that draw for a device, and what is taken apart for them."""

from typing import Any

import pytest

from reprobundle.recorder import device_draws, unfused
from reprobundle.recorder.mirrored import Mirrored

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

# Random kernels without a counterpart on the CPU: `unfused` keeps them from being
# called, and a generator that moved all the same is a finding.
FUSED = {
    "_fused_sdp_choice",
    "_scaled_dot_product_flash_attention_for_cpu",
}
CALLS = {
    "normal_": (torch.empty(20, 3), 1.0, 2.0),
    "uniform_": (torch.empty(20).expand(1, 20), 1.0, 2.0),
    "random_": (torch.empty(9, dtype=torch.int64),),
    "random_.from": (torch.empty(9, dtype=torch.int64), 3, 8),
    "random_.to": (torch.empty(9, dtype=torch.int32), 8),
    "bernoulli_.float": (torch.empty(5, 7).t(), 0.3),
    "bernoulli_.Tensor": (torch.empty(9), torch.full((9,), 0.3)),
    "exponential_": (torch.empty(9),),
    "geometric_": (torch.empty(9), 0.3),
    "cauchy_": (torch.empty(9),),
    "log_normal_": (torch.empty(9),),
    "normal.Tensor_Tensor": (torch.ones(9), torch.ones(9)),
    "normal.Tensor_float": (torch.ones(9), 2.0),
    "normal.float_Tensor": (1.0, torch.ones(9)),
    "multinomial": (torch.ones(3, 9), 2),
    "poisson": (torch.full((9,), 4.0),),
    "binomial": (torch.full((9,), 4.0), torch.full((9,), 0.4)),
    "_standard_gamma": (torch.ones(9),),
    "_sample_dirichlet": (torch.ones(2, 9),),
    "rrelu_with_noise": (torch.arange(-4.0, 5), torch.empty(9), 0.1, 0.3, True),
}


class Registered(dict[str, Any]):
    """Takes the place of a library: keeps the kernels for one device."""

    draws: device_draws.DeviceDraws

    def impl(self, name, kernel, key):
        if key == "MPS":
            self[name] = kernel


@pytest.fixture(scope="module")
def kernels():
    found = Registered()
    draws = device_draws.DeviceDraws(torch, Mirrored(torch))
    draws.install(found)
    found.draws = draws
    return found


def copies(arguments):
    return [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]


@pytest.mark.parametrize("name", CALLS)
def test_a_kernel_draws_what_the_cpu_draws(kernels, name):
    here, there = copies(CALLS[name]), copies(CALLS[name])
    before = kernels.draws.moved
    torch.manual_seed(5)
    expected = device_draws.overload(torch, name)(*here)
    torch.manual_seed(5)
    got = kernels[name](*there)
    assert torch.equal(got, expected)
    assert kernels.draws.moved == before + 1
    written = name.split(".")[0].endswith("_")
    assert (got is there[0]) == written


def test_results_are_written_to_an_out_tensor_of_any_size(kernels):
    torch.manual_seed(5)
    expected = torch.randperm(9)
    torch.manual_seed(5)
    target = torch.empty(0, dtype=torch.int64)
    assert kernels["randperm.generator_out"](9, None, out=target) is target
    assert torch.equal(target, expected)


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_dropout_drops_what_the_cpu_drops(kernels, share):
    value = torch.randn(6, 8).t()
    torch.manual_seed(5)
    expected = torch.nn.functional.dropout(value, share)
    torch.manual_seed(5)
    got, mask = kernels["native_dropout"](value, share, True)
    assert torch.equal(got, expected)
    assert torch.equal(mask, expected != 0)
    torch.manual_seed(5)
    if share < 1:
        older, _ = kernels["_fused_dropout"](value, 1 - share)
        assert torch.equal(older, expected)
    untouched, kept = kernels["native_dropout"](value, share, False)
    assert torch.equal(untouched, value)
    assert kept.all()


def test_every_random_operator_of_this_torch_is_reached(kernels):
    missing = set()
    for full in torch._C._dispatch_get_all_op_names():
        name = full.removeprefix("aten::")
        if not full.startswith("aten::"):
            continue
        operator = device_draws.overload(torch, name)
        random = operator and torch.Tag.nondeterministic_seeded in operator.tags
        if random and torch._C._dispatch_has_kernel_for_dispatch_key(full, "CPU"):
            missing |= {name} - set(kernels)
    assert missing == FUSED


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize(
    "options", [{}, {"bidirectional": True}, {"batch_first": True}, {"bias": False}]
)
@pytest.mark.parametrize("packed", [False, True])
def test_layers_called_one_by_one_are_the_whole(monkeypatch, kind, options, packed):
    torch.manual_seed(1)
    module = getattr(torch.nn, kind)(4, 6, 3, dropout=0.4, **options)
    value = torch.randn(3, 3, 4)
    if packed:
        batch_first = options.get("batch_first", False)
        value = torch.nn.utils.rnn.pack_padded_sequence(
            value, torch.tensor([3, 2, 2]), batch_first=batch_first
        )
    name = {"LSTM": "lstm", "GRU": "gru", "RNN": "rnn_tanh"}[kind]
    original = getattr(torch._C._VariableFunctions, name)

    def layered(*arguments):
        return unfused._dropping(torch, original, arguments, 3 if packed else 2)

    def flat(result):
        out, ends = result
        return [out.data, *(ends if isinstance(ends, tuple) else [ends])]

    torch.manual_seed(5)
    expected = flat(module(value))
    monkeypatch.setattr(torch._VF, name, layered)
    torch.manual_seed(5)
    got = flat(module(value))
    for left, right in zip(got, expected, strict=True):
        torch.testing.assert_close(left, right)


def test_attention_that_drops_leaves_the_fused_kernels():
    backends = torch.backends.cuda
    seen = []

    def original(*arguments, **named):
        seen.append((backends.flash_sdp_enabled(), backends.math_sdp_enabled()))

    attention = unfused._unfused_attention(torch)(original)
    before = backends.flash_sdp_enabled()
    device = torch.empty(1, device="meta")
    attention(device, device, device, dropout_p=0.1)
    attention(device, device, device)
    attention(torch.empty(1), device, device, dropout_p=0.1)
    assert seen == [(False, True), (before, True), (before, True)]
    assert backends.flash_sdp_enabled() == before


def test_a_cpu_generator_is_refused_for_a_device_as_torch_does():
    mirrored = Mirrored(torch)
    device = torch.device("mps")
    with pytest.raises(RuntimeError, match="Expected a 'mps' device type"):
        mirrored.of(torch.Generator(), device)
    assert mirrored.of(None, device) is None
    assert mirrored.advanced() == []
