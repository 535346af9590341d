"""The optimiser against Stable-Baselines3's."""

import pytest
import torch
from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike
from torch import nn

from coex.learners.descent import linear_decay
from coex.learners.rmsprop import RMSPropTF


def train(optimizer_class: type, network: nn.Module, **options: float) -> list[torch.Tensor]:
    optimizer = optimizer_class(network.parameters(), lr=7e-4, alpha=0.99, eps=1e-5)
    generator = torch.Generator().manual_seed(0)
    for step in range(50):
        optimizer.param_groups[0]["lr"] = linear_decay(7e-4, step, 100)
        loss = network(torch.randn((8, 5), generator=generator)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [parameter.detach().clone() for parameter in network.parameters()]


def test_it_takes_the_steps_of_tensorflows_rmsprop() -> None:
    networks = []
    for _ in range(2):
        torch.manual_seed(0)
        networks.append(nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3)))
    ours, theirs = train(RMSPropTF, networks[0]), train(RMSpropTFLike, networks[1])
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("grad_format", [torch.contiguous_format, torch.channels_last])
def test_the_order_of_weights_in_memory_does_not_matter(grad_format: torch.memory_format) -> None:
    torch.manual_seed(0)
    weight, grad = torch.randn((2, 32, 5, 8, 8))
    plain, ordered = nn.Parameter(weight.clone()), nn.Parameter(weight.clone(memory_format=torch.channels_last))
    for parameter in (plain, ordered):
        parameter.grad = grad.clone(memory_format=grad_format)
        RMSPropTF([parameter], lr=0.1).step()
    assert torch.equal(plain, ordered)
    torch.testing.assert_close(plain.detach(), weight - 0.1 * grad / (0.99 + 0.01 * grad**2 + 1e-5).sqrt())


def test_its_first_step_by_hand() -> None:
    parameter = nn.Parameter(torch.tensor([1.0]))
    optimizer = RMSPropTF([parameter], lr=0.1, alpha=0.9, eps=0.25)
    parameter.grad = torch.tensor([2.0])
    optimizer.step()  # mean square 0.9·1 + 0.1·4 = 1.3; 1 − 0.1·2/√(1.3 + 0.25)
    assert parameter.item() == pytest.approx(1 - 0.2 / 1.55**0.5)


def test_the_decay_is_linear_and_stops_at_zero() -> None:
    assert [linear_decay(8.0, step, 4) for step in (0, 1, 4, 5)] == [8.0, 6.0, 0.0, 0.0]
