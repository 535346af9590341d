"""The loop as a whole: it repeats itself, and it learns."""

import contextlib
import random
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

from coex.config.field import FIELD  # tests/bonuses/test_training.py
from coex.config.presets import ARCHIVES, METHODS, make_config
from coex.errors import CoexError
from coex.learners.batch import Rewards
from coex.runs.directory import read_metrics
from coex.training.loop import train

TIMINGS = ("seconds", "steps_per_second")


# PPO with rollouts as short as a test: several updates, each in 2 epochs.
SHORT: dict[str, dict[str, object]] = {"a2c": {}, "ppo": {"num_steps": 40, "num_epochs": 2}}


def run(out: Path, method: str = "a2c", **settings: object) -> list[dict[str, float]]:
    learner = {**SHORT[method[:3]], **settings.pop("learner", {})}  # type: ignore[dict-item]
    defaults = {"num_workers": 0, "log_every_steps": 200, "learner": learner}
    train(make_config("montezuma", method, {**defaults, **settings}), out)
    points = read_metrics(out)
    return [{key: value for key, value in point.items() if key not in TIMINGS} for point in points]


@pytest.mark.parametrize("method", ["a2c", "ppo"])
def test_the_same_seed_gives_the_same_run(method: str, tmp_path: Path) -> None:
    """With worker processes and without."""
    settings = {"method": method, "total_steps": 800, "num_envs": 4,
                "env": {"sticky": 0.25, "max_episode_frames": 200}}  # fmt: skip
    first, second = (run(tmp_path / str(workers), num_workers=workers, **settings) for workers in (2, 0))
    assert first == second
    episodes = [(tmp_path / name / "episodes.csv").read_text() for name in ("2", "0")]
    assert episodes[0] == episodes[1]
    assert len(episodes[0].splitlines()) > 10
    other = run(tmp_path / "other", seed=1, **settings | {"total_steps": 200})
    assert other[0]["policy_loss"] != first[0]["policy_loss"]


@pytest.mark.parametrize("method", ["a2c", "ppo"])
def test_points_hold_what_the_documentation_promises(method: str, tmp_path: Path) -> None:
    point = run(tmp_path / "run", method, total_steps=400, num_envs=5)[-1]
    promised = {
        "step",
        "frame",
        "episodes",
        "return_mean40",
        "max_return_mean40",
        "policy_loss",
        "value_loss",
        "entropy",
        "grad_norm",
        "learning_rate",
        "explained_variance",
    } | ({"clip_fraction", "approx_kl", "return_std", "gradient_steps"} if method == "ppo" else set())
    assert promised <= point.keys()
    assert (point["step"], point["frame"]) == (400, 1_600)


@pytest.mark.parametrize("method", ["a2c", "ppo"])
def test_a_loss_that_is_no_number_stops_the_run_and_says_where(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def poisoned(rewards: torch.Tensor, *_: object) -> Rewards:
        return Rewards(torch.full_like(rewards, float("nan")), torch.zeros_like(rewards), bonus_weight=0.0)

    monkeypatch.setattr("coex.training.agent.make_rewards", poisoned)
    with pytest.raises(CoexError, match=r"step 0: .* nan") as caught:
        run(tmp_path / "run", method, total_steps=400, num_envs=4)
    assert "\n" not in str(caught.value)
    assert (tmp_path / "run" / "config.json").exists()


@pytest.mark.parametrize(
    "method", [method for method in METHODS if method not in ARCHIVES and method.partition("+")[2] not in FIELD]
)
def test_every_method_trains_and_repeats_itself(method: str, tmp_path: Path) -> None:
    settings = {"total_steps": 400, "num_envs": 4, "env": {"max_episode_frames": 80}}
    first, second = (run(tmp_path / name, method=method, **settings) for name in ("first", "second"))
    assert first == second
    if method.endswith("+coex"):
        assert {"adm/distance", "adm/accuracy", "rooms/ari", "rooms/clusters", "bonus/mean"} <= first[-1].keys()


def test_the_bonus_may_have_a_value_of_its_own(tmp_path: Path) -> None:
    settings = {"total_steps": 400, "num_envs": 4, "learner": {"two_value_heads": True}}
    first, second = (run(tmp_path / name, method="ppo+simhash", **settings) for name in ("first", "second"))
    assert first == second
    assert "bonus_explained_variance" in first[-1]


def test_the_generators_of_the_program_are_left_alone(tmp_path: Path) -> None:
    torch.manual_seed(5)
    random.seed(5)
    expected = torch.rand(1).item(), random.random()
    torch.manual_seed(5)
    random.seed(5)
    run(tmp_path / "run", total_steps=20, num_envs=4)
    assert (torch.rand(1).item(), random.random()) == expected


def test_a_run_ends_with_the_rollout_it_is_in(tmp_path: Path) -> None:
    """Fewer steps than one rollout, or than one minibatch each: the run is one whole rollout."""
    points = run(tmp_path / "run", "ppo", total_steps=1, num_envs=3, learner={"num_steps": 2, "num_minibatches": 6})
    assert [point["step"] for point in points] == [6]


def test_memory_stays_small(tmp_path: Path) -> None:
    options = f"train montezuma --steps 1600 --out {tmp_path / 'run'}"
    command = [sys.executable, "-m", "coex.cli", *options.split()]
    process, peak = subprocess.Popen(command, stderr=subprocess.DEVNULL), 0
    while process.poll() is None:
        with contextlib.suppress(psutil.Error):
            family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
            peak = max(peak, sum(member.memory_full_info().pss for member in family))
        time.sleep(0.2)
    assert process.returncode == 0
    assert 100e6 < peak < 1.5e9
