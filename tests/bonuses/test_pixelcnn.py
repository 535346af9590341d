"""The convolutional density: what it may see, its closed forms, and the bonus."""

import math

import numpy as np
import pytest
import torch

from coex.bonuses.pixelcnn import PixelCNN, gain_bonus


def test_a_pixel_is_foretold_from_those_before_it_alone() -> None:
    torch.manual_seed(0)
    model = PixelCNN()
    frame = torch.randint(0, 8, (1, 9, 9), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    with torch.no_grad():
        logits = model(frame)
        for place in (0, 13, 40, 80):
            changed = frame.clone()
            changed.view(-1)[place] = 7 - changed.view(-1)[place]
            moved = (model(changed) != logits).any(-1)[0]
            assert not moved[: place + 1].any()
            assert place == 80 or moved[place + 1]


def test_without_weights_every_level_is_as_likely() -> None:
    model = PixelCNN()
    torch.nn.init.zeros_(model.rest[-1].weight)
    torch.nn.init.zeros_(model.rest[-1].bias)
    frames = torch.randint(0, 8, (3, 42, 42), dtype=torch.uint8)
    assert model.log_density(frames).tolist() == pytest.approx([-1764 * math.log(8)] * 3)


def test_a_single_pixel_is_a_softmax_over_its_levels() -> None:
    torch.manual_seed(0)
    densities = PixelCNN().log_density(torch.arange(8, dtype=torch.uint8).view(8, 1, 1))
    assert densities.exp().sum().item() == pytest.approx(1, rel=1e-5)


def test_the_bonus_of_known_gains() -> None:
    found = gain_bonus(np.array([100.0, 50.0, -3.0, 1e9]), np.array([1e4, 1e6, 9.0, 1.0]), 0.1, 10.0)
    assert found.tolist() == pytest.approx([0.3243006600, 0.0707991586, 0.0, 10.0])


def test_each_picture_is_one_step_by_rmsprop(new_bonus, make_rollout) -> None:
    """The bonus is what a loop of PyTorch's own pays, picture by picture."""
    bonus, rollout = new_bonus("pixelcnn"), make_rollout(4)
    torch.manual_seed(0)
    model = PixelCNN()
    model.load_state_dict(bonus.model.state_dict())
    optimizer = torch.optim.RMSprop(model.parameters(), 1e-3, alpha=0.95, eps=1e-4, momentum=0.9)
    expected = []
    for n, picture in enumerate(rollout.next_view("grey42").flatten(0, 1) // 32, start=1):
        loss = -model.log_density(picture[None]).sum()
        optimizer.zero_grad()
        (loss / 1764).backward()
        optimizer.step()
        gain = (model.log_density(picture[None]).sum() + loss).item()
        expected.append(min(math.expm1(0.1 * n**-0.5 * max(gain, 0)) ** 0.5, 10.0))
    np.testing.assert_allclose(bonus.reward(rollout).bonus.flatten(), expected, rtol=1e-2, atol=1e-3)


def test_chunks_share_a_step_and_every_picture_counts(new_bonus, make_rollout) -> None:
    bonus = new_bonus("pixelcnn-chunks", chunk=4)
    found = bonus.reward(make_rollout()).bonus
    assert found.shape == (5, 3)
    assert bonus.state_dict()["steps"] == 15
    single = new_bonus("pixelcnn-chunks", chunk=1)
    exact = new_bonus("pixelcnn")
    assert torch.equal(single.reward(make_rollout()).bonus, exact.reward(make_rollout()).bonus)
