"""The recipes for other trainers: what the explorer is told is what the environments did, and its bonus is rewarded."""

import importlib.util
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import coex  # before torch: `coex` sets how its threads wait before it is loaded

import gymnasium  # isort: skip
import minigrid.envs
import numpy as np
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
STEPS, WEIGHT = 2048, 0.5  # two rollouts


class Short(minigrid.envs.EmptyEnv):
    """An empty room whose episodes end after eleven steps; writes down every step of all environments."""

    log: ClassVar[Counter[tuple[bytes, int, bytes]]] = Counter()  # the picture before, the action, the picture after

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(size=8, max_steps=11, agent_start_pos=None, **kwargs)

    def step(self, action: int) -> Any:
        before = self._look()
        found = super().step(action)
        self.log[before, int(action), self._look()] += 1
        return found

    def _look(self) -> bytes:
        return self.get_frame(highlight=False, tile_size=8).tobytes()


class Spy(coex.Explorer):
    """Writes down every step that it is told of."""

    log: ClassVar[Counter[tuple[bytes, int, bytes]]] = Counter()
    scores: ClassVar[list[float]] = []
    bonuses: ClassVar[list[np.ndarray]] = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, config={"adm": {"found_by": 0}}, **kwargs)
        type(self).scores, type(self).bonuses = [], []

    def begin(self, frames: Any) -> None:
        super().begin(frames)
        self._now = np.array(frames)

    def add(self, actions: Any, frames: Any, ended: Any, *, first_frames: Any, scores: Any, **kwargs: Any) -> None:
        super().add(actions, frames, ended, first_frames=first_frames, scores=scores, **kwargs)
        for before, action, after in zip(self._now, actions, frames, strict=True):
            self.log[before.tobytes(), int(action), after.tobytes()] += 1
        self.scores.extend(np.asarray(scores)[np.asarray(ended)])
        self._now = np.where(np.reshape(ended, (-1, 1, 1, 1)), first_frames, frames)

    def update(self) -> dict[str, float]:
        self.bonuses.append(self.bonus())
        return super().update()


def watch_torchrl(recipe: Any, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Returns where the sums of the rewards that returns are computed from are written to."""
    sums: list[float] = []

    class Watched(recipe.GAE):  # type: ignore[misc]
        def forward(self, rollout: Any, *args: Any, **kwargs: Any) -> Any:
            sums.append(rollout["next", "reward"].sum().item())
            return super().forward(rollout, *args, **kwargs)

    monkeypatch.setattr(recipe, "GAE", Watched)
    return sums


def watch_tianshou(recipe: Any, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    sums: list[float] = []

    class Watched(recipe.PPO):  # type: ignore[misc]
        def _preprocess_batch(self, batch: Any, buffer: Any, indices: Any) -> Any:
            sums.append(float(batch.rew.sum()))
            return super()._preprocess_batch(batch, buffer, indices)

    monkeypatch.setattr(recipe, "PPO", Watched)
    return sums


def watch_rllib(recipe: Any, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    from ray.rllib.connectors.learner import GeneralAdvantageEstimation

    sums: list[float] = []
    estimate = GeneralAdvantageEstimation.__call__

    def watched(self: Any, *, episodes: Any, **kwargs: Any) -> Any:
        sums.append(sum(float(np.sum(episode.get_rewards())) for episode in episodes))
        return estimate(self, episodes=episodes, **kwargs)

    monkeypatch.setattr(GeneralAdvantageEstimation, "__call__", watched)
    return sums


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "name", "watch"),
    [
        ("torchrl", "torchrl_with_explorer", watch_torchrl),
        ("tianshou", "tianshou_with_explorer", watch_tianshou),
        ("ray.rllib", "rllib_with_explorer", watch_rllib),
    ],
)
def test_recipe(package: str, name: str, watch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(package, reason=f"{package} is not installed, and nothing here needs it")
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    monkeypatch.setattr(coex, "Explorer", Spy)
    monkeypatch.setattr(Short, "log", Counter())
    monkeypatch.setattr(Spy, "log", Counter())
    monkeypatch.setitem(
        gymnasium.registry, "Short-v0", gymnasium.envs.registration.EnvSpec("Short-v0", Short, disable_env_checker=True)
    )
    monkeypatch.setattr(recipe, "GAME", "Short-v0")
    sums = watch(recipe, monkeypatch)
    recipe.main(["--steps", str(STEPS), "--bonus-weight", str(WEIGHT)])

    assert STEPS <= Spy.log.total() < 1.05 * STEPS  # RLlib collects a few more
    assert not Spy.log - Short.log  # each step that it was told of is one that some environment made
    assert len({action for _, action, _ in Spy.log}) == 7
    assert len(Spy.bonuses) == len(sums) == 2
    for bonus, rewarded in zip(Spy.bonuses, sums, strict=True):
        # An episode's score is its only reward, below 1: what is more is the bonus.
        assert 0 < WEIGHT * bonus.sum() <= rewarded + 1e-3 < WEIGHT * bonus.sum() + len(Spy.scores)
    rewards = sum(sums) - WEIGHT * sum(bonus.sum() for bonus in Spy.bonuses)
    assert sum(Spy.scores) == pytest.approx(rewards, abs=1e-3)
