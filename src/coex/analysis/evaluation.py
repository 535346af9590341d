"""`coex eval`: how good a checkpoint's policy is, on environments of its own."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from coex.analysis.trained import TrainedAgent
from coex.config.bonuses import CoexConfig
from coex.envs import POLICY_SHAPE, RAM_SHAPE, VectorEnv, ram
from coex.errors import UsageError
from coex.method.bonus import CoexBonus
from coex.rollouts.collector import Collector
from coex.rollouts.rollout import Episode
from coex.runs.checkpoints import Saved
from coex.runs.resume import saved_config
from coex.training.evidence import location_errors

_BLOCK_STEPS = 16


@dataclass(frozen=True)
class EvalConfig:
    """What is played. The policy acts as in training: by sampling."""

    episodes: int = 40
    num_envs: int = 16
    num_workers: int = -1
    seed: int = 0
    sticky: float | None = None  # None: as in training

    def __post_init__(self) -> None:
        least_of = {"episodes": 1, "num_envs": 1, "num_workers": -1, "seed": 0}
        for name, least in least_of.items():
            option = f"--{name.removeprefix('num_')}"
            if getattr(self, name) < least:
                raise UsageError(f"{option} takes a whole number of at least {least}, not {getattr(self, name)}")


def evaluate(saved: Saved, settings: EvalConfig, device: torch.device) -> dict[str, Any]:
    """Plays whole episodes with a checkpoint's policy; the numbers of environments and workers are free."""
    config = saved_config(saved)
    sticky = config.env.sticky if settings.sticky is None else settings.sticky
    env_config = dataclasses.replace(config.env.with_whole_episodes(), sticky=sticky)
    quotas = episode_quotas(settings.episodes, settings.num_envs)  # (N,)
    # Another sequence than the training's for every seed, its own included.
    env_seed, acting_seed = np.random.SeedSequence([settings.seed, saved.manifest.step]).spawn(2)
    has_location = isinstance(config.bonus, CoexConfig) and config.bonus.needs_adm and config.game in ram.RAM_GAMES
    with VectorEnv(
        config.game,
        env_config,
        num_envs=len(quotas),
        num_workers=settings.num_workers,
        views={"policy": POLICY_SHAPE, **({**config.views(), "ram": RAM_SHAPE} if has_location else {})},
        seed=env_seed,
    ) as env:
        agent = TrainedAgent(saved, device)
        generator = torch.Generator().manual_seed(int(acting_seed.generate_state(1)[0]))
        collector = Collector(env, _BLOCK_STEPS, generator, device)
        collector.reset()
        episodes, errors = _play(collector, agent, quotas, has_location=has_location)
    result = {"game": config.game, "method": config.method, "step": saved.manifest.step} | dataclasses.asdict(settings)
    return result | {"sticky": sticky, "num_envs": len(quotas)} | _figures(episodes, errors)


def episode_quotas(episodes: int, num_envs: int) -> NDArray[np.int64]:
    """How many episodes count in each environment, (min(N, K),).

    Whichever environment ends first would otherwise be counted more often, and short episodes with it.
    """
    num_envs = min(num_envs, episodes)
    return np.full(num_envs, episodes // num_envs) + (np.arange(num_envs) < episodes % num_envs)


def counted_steps(ended: NDArray[np.bool_], remaining: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(T, N) which steps belong to the next `remaining` (N,) episodes of each environment, given where they end."""
    ended_before = ended.cumsum(0) - ended
    return ended_before < remaining


@torch.no_grad()
def _play(
    collector: Collector, agent: TrainedAgent, quotas: NDArray[np.int64], *, has_location: bool
) -> tuple[list[Episode], NDArray[np.float64]]:
    """Each environment's first episodes, as many as its quota, and the location's errors in them."""
    remaining, episodes, errors = quotas.copy(), [], [np.zeros(0)]
    game, grid = agent.config.game, agent.config.grid.cells
    while remaining.any():
        rollout = collector.collect(agent.policy)
        if has_location:
            assert isinstance(agent.bonus, CoexBonus)
            counted = counted_steps(rollout.ended.numpy(), remaining)  # (T, N)
            parts = agent.bonus.encoder.encode(rollout, founds_rooms=False).parts
            cells, memory = np.stack([parts["x"], parts["y"]], axis=-1), rollout.next_view("ram").numpy()
            errors.append(location_errors(game, cells[counted], memory[counted], grid))
        for episode in rollout.episodes:
            if remaining[episode.env]:
                remaining[episode.env] -= 1
                episodes.append(episode)
    return episodes, np.concatenate(errors)


def _figures(episodes: list[Episode], errors: NDArray[np.float64]) -> dict[str, Any]:
    returns = np.array([episode.score for episode in episodes])
    lengths = np.array([episode.length for episode in episodes])
    deviation = float(returns.std(ddof=1)) if len(returns) > 1 else None
    figures: dict[str, Any] = {
        "return_mean": float(returns.mean()),
        "return_std": deviation,
        "return_standard_error": None if deviation is None else deviation / len(returns) ** 0.5,
        "return_min": float(returns.min()),
        "return_max": float(returns.max()),
        "length_mean": float(lengths.mean()),
        "length_min": int(lengths.min()),
        "length_max": int(lengths.max()),
        "truncated": sum(episode.truncated for episode in episodes),
    }
    if len(errors):
        figures |= {"distance": float(errors.mean()), "distance_steps": len(errors)}
    return figures | {"returns": returns.tolist(), "lengths": lengths.tolist()}
