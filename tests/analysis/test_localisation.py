"""`coex localise`: what it evaluates, and what it leaves behind."""

import json
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

from coex.analysis import localisation
from coex.cli import main
from coex.commands import truth
from coex.envs import ram
from coex.results import published


@pytest.fixture(autouse=True)
def _short_held_out_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(localisation, "HELD_OUT_BLOCKS", 2)
    monkeypatch.setattr(localisation, "BLOCK_DISTANCE", 5)


def test_it_writes_the_curve_and_the_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"localise freeway --steps 1600 --seed 3 --set attention=softmax --out {tmp_path}".split()) == 0
    result = json.loads((tmp_path / "Freeway-s3.json").read_text())
    assert (result["game"], result["seed"], result["adm"]["attention"]) == ("Freeway", 3, "softmax")
    assert result["adm"]["joystick"]  # as in training
    assert result["points"][-1]["step"] == 1600
    assert 0 < result["points"][-1]["distance"] < 13
    assert (tmp_path / "localise.png").stat().st_size > 5_000
    assert "Freeway" in capsys.readouterr().out


def test_all_games_are_those_that_we_tune_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    localised: list[str] = []
    monkeypatch.setattr(truth, "_localise_one", lambda game, *rest: localised.append(game))
    for names in ("all", "held-out", "ms-pacman hero"):
        assert main(f"localise {names} --out {tmp_path}".split()) == 0
    assert localised == [*published.GAMES, *ram.HELD_OUT_GAMES, "MsPacman", "Hero"]


def test_a_held_out_game_is_measured(tmp_path: Path) -> None:
    assert main(f"localise pitfall --steps 1000 --out {tmp_path}".split()) == 0
    assert 0 < json.loads((tmp_path / "Pitfall-s0.json").read_text())["points"][-1]["distance"] < 13


def test_a_stopped_curve_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate = localisation.evaluate

    def interrupted(*arguments: object) -> dict[str, float]:
        signal.raise_signal(signal.SIGINT)
        return evaluate(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(localisation, "evaluate", interrupted)
    assert main(f"localise freeway seaquest --steps 3200 --out {tmp_path}".split()) == 130
    result = json.loads((tmp_path / "Freeway-s0.json").read_text())
    assert (result["steps"], len(result["points"])) == (160, 1)
    assert not (tmp_path / "Seaquest-s0.json").exists()


class Oracle(torch.nn.Module):
    """Attends to the player's true cell, which the test hides in the picture's first pixel."""

    config = localisation.ADMConfig()
    num_actions = 3

    def __init__(self) -> None:
        super().__init__()
        self.unused = torch.nn.Parameter(torch.zeros(1))

    def encode(self, frames: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.one_hot(frames[..., 0, 0, 0].long(), 81).float()

    def attend(self, features: torch.Tensor) -> torch.Tensor:
        return features


def test_a_model_that_knows_is_less_than_a_cell_off() -> None:
    generator = torch.Generator().manual_seed(0)
    blocks = localisation.gather_held_out(
        "Seaquest", localisation.evaluation_views(Oracle.config), np.random.SeedSequence(0), generator
    )
    for block in blocks:
        for views in (block.views, block.final_views):
            cells = ram.player_grid_cell("Seaquest", views["ram"].numpy())
            views["rgb160"][..., 0, 0, 0] = torch.from_numpy(cells[..., 0] + 9 * cells[..., 1])
    oracle: localisation.AttentiveDynamicsModel = Oracle()  # type: ignore[assignment]
    figures = localisation.evaluate("Seaquest", oracle, blocks, torch.device("cpu"))
    assert figures["distance"] <= 2**0.5 / 2
    assert figures["distance_unsmoothed"] == figures["distance"]
    assert figures["distance_receptive_field"] != figures["distance"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("localise gym:CartPole-v1", "has no RAM truth"),
        ("localise hero --steps few", "whole numbers"),
        ("localise hero --steps 10", "at least 1000"),
        ("localise hero --set attention=hard", "sparsemax, softmax"),
    ],
)
def test_bad_input_is_said(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments.split()) == 2
    assert message in capsys.readouterr().err
