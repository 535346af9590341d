"""`coex localise`: the attentive dynamics model alone, on a random policy's transitions."""

import copy
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from coex.config.bonuses import ADMConfig
from coex.config.grid import model_grid
from coex.envs import POLICY_SHAPE, RAM_SHAPE, Shape, VectorEnv, ram
from coex.envs.game_config import GameConfig
from coex.errors import UsageError
from coex.method.adm import AttentiveDynamicsModel
from coex.method.locator import ADMLocator, locate
from coex.rollouts.collector import Collector
from coex.rollouts.rollout import Rollout
from coex.training.evidence import location_errors

NUM_ENVS, ROLLOUT_STEPS = 16, 5  # A2C's, so that the model is trained as it is on-policy
# Held-out blocks lie far apart, so that they show more than the beginning of an episode.
HELD_OUT_BLOCKS, BLOCK_STEPS, BLOCK_DISTANCE = 8, 16, 200


def evaluation_views(config: ADMConfig) -> dict[str, Shape]:
    """Returns what is looked at: the model's pictures, and the truth."""
    return {"policy": POLICY_SHAPE, config.view: (config.picture_size, config.picture_size, 3), "ram": RAM_SHAPE}


class UniformPolicy:
    """Every action is as likely as any other."""

    def __init__(self, num_actions: int) -> None:
        self._num_actions = num_actions

    def act(self, observations: Tensor, draws: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        log_probs = torch.full(draws.shape, -math.log(self._num_actions))
        return (draws * self._num_actions).long(), log_probs, torch.zeros(draws.shape)

    def value(self, observations: Tensor) -> Tensor:
        return torch.zeros(len(observations))


def localise(
    game: str,
    config: ADMConfig,
    total_steps: int,
    seed: int,
    device: torch.device,
    on_point: Callable[[dict[str, Any]], None] = lambda point: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[dict[str, Any]]:
    """The curve of the distance on held-out transitions of other seeds, in cells, over `total_steps`."""
    if game not in ram.RAM_GAMES:
        raise UsageError(f"{game} has no RAM truth; these games have it: {', '.join(ram.RAM_GAMES)}")
    train_seed, held_out_seed, acting_seed = np.random.SeedSequence(seed).spawn(3)
    generator = torch.Generator().manual_seed(int(acting_seed.generate_state(1)[0]))
    views = evaluation_views(config)
    held_out = gather_held_out(game, views, held_out_seed, generator)
    torch.manual_seed(int(train_seed.generate_state(1)[0]))
    with VectorEnv(game, GameConfig(), num_envs=NUM_ENVS, views=views, seed=train_seed) as env:
        locator = ADMLocator(AttentiveDynamicsModel(env.num_actions, config), device)
        policy = UniformPolicy(env.num_actions)
        collector = Collector(env, ROLLOUT_STEPS, generator, device)
        collector.reset()
        every = max(total_steps // 20, NUM_ENVS * ROLLOUT_STEPS)
        points, started, accuracies = [], time.monotonic(), []
        while collector.steps_done < total_steps and not should_stop():
            before = collector.steps_done
            rollout = collector.collect(policy)
            features = locator.locate(rollout).features
            accuracies.append(locator.fit(rollout, features)["adm/accuracy"])
            if collector.steps_done // every > before // every:
                point = {"step": collector.steps_done, "seconds": round(time.monotonic() - started, 1)}
                point |= {"accuracy": float(np.mean(accuracies))} | evaluate(game, locator.model, held_out, device)
                points.append(point)
                accuracies = []
                on_point(point)
    return points


def gather_held_out(
    game: str, views: dict[str, Shape], seed: np.random.SeedSequence, generator: torch.Generator
) -> list[Rollout]:
    """Blocks of a random policy's play that the model is never trained on."""
    blocks = []
    with VectorEnv(game, GameConfig(), num_envs=NUM_ENVS, views=views, seed=seed) as env:
        policy = UniformPolicy(env.num_actions)
        collector = Collector(env, BLOCK_STEPS, generator, torch.device("cpu"))
        collector.reset()
        for _ in range(HELD_OUT_BLOCKS):
            blocks.append(copy.deepcopy(collector.collect(policy)))  # the collector uses its buffers again
            for _ in range(BLOCK_DISTANCE):
                env.step(torch.randint(env.num_actions, (NUM_ENVS,), generator=generator).numpy())
    return blocks


@torch.no_grad()
def evaluate(game: str, model: AttentiveDynamicsModel, blocks: list[Rollout], device: torch.device) -> dict[str, float]:
    """Mean distance in cells: smoothed (the headline), unsmoothed, and with receptive fields' centres as places."""
    smoothed, plain, centred = [], [], []
    grid = model_grid(model.config.grid, model.config.stride)
    for block in blocks:
        memory = block.next_view("ram").numpy()
        locations = ADMLocator(model, device).locate(block).cells  # (T, N, 2)
        smoothed.append(location_errors(game, locations, memory, grid.cells))
        attention = model.attend(model.encode(block.next_view(model.config.view).to(device)))
        plain.append(location_errors(game, locate(attention).cpu().numpy(), memory, grid.cells))
        # `location_errors` adds the half.
        centred.append(location_errors(game, grid.centres[locations] * grid.cells - 0.5, memory, grid.cells))
    names = ("distance", "distance_unsmoothed", "distance_receptive_field")
    return {
        name: round(float(np.concatenate(errors).mean()), 4)
        for name, errors in zip(names, (smoothed, plain, centred), strict=True)
    }
