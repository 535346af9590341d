"""The command on the page gives the run that the page is about."""

import shlex

import pytest

from coex.cli import _parser
from coex.commands.train import _run_config
from coex.config.presets import make_config
from coex.results.published import published_score
from coex.watch.identity import train_command


@pytest.mark.parametrize(
    ("game", "method", "settings"),
    [
        ("montezuma", "a2c+coex", {}),
        ("hero", "a2c", {"total_steps": 5_000, "seed": 3, "num_envs": 4, "schedule_steps": 10_000}),
        (
            "gym:MiniGrid-Empty-5x5-v0",
            "a2c+simhash",
            {"bonus": {"bits": 64}, "env": {"sticky": 0.25}, "num_workers": 1},
        ),
        (
            "qbert",
            "a2c+coex",
            {"bonus": {"state": "xyc", "adm": {"cell_loss": False, "learning_rate": 1e-4}}, "checkpoint": {"keep": 1}},
        ),
    ],
)
def test_the_command_repeats_the_run(game: str, method: str, settings: dict[str, object]) -> None:
    config = make_config(game, method, settings)
    command = train_command(config)
    assert _run_config(_parser().parse_args(shlex.split(command)[1:])) == config


def test_defaults_are_left_unsaid() -> None:
    config = make_config("freeway", "a2c", {"total_steps": 1_000})
    assert train_command(config) == "coex train Freeway --method a2c --steps 1000 --seed 0"


def test_published_scores() -> None:
    montezuma = published_score("MontezumaRevenge", "a2c+coex")
    assert montezuma is not None
    assert (montezuma.score, montezuma.steps) == (6635, 100_000_000)
    ppo = published_score("MontezumaRevenge", "ppo+coex")
    assert ppo is not None
    assert (ppo.score, ppo.steps) == (11618, 500_000_000)
    ablated = published_score("Venture", "a2c+coex", "xyc")
    assert ablated is not None
    assert ablated.score == 1374
    assert published_score("Venture", "a2c+coex", "x") is None
    assert published_score("gym:CartPole-v1", "a2c") is None
