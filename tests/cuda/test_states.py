"""On a real GPU: states of a device's generator, and all ways to draw."""

import pytest

from reprobundle.recorder import device_draws, unfused
from reprobundle.recorder.mirrored import Mirrored

pytestmark = pytest.mark.cuda
torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)
checkpointing = pytest.importorskip("torch.utils.checkpoint")
nn = torch.nn


@pytest.fixture(scope="module", autouse=True)
def portable():
    """Draw with the CPU's generator from here on, as the recorder has it."""
    mirrored = Mirrored(torch)
    mirrored.install()
    library = torch.library.Library("aten", "IMPL")
    device_draws.DeviceDraws(torch, mirrored).install(library)
    unfused.install(torch, "")
    yield mirrored
    library._destroy()


def drop_in_attention(device):
    query = torch.ones(1, 2, 6, 8, device=device)
    return nn.functional.scaled_dot_product_attention(
        query, query, query, dropout_p=0.4
    )


def explicit(device):
    generator = torch.Generator(device=device).manual_seed(11)
    return torch.randn(9, device=device, generator=generator)


DRAWS = {
    "randn": lambda device: torch.randn(9, device=device),
    "rand_like": lambda device: torch.rand_like(torch.empty(9, device=device)),
    "half": lambda device: torch.rand(9, device=device, dtype=torch.float16),
    "randint": lambda device: torch.randint(100, (9,), device=device),
    "randperm": lambda device: torch.randperm(9, device=device),
    "multinomial": lambda device: torch.multinomial(torch.ones(9, device=device), 4),
    "normal_": lambda device: torch.empty(9, device=device).normal_(1.0, 2.0),
    "exponential_": lambda device: torch.empty(9, device=device).exponential_(),
    "bernoulli_": lambda device: torch.empty(9, device=device).bernoulli_(0.4),
    "functional dropout": lambda device: nn.functional.dropout(
        torch.ones(40, device=device), 0.4
    ),
    "module dropout": lambda device: nn.Dropout(0.4)(torch.ones(40, device=device)),
    "attention": drop_in_attention,
    "generator": explicit,
    "distribution": lambda device: torch.distributions.Gamma(
        torch.ones(5, device=device), torch.ones(5, device=device)
    ).sample(),
}


@pytest.mark.parametrize("name", DRAWS)
def test_every_way_to_draw_gives_the_cpus_numbers(name):
    torch.manual_seed(5)
    expected = DRAWS[name]("cpu")
    torch.manual_seed(5)
    got = DRAWS[name]("cuda").cpu()
    torch.testing.assert_close(got, expected)


def test_the_state_of_the_device_alone_brings_its_draws_back(portable):
    state = torch.cuda.get_rng_state()
    first = torch.rand(6, device="cuda")
    with torch.random.fork_rng(devices=[0]):
        torch.rand(6, device="cuda")
    second = torch.rand(6, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.rand(6, device="cuda"), first)
    assert torch.equal(torch.rand(6, device="cuda"), second)
    states = torch.cuda.get_rng_state_all()
    third = torch.rand(6, device="cuda")
    torch.cuda.set_rng_state_all(states)
    assert torch.equal(torch.rand(6, device="cuda"), third)
    assert portable.advanced() == []


def test_a_state_of_the_gpus_own_leaves_the_cpus_generator_alone():
    native = torch.cuda.default_generators[0].get_state()
    before = torch.get_rng_state()
    torch.cuda.set_rng_state(native)
    assert torch.equal(torch.get_rng_state(), before)


def test_checkpointed_dropout_draws_the_same_again():
    value = torch.ones(64, device="cuda", requires_grad=True)
    kept = checkpointing.checkpoint(
        lambda x: nn.functional.dropout(x, 0.5), value, use_reentrant=False
    )
    kept.sum().backward()
    assert torch.equal(value.grad, kept.detach())


@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated")
def test_compiled_code_is_refused():
    step = torch.compile(lambda x: x + torch.rand(1, device="cuda"))
    with pytest.raises(RuntimeError, match="TORCH_COMPILE_DISABLE=1"):
        step(torch.ones(1, device="cuda"))
