"""Bonuses within a run: they lead somewhere, diverge aloud, and go on exactly where they stopped."""

from pathlib import Path

import pytest
import torch

from coex.config.field import FIELD
from coex.config.presets import make_config
from coex.errors import CoexError
from coex.rollouts.collector import Collector
from coex.runs.directory import read_metrics
from coex.training.agent import Agent, make_env, split_seed
from coex.training.loop import train
from coex.training.make import make_bonus

EMPTY = "gym:MiniGrid-Empty-5x5-v0"
SMALL = {"num_envs": 2, "num_workers": 0, "log_every_steps": 20, "checkpoint": {"every_steps": 1_000}}
# Settings with which a bonus works from the first steps on, and learns something in them.
QUICK = {
    "rnd": {"predictor": {"warmup": 0}},
    "noveld": {"predictor": {"warmup": 0}},
    "curiosity": {"warmup": 0},
    "curiosity-random": {"warmup": 0},
    "icm": {"learning_rate": 3e-3},
    "e3b": {"features": 32},
    "coex-e3b": {"e3b": {"features": 32}},
    "pixelcnn-chunks": {"chunk": 2},
    "ae-simhash": {"channels": 4, "code": 64, "train_every": 30, "pool": 100, "block": 1, "max_blocks": 1},
}


@pytest.mark.parametrize("name", ["icm", "noveld", "e3b", "cts", "ae-simhash"])  # the contract restores all of them
def test_a_resumed_run_is_one_that_never_stopped(name: str, tmp_path: Path) -> None:
    settings = {**SMALL, "bonus": QUICK.get(name, {}), "schedule_steps": 40, "env": {"max_episode_frames": 15}}
    whole = make_config(EMPTY, f"a2c+{name}", {**settings, "total_steps": 40})
    half = make_config(EMPTY, f"a2c+{name}", {**settings, "total_steps": 20})
    train(whole, tmp_path / "whole")
    train(half, tmp_path / "halves")
    train(whole, tmp_path / "halves", resume=True)
    ours, theirs = (read_metrics(tmp_path / run)[-1] for run in ("halves", "whole"))
    timing = {"seconds", "steps_per_second"}
    assert {key: value for key, value in ours.items() if key not in timing} == {
        key: value for key, value in theirs.items() if key not in timing
    }
    assert ours["episodes"] > 0  # it went through ends of episodes
    assert ours["bonus/mean"] > 0


@pytest.mark.parametrize("poison", [float("nan"), float("inf"), 1e9])
def test_a_bonus_that_diverges_stops_the_run_and_names_the_last_checkpoint(
    poison: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(EMPTY, "a2c+icm", {**SMALL, "total_steps": 80, "checkpoint": {"every_steps": 20}})
    original = Agent.iterate

    def poisoned(self: Agent):
        if self.steps_done == 50:
            with torch.no_grad():
                self.bonus.model.dynamics[-1].bias.fill_(poison)
        return original(self)

    monkeypatch.setattr(Agent, "iterate", poisoned)
    with pytest.raises(CoexError, match=r"stopped at step 50: the bonus has diverged") as caught:
        train(config, tmp_path / "run")
    assert "40" in str(caught.value)  # the last good checkpoint
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["rnd", "icm", "curiosity"])
def test_a_loss_that_is_no_number_stops_the_bonus(name: str, new_bonus, make_rollout) -> None:
    bonus, rollout = new_bonus(name, **QUICK.get(name, {})), make_rollout()
    network = {"rnd": lambda: bonus.distillation.predictor, "icm": lambda: bonus.model.dynamics}.get(
        name, lambda: bonus.dynamics.last
    )()
    rewarded = bonus.reward(rollout)
    with torch.no_grad():
        next(iter(network.parameters())).fill_(float("nan"))
    with pytest.raises(CoexError, match="the loss is nan"):
        bonus.update(rollout, rewarded._replace(memo=None))


@pytest.mark.parametrize("name", ["rnd", "noveld", "curiosity", "pixelcnn"])  # whose rewards have a unit, or a limit
def test_a_loss_that_explodes_stops_the_bonus(name: str, new_bonus, make_rollout) -> None:
    bonus, rollout = new_bonus(name, **QUICK.get(name, {})), make_rollout()
    last = {"curiosity": lambda: bonus.dynamics.last, "pixelcnn": lambda: bonus.model.rest[-1]}.get(
        name, lambda: bonus.distillation.predictor[-1]
    )()
    with torch.no_grad():
        last.bias[0] = 1e9
    with pytest.raises(CoexError, match=r"a model has diverged: its loss is \d"):
        bonus.update(rollout, bonus.reward(rollout))


class Walker:
    """Stands still, or walks at random."""

    def __init__(self, *, still: bool) -> None:
        self._still = still

    def act(self, observations: torch.Tensor, draws: torch.Tensor) -> tuple[torch.Tensor, ...]:
        actions = torch.full((len(draws),), 6) if self._still else (draws * 3).long()  # 6: nothing; 0 to 2: moves
        return actions, torch.zeros(len(draws)), torch.zeros(len(draws))

    def value(self, observations: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(observations))


@pytest.mark.parametrize("name", [*FIELD, "simhash", "coex", "coex-e3b", "coex-noveld"])
def test_after_standing_still_a_walk_is_worth_more(name: str) -> None:
    """A bonus that is constant, or falls where it should rise, fails here."""
    config = make_config(EMPTY, f"a2c+{name}", {**SMALL, "bonus": QUICK.get(name, {})})
    env_seed, _, _, bonus_seed, _ = split_seed(0)
    with make_env(config, env_seed) as env:
        collector = Collector(env, 5, torch.Generator().manual_seed(0), torch.device("cpu"))
        bonus = make_bonus(config, env.num_actions, bonus_seed, torch.device("cpu"))
        assert bonus is not None
        collector.reset()
        means, waits = [], 24 if "pixelcnn" in name else 12
        for still in [True] * waits + [False] * 3:
            rollout = collector.collect(Walker(still=still))
            rewarded = bonus.reward(rollout)
            bonus.update(rollout, rewarded)
            means.append(rewarded.bonus.mean().item())
    assert max(means[waits:]) > 1.5 * min(means[waits - 3 : waits])
