"""What a run on many processes would lose by not counting and clustering exactly, on the same visits (for `scale`).

Environments are played at random, once; then the same visits are counted and the same pictures clustered in every way.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from coex.config.bonuses import ClusterConfig, CoexConfig
from coex.config.presets import make_config
from coex.envs import VectorEnv
from coex.method.bonus import CoexBonus
from coex.method.counts import VisitCounts
from coex.method.rooms import NEW_ROOM, RoomClusters
from coex.rollouts.collector import Collector
from coex.training.agent import split_seed
from coex.training.make import make_bonus

GAMES = ("MontezumaRevenge", "PrivateEye")
PROCESSES = (8, 32)
Visits = NDArray[np.int64]  # (T, N, …)


class _AtRandom:
    """A policy."""

    def __init__(self, num_actions: int) -> None:
        self._num_actions = num_actions

    def act(self, observations: torch.Tensor, draws: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return (draws * self._num_actions).long(), torch.zeros(len(draws)), torch.zeros(len(draws))

    def value(self, observations: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(observations))


def _clusters(game: str) -> ClusterConfig:
    bonus = make_config(game, "a2c+coex").bonus
    assert isinstance(bonus, CoexConfig)
    return bonus.clusters


def play(game: str, envs: int, steps: int) -> tuple[Visits, Visits, Visits]:
    """Returns (T, N, 3) x, y and score by RAM, (T, N) the true rooms, and (T, N, E) the pictures' embeddings."""
    config = make_config(game, "a2c+coex-ram", {"num_envs": envs, "bonus": {"state": "xycR"}})
    env_seed, _, acting_seed, bonus_seed, _ = split_seed(0)
    rooms = RoomClusters(_clusters(game))
    views = {**config.views(), "rgb84": (84, 84, 3), "policy": (84, 84, 4)}
    states, embeddings, length = [], [], 20
    with VectorEnv(game, config.env, num_envs=envs, views=views, seed=env_seed) as env:
        generator = torch.Generator().manual_seed(int(acting_seed.generate_state(1)[0]))
        collector = Collector(env, length, generator, torch.device("cpu"))
        bonus = make_bonus(config, env.num_actions, bonus_seed, torch.device("cpu"))
        assert isinstance(bonus, CoexBonus)
        collector.reset()
        for _ in range(max(steps // length, 1)):
            rollout = collector.collect(_AtRandom(env.num_actions))
            states.append(bonus.reward(rollout).states)
            seen = rollout.next_view("rgb84")
            embeddings.append(rooms.embed(seen.reshape(-1, 84, 84, 3)).reshape(length, envs, -1))
    whole = {name: np.concatenate([part[name] for part in states]) for name in states[0]}
    return np.stack([whole[name] for name in "xyR"], -1), whole["c"], np.concatenate(embeddings)


def bonuses(keys: Visits, owners: int = 1, late: int = 0) -> NDArray[np.float64]:
    """(T, N, d) → (T, N) 1/√N.

    `owners`: tables kept apart by process. `late`: the steps of a rollout, where others' visits are known only after.
    """
    T, N, size = keys.shape
    found = np.zeros((T, N))
    width = N // owners
    if not late:
        for first in range(0, N, width):
            counts = VisitCounts(size)
            part = keys[:, first : first + width]
            found[:, first : first + width] = counts.visit(part.reshape(-1, size)).reshape(part.shape[:2])
        return found**-0.5
    known = VisitCounts(size)
    for start in range(0, T, late):
        for first in range(0, N, width):
            part = keys[start : start + late, first : first + width].reshape(-1, size)
            own, before = VisitCounts(size), known.lookup(part)
            found[start : start + late, first : first + width] = (before + own.visit(part)).reshape(-1, width)
        known.visit(keys[start : start + late].reshape(-1, size))
    return found**-0.5


def by_owner_of_key(keys: Visits, owners: int) -> NDArray[np.float64]:
    """As `bonuses`, by tables that share out the keys, each of which sees its visits in the order (t, n)."""
    flat = keys.reshape(-1, keys.shape[-1])
    owner = np.array([hash(key.tobytes()) % owners for key in flat])
    found = np.zeros(len(flat))
    for one in range(owners):
        found[owner == one] = VisitCounts(keys.shape[-1]).visit(flat[owner == one])
    return found.reshape(keys.shape[:2]) ** -0.5


def frozen_rooms(game: str, embeddings: Visits, length: int) -> Visits:
    """(T, N, E) → (T, N) names by clusters that stand still within a rollout; what is far from all founds new ones."""
    rooms = RoomClusters(_clusters(game))
    names = []
    for start in range(0, len(embeddings), length):
        part = embeddings[start : start + length]
        flat = part.reshape(-1, part.shape[-1])
        found = rooms.find(flat)
        founding = RoomClusters(_clusters(game))  # in the order (t, n), among themselves
        outliers = found == NEW_ROOM
        found[outliers] = len(rooms) + founding.assign(flat[outliers])
        sums = np.concatenate([rooms._sums, np.zeros_like(founding._sums)])
        sizes = np.concatenate([rooms._sizes, np.zeros_like(founding._sizes)])
        np.add.at(sums, found, flat)  # whole numbers: the same in any order
        np.add.at(sizes, found, 1)
        rooms._sums, rooms._sizes = sums, sizes
        names.append(found.reshape(part.shape[:2]))
    return np.concatenate(names)


def apart_rooms(game: str, embeddings: Visits, owners: int) -> Visits:
    """(T, N, E) → (T, N) names by clusters that every process keeps for itself."""
    T, N, size = embeddings.shape
    names, width = np.zeros((T, N), np.int64), N // owners
    for first in range(0, N, width):
        part = embeddings[:, first : first + width]
        names[:, first : first + width] = RoomClusters(_clusters(game)).assign(part.reshape(-1, size)).reshape(T, width)
    return names


def _row(what: str, bonus: NDArray[np.float64], exact: NDArray[np.float64], **more: Any) -> dict[str, Any]:
    return {
        "what": what,
        "sum": float(bonus.sum() / exact.sum()),
        "last_quarter": float(bonus[-(len(bonus) // 4) :].sum() / exact[-(len(exact) // 4) :].sum()),
        "changed": float((np.abs(bonus - exact) > 1e-12).mean()),
        **more,
    }


def measure(envs: int, steps: int, games: Sequence[str] = GAMES) -> list[dict[str, Any]]:
    """Returns a row a relaxation and game: its summed bonus as a multiple of the exact one's."""
    rows = []
    for game in games:
        places, truth, embeddings = play(game, envs, steps)
        names = RoomClusters(_clusters(game)).assign(embeddings.reshape(-1, embeddings.shape[-1])).reshape(truth.shape)
        keys = np.concatenate([places, names[..., None]], -1)
        exact = bonuses(keys)

        def rooms(found: Visits, truth: Visits = truth, exact_rooms: Visits = names) -> dict[str, Any]:
            return {
                "clusters": len(np.unique(found)),
                "ari_truth": float(adjusted_rand_score(truth.ravel(), found.ravel())),
                "ari_exact": float(adjusted_rand_score(exact_rooms.ravel(), found.ravel())),
            }

        found = [_row("exact", exact, exact, **rooms(names))]
        for processes in PROCESSES:
            assert (by_owner_of_key(keys, processes) == exact).all()
            found.append(_row(f"counts shared out by key, {processes}", by_owner_of_key(keys, processes), exact))
            found.append(_row(f"counts kept apart, {processes}", bonuses(keys, processes), exact))
            for length in (5, 128):
                late = bonuses(keys, processes, late=length)
                found.append(_row(f"counts one rollout of {length} late, {processes}", late, exact))
            apart = apart_rooms(game, embeddings, processes)
            own = np.concatenate([places, apart[..., None]], -1)
            found.append(_row(f"clusters kept apart, {processes}", bonuses(own), exact, **rooms(apart)))
        for length in (5, 128):
            still = frozen_rooms(game, embeddings, length)
            frozen = np.concatenate([places, still[..., None]], -1)
            found.append(_row(f"clusters frozen within a rollout of {length}", bonuses(frozen), exact, **rooms(still)))
        rows += [{"game": game, "envs": envs, "steps": len(truth), **row} for row in found]
    return rows
