"""The grid and its stride are settings: for a player of another size than Atari's."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from coex.config.bonuses import ADMConfig, CoexConfig
from coex.config.grid import model_grid
from coex.errors import UsageError
from coex.method.adm import AttentiveDynamicsModel
from coex.method.locator import ADMLocator
from coex.rollouts.rollout import Transitions

ENVS, STEPS, MOVES = 16, 8, np.array([(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)])


class Play(NamedTuple):
    transitions: Transitions
    places: NDArray[np.float64]  # (T, N, 2) the player's true centre, as a share of the picture


def play(config: ADMConfig, size: float, generator: np.random.Generator) -> Play:
    """A square player that obeys, of that share of the picture's side, and another like it that does not."""
    side = config.picture_size
    width, stride = max(round(size * side), 1), max(round(size * side / 4), 1)
    frames = np.full((STEPS + 1, ENVS, side, side, 3), 30, np.uint8)
    actions = generator.integers(5, size=(STEPS, ENVS))
    drift = generator.integers(5, size=(STEPS, ENVS))
    places = np.zeros((STEPS + 1, ENVS, 2))
    for n in range(ENVS):
        player, other = generator.integers(0, side - width + 1, (2, 2))
        for t in range(STEPS + 1):
            if t:
                player = np.clip(player + stride * MOVES[actions[t - 1, n]], 0, side - width)
                other = np.clip(other + stride * MOVES[drift[t - 1, n]], 0, side - width)
            for (x, y), colour in ((other, (90, 160, 90)), (player, (230, 120, 40))):
                frames[t, n, y : y + width, x : x + width] = colour
            places[t, n] = (player + width / 2) / side
    return Play(
        Transitions(
            views={config.view: torch.from_numpy(frames)},
            actions=torch.from_numpy(actions),
            log_probs=torch.full((STEPS, ENVS), -float(np.log(5))),
            scores=torch.zeros((STEPS, ENVS), dtype=torch.float64),
            final_index=torch.zeros((0, 2), dtype=torch.int64),
            final_views={config.view: torch.from_numpy(frames[0, :0])},
        ),
        places[1:],
    )


def location_error(config: ADMConfig, size: float, rollouts: int) -> float:
    """The mean distance, as a share of the picture, in the last rollouts that the model learned from."""
    torch.manual_seed(0)
    generator, grid = np.random.default_rng(0), model_grid(config.grid, config.stride)
    locator = ADMLocator(AttentiveDynamicsModel(5, config), torch.device("cpu"))
    errors = []
    for _ in range(rollouts):
        transitions, places = play(config, size, generator)
        locator.forget_attention()
        located = locator.locate(transitions)
        errors.append(np.linalg.norm(grid.centres[located.cells] - places, axis=-1).mean())
        locator.fit(transitions, located.features)
    return float(np.mean(errors[-5:]))


def test_a_player_several_times_as_large_as_ataris_is_found_by_fewer_cells() -> None:
    suited, default = (location_error(config, 0.4, 30) for config in (ADMConfig(grid=4), ADMConfig()))
    assert suited < 1 * model_grid(4, 16).tile
    assert suited < 0.75 * default


def test_states_and_pictures_follow() -> None:
    config = CoexConfig(state="xy", adm=ADMConfig(grid=4, stride=32))
    assert config.views("gym:Any-v0") == {"rgb128": (128, 128, 3)}
    assert config.grid == (4, 0.125, 0.25, 0.25)
    assert CoexConfig().views("gym:Any-v0")["rgb160"] == (160, 160, 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"grid": 1}, "2 to 39"), ({"grid": 40}, "2 to 39"), ({"stride": 12}, "8, 16, 24, 32"), ({"stride": 0}, "8, 16")],
)
def test_bad_values_are_said(settings: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ADMConfig(**settings)
