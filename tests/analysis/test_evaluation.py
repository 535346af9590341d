"""Evaluation: every environment's episodes count alike, and any checkpoint can be played."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from coex.analysis.evaluation import counted_steps, episode_quotas
from coex.cli import main
from coex.config.presets import make_config
from coex.runs.checkpoints import CheckpointStore
from coex.runs.directory import read_metrics
from coex.training.loop import train


@pytest.mark.parametrize(
    ("episodes", "envs", "quotas"), [(1, 16, [1]), (4, 4, [1] * 4), (10, 4, [3, 3, 2, 2]), (5, 2, [3, 2])]
)
def test_every_environment_gives_its_share(episodes: int, envs: int, quotas: list[int]) -> None:
    assert episode_quotas(episodes, envs).tolist() == quotas


def test_short_episodes_do_not_count_more_often() -> None:
    """One kind of episode lasts 1 step, the other 99, equally likely: the first that end are nearly all short."""
    rng = np.random.default_rng(0)
    lengths = rng.choice([1, 99], size=(1_000, 10))  # (environment, episode)
    ends = lengths.cumsum(1)
    first = lengths.ravel()[ends.ravel().argsort()[:900]]
    assert first.mean() < 2
    counted = [lengths[n, :quota].mean() for n, quota in enumerate(episode_quotas(2_000, 1_000))]
    assert np.mean(counted) == pytest.approx(50, abs=5)


def test_steps_after_the_last_episode_that_counts_do_not() -> None:
    ended = np.array([[0, 1, 0], [1, 1, 0], [0, 0, 0], [1, 0, 1]], bool)
    counted = counted_steps(ended, np.array([1, 2, 0]))
    assert counted.astype(int).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 0], [0, 0, 0]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    settings = {
        "total_steps": 400,
        "num_envs": 4,
        "num_workers": 0,
        "env": {"max_episode_frames": 80},
        "checkpoint": {"every_steps": 200},
    }
    train(make_config("montezuma", "a2c+coex", settings), out)
    return out


def test_any_checkpoint_is_played_with_other_numbers_of_environments(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    options = ["--episodes", "5", "--envs", "3", "--workers", "1", "--sticky", "0.25"]
    for step, chosen in ((400, []), (200, ["--checkpoint", "200"])):
        assert main(["eval", str(run), *options, *chosen]) == 0
        result = json.loads((run / f"eval-{step}.json").read_text())
        assert (result["step"], result["sticky"], result["num_envs"]) == (step, 0.25, 3)
        assert len(result["returns"]) == len(result["lengths"]) == 5
        assert result["return_mean"] == np.mean(result["returns"])
        assert result["return_std"] == pytest.approx(np.std(result["returns"], ddof=1))
        assert result["length_max"] <= 20
        assert 0 < result["distance"] < 12
        assert result["distance_steps"] <= sum(result["lengths"])
        assert f"step {step} · mean return" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in files} == files  # nothing of the run was touched


def test_the_same_seed_gives_the_same_evaluation(run: Path) -> None:
    results = []
    for workers in ("2", "0"):
        assert main(["eval", str(run), "--episodes", "2", "--seed", "3", "--workers", workers]) == 0
        results.append(json.loads((run / "eval-400.json").read_text()))
        assert results[-1].pop("num_workers") == int(workers)
    assert results[0] == results[1]


def test_bad_input_gets_one_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        ([str(tmp_path / "none")], str(tmp_path / "none")),
        ([str(run), "--episodes", "0"], "--episodes"),
        ([str(run), "--envs", "x"], "num_envs"),
        ([str(run), "--sticky", "2"], "sticky"),
        ([str(run), "--checkpoint", "7"], "0, 200, 400"),
        ([str(run), "--checkpoint", "x"], "--checkpoint"),
        ([str(run), "--device", "toaster"], "--device"),
        ([str(run), "--workers", "-2"], "workers"),
    ):
        assert main(["eval", *arguments]) == 2
        errors = capsys.readouterr().err
        assert errors.count("\n") == 1
        assert message in errors
    path = CheckpointStore(run).path_of(200) / "state.json"
    path.write_bytes(path.read_bytes()[:-1])
    assert main(["eval", str(run), "--checkpoint", "200"]) == 1
    assert re.search("step-000000000200 .*state.json", capsys.readouterr().err)
    assert len(read_metrics(run)) == 1


@pytest.mark.parametrize("two_value_heads", [False, True])
def test_agents_of_ppo_are_played(two_value_heads: bool, tmp_path: Path) -> None:
    settings = {
        "total_steps": 64,
        "num_envs": 4,
        "num_workers": 0,
        "env": {"max_episode_frames": 80},
        "learner": {"num_steps": 16, "two_value_heads": two_value_heads},
    }
    train(make_config("montezuma", "ppo+coex", settings), tmp_path / "run")
    assert main(["eval", str(tmp_path / "run"), "--episodes", "2", "--workers", "0"]) == 0
    assert json.loads((tmp_path / "run" / "eval-64.json").read_text())["episodes"] == 2


def test_no_episode_is_cut_off_to_stagger_the_environments(tmp_path: Path) -> None:
    """An untrained agent is in the first of four rooms until MiniGrid ends the episode, after 80 steps."""
    config = make_config(
        "gym:MiniGrid-MultiRoom-N4-S5-v1", "a2c", {"total_steps": 80, "num_envs": 16, "num_workers": 0}
    )
    assert config.env.stagger
    train(config, tmp_path / "run")
    assert main(["eval", str(tmp_path / "run"), "--episodes", "6", "--envs", "6", "--workers", "0"]) == 0
    result = json.loads((tmp_path / "run" / "eval-80.json").read_text())
    assert (result["length_min"], result["truncated"]) == (80, 6)
