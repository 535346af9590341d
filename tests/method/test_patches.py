import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from coex.core import native
from coex.envs import ROMS, VectorEnv
from coex.envs.game_config import GameConfig
from coex.method.adm import AttentiveDynamicsModel
from coex.method.patches import SIZE, distinct_patches


@pytest.fixture(scope="module", params=["MontezumaRevenge", "Seaquest"])
def frames(request: pytest.FixtureRequest) -> Tensor:
    """(24, 160, 160, 3) of random play."""
    game = request.param
    assert game in ROMS
    generator = np.random.default_rng(0)
    with VectorEnv(
        game, GameConfig(), num_envs=4, num_workers=1, views={"rgb160": (160, 160, 3)}, seed=np.random.SeedSequence(0)
    ) as env:
        env.reset()
        pictures = []
        for step in range(60):
            env.step(generator.integers(env.num_actions, size=4))
            if step % 10 == 9:
                pictures.append(torch.from_numpy(env.views["rgb160"].copy()))
    return torch.cat(pictures)


def windows(frames: Tensor) -> Tensor:
    """(B, 19, 19, 16, 16, 3)"""
    return frames.unfold(1, 16, 8).unfold(2, 16, 8).permute(0, 1, 2, 4, 5, 3)


def patches_in(strips: Tensor) -> Tensor:
    """(U, 16, 16, 3)"""
    return strips.unflatten(2, (-1, SIZE)).transpose(1, 2).flatten(0, 1)


def test_every_patch_is_there_once(frames: Tensor) -> None:
    patches = distinct_patches(frames)
    assert patches is not None
    assert torch.equal(patches_in(patches.strips)[patches.shown.long()], windows(frames))
    assert patches.shown.max() + 1 == len(np.unique(windows(frames).reshape(-1, 16 * 16 * 3).numpy(), axis=0))


def test_they_are_numbered_as_they_appear() -> None:
    frames = torch.zeros(2, 160, 160, 3, dtype=torch.uint8)
    frames[0, 8:16, 16:24] = 1  # block (1, 2): in four patches, at each of their corners
    patches = distinct_patches(frames)
    assert patches is not None
    assert patches.shown[0, :3, :4].tolist() == [[0, 1, 2, 0], [0, 3, 4, 0], [0, 0, 0, 0]]
    assert not patches.shown[1].any()
    assert patches.strips.shape == (1, 16, 32 * 16, 3)


def test_a_single_byte_makes_a_difference() -> None:
    generator = np.random.default_rng(0)
    frames = torch.zeros(1, 160, 160, 3, dtype=torch.uint8)
    for _ in range(200):
        changed = frames.clone()
        y, x, channel = generator.integers(160), generator.integers(160), generator.integers(3)
        changed[0, y, x, channel] = int(generator.integers(1, 256))
        patches = distinct_patches(changed)
        assert patches is not None
        assert torch.equal(patches_in(patches.strips)[patches.shown.long()], windows(changed))


def test_noise_is_left_whole() -> None:
    assert distinct_patches(torch.randint(0, 256, (2, 160, 160, 3), dtype=torch.uint8)) is None
    assert distinct_patches(torch.zeros(0, 160, 160, 3, dtype=torch.uint8)) is None


def gradients(model: AttentiveDynamicsModel, features: Tensor) -> list[Tensor]:
    """Of a loss that treats every feature differently."""
    weights = torch.arange(features.numel(), dtype=torch.float32).sin().view_as(features)
    model.zero_grad()
    (features * weights).sum().backward()
    return [copy.deepcopy(parameter.grad) for parameter in model.encoder.parameters()]  # type: ignore[misc]


def test_the_encoder_sees_what_it_would_in_whole_frames(frames: Tensor) -> None:
    torch.manual_seed(0)
    model = AttentiveDynamicsModel(18)
    layers: nn.Sequential = copy.deepcopy(model.encoder)
    standardised = (frames.permute(0, 3, 1, 2).float() - model.config.pixel_mean) / model.config.pixel_std
    whole = layers(standardised).permute(0, 2, 3, 1).flatten(1, 2)  # (B, 81, 16)
    assert distinct_patches(frames) is not None  # so that it is patches that are compared here
    features = model.encode(frames)
    torch.testing.assert_close(features, whole, rtol=1e-4, atol=1e-4)
    received = gradients(model, features)
    model.encoder = layers
    for ours, expected in zip(received, gradients(model, whole), strict=True):
        assert (ours - expected).abs().max() < 1e-3 * expected.abs().max()


def test_without_compiled_code_the_features_are_the_same(frames: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    model = AttentiveDynamicsModel(18)
    with torch.no_grad():
        fast = model.encode(frames)
        monkeypatch.setattr(native, "load", lambda: None)
        torch.testing.assert_close(model.encode(frames), fast)
