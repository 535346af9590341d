"""`coex eval`: how good a checkpoint's policy is, on environments of its own."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from coex.config.bonuses import CoexConfig
from coex.config.run import RunConfig
from coex.envs import VectorEnv, ram
from coex.errors import UsageError
from coex.learners.networks import SamplingPolicy
from coex.method.adm import AttentiveDynamicsModel
from coex.method.locator import ADMLocator
from coex.rollouts.rollout import Collector, Episode
from coex.runs.checkpoints import CheckpointStore, Saved
from coex.runs.resume import fitting, read_newest, run_config, saved_config
from coex.training.evidence import location_errors
from coex.training.make import make_network

_BLOCK_STEPS = 16


@dataclass(frozen=True)
class EvalConfig:
    """What is played. The policy acts as in training: by sampling."""

    episodes: int = 40
    num_envs: int = 16
    num_workers: int = 0
    seed: int = 0
    sticky: float | None = None  # None: as in training

    def __post_init__(self) -> None:
        least_of = {"episodes": 1, "num_envs": 1, "num_workers": 0, "seed": 0}
        for name, least in least_of.items():
            option = f"--{name.removeprefix('num_')}"
            if getattr(self, name) < least:
                raise UsageError(f"{option} takes a whole number of at least {least}, not {getattr(self, name)}")


def find_saved(run: Path, step: int | None, warn: Callable[[str], None]) -> Saved:
    """The checkpoint of that step, or the newest that is whole."""
    run_config(run)  # says what is wrong with a directory that is no run
    store = CheckpointStore(run)
    steps = store.steps()
    if step is None:
        saved = read_newest(store, warn)
        if saved is None:
            raise UsageError(f"{run} has no checkpoint yet")
        return saved
    if step not in steps:
        there = f"these are there: {', '.join(map(str, steps))}" if steps else "there are none"
        raise UsageError(f"{run} has no checkpoint of step {step}; {there}")
    return store.read(step)


def evaluate(saved: Saved, settings: EvalConfig, device: torch.device) -> dict[str, Any]:
    """Plays whole episodes with a checkpoint's policy; the numbers of environments and workers are free."""
    config = saved_config(saved)
    if settings.sticky is not None:
        config = dataclasses.replace(config, env=dataclasses.replace(config.env, sticky=settings.sticky))
    quotas = episode_quotas(settings.episodes, settings.num_envs)  # (N,)
    # Another sequence than the training's for every seed, its own included.
    env_seed, acting_seed = np.random.SeedSequence([settings.seed, saved.manifest.step]).spawn(2)
    has_location = isinstance(config.bonus, CoexConfig) and config.bonus.needs_adm and config.game in ram.RAM_GAMES
    with VectorEnv(
        config.game,
        config.env.with_whole_episodes(),
        num_envs=len(quotas),
        num_workers=settings.num_workers,
        views=["policy", *(["adm", "ram"] if has_location else [])],
        seed=env_seed,
    ) as env:
        policy, locator = _load(config, saved, env.num_actions, has_location, device)
        generator = torch.Generator().manual_seed(int(acting_seed.generate_state(1)[0]))
        collector = Collector(env, _BLOCK_STEPS, generator, device)
        collector.reset()
        episodes, errors = _play(config.game, collector, policy, locator, quotas)
    result = {"game": config.game, "method": config.method, "step": saved.manifest.step} | dataclasses.asdict(settings)
    return result | {"sticky": config.env.sticky, "num_envs": len(quotas)} | _figures(episodes, errors)


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


def _load(
    config: RunConfig, saved: Saved, num_actions: int, has_location: bool, device: torch.device
) -> tuple[SamplingPolicy, ADMLocator | None]:
    network, locator = make_network(config, num_actions), None
    with fitting(saved, config.game):
        network.load_state_dict(saved.state["agent"]["learner"]["network"])
        if has_location and isinstance(config.bonus, CoexConfig):
            model = AttentiveDynamicsModel(num_actions, config.bonus.adm)
            model.load_state_dict(saved.state["agent"]["bonus"]["locator"]["model"])
            locator = ADMLocator(model, device)
    return SamplingPolicy(network.to(device)), locator


@torch.no_grad()
def _play(
    game: str, collector: Collector, policy: SamplingPolicy, locator: ADMLocator | None, quotas: NDArray[np.int64]
) -> tuple[list[Episode], NDArray[np.float64]]:
    """Each environment's first episodes, as many as its quota, and the location's errors in them."""
    remaining, episodes, errors = quotas.copy(), [], [np.zeros(0)]
    while remaining.any():
        rollout = collector.collect(policy)
        if locator:
            counted = counted_steps(rollout.ended.numpy(), remaining)  # (T, N)
            cells, memory = locator.locate(rollout), rollout.next_view("ram").numpy()
            errors.append(location_errors(game, cells[counted], memory[counted]))
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
