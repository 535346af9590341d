"""The guard around a gradient step."""

import pytest
import torch
from torch import nn

from coex.core.optim import NonFiniteError, guarded_step


def test_the_gradients_norm_is_clipped() -> None:
    parameter = nn.Parameter(torch.zeros(2))
    norm = guarded_step(
        torch.optim.SGD([parameter], lr=1.0), (parameter * torch.tensor([3.0, 4.0])).sum(), [parameter], 0.5
    )
    assert norm == pytest.approx(5.0)
    torch.testing.assert_close(parameter.detach(), torch.tensor([-0.3, -0.4]), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_a_step_that_is_not_finite_touches_nothing(poison: float) -> None:
    parameter = nn.Parameter(torch.ones(2))
    with pytest.raises(NonFiniteError):
        guarded_step(torch.optim.SGD([parameter], lr=1.0), (parameter * poison).sum(), [parameter], 0.5)
    assert parameter.tolist() == [1.0, 1.0]


def test_losses_that_come_in_parts_make_one_step() -> None:
    parameter = nn.Parameter(torch.zeros(2))
    parts = ((parameter * torch.tensor(weights)).sum() for weights in ([3.0, 0.0], [0.0, 4.0]))
    assert guarded_step(torch.optim.SGD([parameter], lr=1.0), parts, [parameter], 10.0) == pytest.approx(5.0)
    assert parameter.tolist() == [-3.0, -4.0]
