"""The network's shapes and first policy, and how it acts."""

import math

import pytest
import torch

from coex.learners.networks import ActorCritic, SamplingPolicy


def observations(count: int) -> torch.Tensor:
    return torch.randint(0, 256, (count, 84, 84, 4), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def test_it_is_the_papers_network() -> None:
    network = ActorCritic(18)
    logits, values = network(observations(3))
    assert logits.shape == (3, 18)
    assert values.shape == (3, 1)
    assert ActorCritic(18, num_values=2)(observations(3))[1].shape == (3, 2)
    sizes = {name: tuple(parameter.shape) for name, parameter in network.named_parameters() if "weight" in name}
    assert list(sizes.values()) == [
        (32, 4, 8, 8),
        (64, 32, 4, 4),
        (64, 64, 3, 3),
        (512, 3136),
        (18, 512),
        (1, 512),
    ]


def test_bfloat16_says_nearly_the_same() -> None:
    torch.manual_seed(0)
    exact = ActorCritic(18, centred=True)
    short = ActorCritic(18, centred=True, precision="bfloat16")
    short.load_state_dict(exact.state_dict())
    with torch.no_grad():
        exact.policy.weight.mul_(100)
        short.policy.weight.mul_(100)
    for one, other in zip(exact(observations(8)), short(observations(8)), strict=True):
        assert one.dtype == other.dtype == torch.float32
        assert not torch.equal(one, other)
        torch.testing.assert_close(one, other, rtol=0.05, atol=0.05 * one.abs().max().item())


def test_the_first_policy_is_nearly_uniform() -> None:
    torch.manual_seed(0)
    logits, _ = ActorCritic(18)(observations(4))
    entropy = torch.distributions.Categorical(logits=logits).entropy()
    assert entropy.min() > math.log(18) - 0.01


def test_it_agrees_with_stable_baselines3s_network_given_its_weights() -> None:
    import gymnasium
    import numpy as np
    from stable_baselines3.common.torch_layers import NatureCNN

    network = ActorCritic(6)
    peer = NatureCNN(gymnasium.spaces.Box(0, 255, (4, 84, 84), np.uint8), features_dim=512)
    ours, theirs = network.trunk.state_dict(), peer.state_dict()
    peer.load_state_dict(dict(zip(theirs, ours.values(), strict=True)))
    frames = observations(5)
    features = peer(frames.permute(0, 3, 1, 2).float() / 255)
    torch.testing.assert_close(network.policy(features), network(frames)[0], rtol=1e-4, atol=1e-5)


def test_actions_are_drawn_from_the_policy() -> None:
    torch.manual_seed(0)
    network = ActorCritic(4)
    with torch.no_grad():
        network.policy.bias.copy_(torch.tensor([0.0, 1.0, 2.0, -1.0]))
    policy = SamplingPolicy(network)
    frames, draws = observations(1).expand(400, -1, -1, -1), (torch.arange(400) + 0.5) / 400
    expected = network(frames[:1])[0].softmax(-1)[0]
    actions, log_probs, values = policy.act(frames, draws)
    shares = torch.bincount(actions, minlength=4) / 400
    torch.testing.assert_close(shares, expected, atol=0.003, rtol=0)
    torch.testing.assert_close(log_probs.exp(), expected[actions], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(values[:2], policy.value(frames[:2]), rtol=1e-4, atol=1e-5)


def test_every_draw_is_an_action() -> None:
    draws = torch.tensor([0.0, 1 - 2**-24])
    actions, _, _ = SamplingPolicy(ActorCritic(5)).act(observations(2), draws)
    assert actions.tolist() == [0, 4]


@pytest.mark.parametrize("count", [1, 16])
def test_pixels_are_not_changed(count: int) -> None:
    frames = observations(count)
    before = frames.clone()
    ActorCritic(4)(frames)
    assert torch.equal(frames, before)


def test_a_centred_network_sees_what_differs_from_the_mean_of_all_frames() -> None:
    torch.manual_seed(0)
    network, plain = ActorCritic(6, centred=True), ActorCritic(6)
    plain.load_state_dict({name: tensor for name, tensor in network.state_dict().items() if name in plain.state_dict()})
    stacks = observations(12).view(3, 4, 84, 84, 4)
    for part in (stacks[:1], stacks[1:]):  # of different sizes
        network.update_mean_frame(part)
    mean = stacks[..., -1].double().mean(dim=(0, 1))
    torch.testing.assert_close(network.mean.double(), mean, rtol=0, atol=1e-3)
    # A plain network sees the same in pixels that are differences already.
    differences = (stacks[0].float() - network.mean[..., None]) * 3.0
    torch.testing.assert_close(network(stacks[0])[0], plain(differences)[0], rtol=1e-4, atol=1e-6)


def test_a_networks_state_holds_its_mean_picture() -> None:
    network, other = ActorCritic(6, centred=True), ActorCritic(6, centred=True)
    network.update_mean_frame(observations(4)[None])
    other.load_state_dict(network.state_dict())
    assert torch.equal(other(observations(3))[0], network(observations(3))[0])
    for each in (network, other):
        each.update_mean_frame(255 - observations(4)[None])
    assert torch.equal(other.mean, network.mean)


def test_a_plain_network_takes_in_nothing() -> None:
    network = ActorCritic(6)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    network.update_mean_frame(observations(4)[None])
    assert network.state_dict().keys() == before.keys()
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())
