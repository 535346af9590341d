from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import lean
from benchmarks.network import policy_network
from benchmarks.rows import GAME, PLAIN_ROWS
from coex.envs.atari import AtariGame
from coex.envs.game_config import GameConfig
from coex.learners.networks import ActorCritic

SHORT = {"n_steps": 4, "batch_size": 8}  # 4 environments: two minibatches


def make_environments(simulator: str, **arguments: Any) -> Any:
    if simulator == "envpool":
        pytest.importorskip("envpool")
    return lean.make_environments(simulator, GAME, count=4, seed=1, **arguments)


@pytest.mark.parametrize("simulator", lean.SIMULATORS)
@pytest.mark.parametrize("row", [PLAIN_ROWS[0], PLAIN_ROWS[2]], ids=lambda row: row.name)
def test_lean_loop_trains(simulator: str, row: Any) -> None:
    algorithm, settings = row.peers[1].algorithm, lean.Settings(**row.peers[1].arguments | SHORT)
    torch.manual_seed(0)
    before = policy_network(actions=18)
    torch.manual_seed(0)
    run = lean.train(algorithm, make_environments(simulator), steps=48, device="cpu", settings=settings)
    assert [step for step, _ in run.points] == [0, 16, 32, 48]
    assert len(run.losses) == 3
    assert np.isfinite(run.losses).all()
    for old, new in zip(before.parameters(), run.network.parameters(), strict=True):
        assert new.isfinite().all()
        assert not torch.equal(old, new)


def test_lean_loop_has_a_network_of_our_size() -> None:
    sizes = [
        sum(weight.numel() for weight in network.parameters()) for network in (policy_network(18), ActorCritic(18))
    ]
    assert sizes[0] == sizes[1]


# ALE draws from 0 to `max_noops` frames, EnvPool from 1 on as we do (and crashes with 0): so that nothing is drawn.
@pytest.mark.parametrize(("simulator", "max_noops"), [("ale", 0), ("envpool", 1)])
def test_lean_loop_plays_the_game_that_we_play(simulator: str, max_noops: int) -> None:
    """Frame skip, maximum of two frames, greys, sizes, stack and the lack of sticky actions, all at once."""
    game = AtariGame(GAME, GameConfig(max_noops=max_noops), np.random.SeedSequence(0))
    environments = make_environments(simulator, max_noops=max_noops)
    ours = np.zeros((84, 84, 4), np.uint8)
    game.reset()
    game.paint({"policy": ours}, fresh=True)
    environments.reset()
    for step, action in enumerate(np.random.default_rng(0).integers(18, size=200).tolist()):
        _, terminated, _ = game.step(action)
        game.paint({"policy": ours}, fresh=False)
        shown, _, theirs_terminated, _, _ = environments.step(np.full(4, action))
        assert not terminated
        assert not theirs_terminated.any()
        if step >= 3:  # before that, a stack is filled up in a different way by each
            difference = shown.astype(int) - ours.transpose(2, 0, 1)
            assert np.abs(difference).max() <= 1, f"step {step}"


def test_ale_begins_with_up_to_30_no_ops() -> None:
    environments = make_environments("ale")
    waited = np.concatenate([environments.reset()[1]["episode_frame_number"] for _ in range(20)])
    assert len(set(waited.tolist())) > 15
    assert 25 < waited.max() <= 30


def test_envpool_begins_with_up_to_30_no_ops() -> None:
    assert make_environments("envpool").spec.config.noop_max == 30
