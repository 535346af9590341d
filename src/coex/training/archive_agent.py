"""The archive as a method: exploring from saved games, then teaching a policy that plays from real starts."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from coex.archive.bursts import BurstExplorer
from coex.archive.cells import GREY, CellEncoder
from coex.archive.teacher import Teacher
from coex.config.archive import ArchiveConfig
from coex.config.run import RunConfig
from coex.envs.game import draw_start
from coex.envs.pool import GamePool
from coex.envs.views import Views
from coex.method.bonus import CoexBonus
from coex.rollouts.rollout import Episode
from coex.runs.saver import GlobalGenerators
from coex.training.diagnostics import Diagnostics, States, diagnostic_views
from coex.training.make import make_bonus, make_network

Metrics = dict[str, float]
Phase = Literal["explore", "demonstrate", "teach"]

_LONGEST_PLAN = 240  # steps: longer ones are played in parts


def make_pool(config: RunConfig) -> GamePool:
    """Returns the games that a run's archive is explored in."""
    assert isinstance(config.learner, ArchiveConfig)
    return GamePool(
        config.game,
        config.env,
        num_slots=config.num_envs,
        num_steps=max(_LONGEST_PLAN, config.learner.burst_steps),
        num_workers=config.num_workers,
        views={GREY: (84, 84), **config.views(), **diagnostic_views(config)},
        restores=config.learner.returns == "restore",
    )


class ArchiveAgent:
    """Explores for a while, then teaches; one iteration is a batch of bursts, or a round of teaching."""

    def __init__(
        self, config: RunConfig, pool: GamePool, seeds: Sequence[np.random.SeedSequence], device: torch.device
    ) -> None:
        assert isinstance(config.learner, ArchiveConfig)
        network_seed, start_seed, bonus_seed, teacher_seed = seeds
        self._generators = GlobalGenerators(int(network_seed.generate_state(1)[0]), device)
        num_actions = len(pool.action_names)
        bonus = make_bonus(config, num_actions, bonus_seed, device)
        assert isinstance(bonus, CoexBonus)
        self.bonus = bonus
        self._config, self._settings, self._pool = config, config.learner, pool
        self._diagnostics = Diagnostics(config.game, config.grid.cells)
        encoder = CellEncoder(config.game, config.learner, bonus, num_actions, self._observe)
        explorer_seed, self._starts_seed = start_seed.spawn(2)
        self._starts = np.random.default_rng(self._starts_seed)
        roots = [draw_start(config.game, config.env, self._starts) for _ in range(config.learner.num_roots)]
        self.explorer = BurstExplorer(pool, encoder, config.learner, roots, explorer_seed)
        network = make_network(config, num_actions).to(device)
        self.teacher = Teacher(network, pool, encoder, config.learner, teacher_seed)
        self._phase: Phase = "explore"
        self._rounds = 0
        self._errors: list[float] = []  # of the location, in cells, a figure for each stretch of an iteration

    @property
    def steps_done(self) -> int:
        return self.explorer.steps + self.teacher.steps

    def begin(self) -> None:
        """Does nothing: every burst says where it begins."""

    def iterate(self) -> tuple[list[Episode], Metrics]:
        """Does the next thing of its phase; returns the real games that the policy played, and metrics."""
        self._errors = []
        episodes, metrics = self._do_phase()
        return episodes, metrics | ({"adm/distance": float(np.mean(self._errors))} if self._errors else {})

    def _do_phase(self) -> tuple[list[Episode], Metrics]:
        settings, episodes, metrics = self._settings, list[Episode](), Metrics()
        match self._phase:
            case "explore":
                metrics = self.explorer.explore()
                if self.explorer.steps >= settings.explore_steps and self.explorer.best[0] > 0:
                    self._phase = "demonstrate"
            case "demonstrate":
                starts = [self._draw() for _ in range(settings.num_starts)]
                metrics = self.teacher.demonstrate(self.explorer.best[1], starts)
                self._phase = "teach"
            case "teach":
                if not self.teacher.is_done:
                    metrics = self.teacher.imitate(settings.num_updates if self._rounds else settings.first_updates)
                numbers = [self._draw() for _ in range(self._pool.num_slots)]
                episodes, played = self.teacher.play_and_repair(numbers, self.steps_done)
                metrics |= played
                self._rounds += 1
        return episodes, metrics

    def _draw(self) -> int:
        return draw_start(self._config.game, self._config.env, self._starts)

    def _observe(self, states: States, views: Views) -> None:
        figures = self._diagnostics.observe_play(states, views[GREY], views.get("ram"))
        self._errors += figures.values()

    @property
    def room_pictures(self) -> Mapping[int, NDArray[np.uint8]]:
        """A grey picture (84, 84) of each room."""
        return self._diagnostics.album.frames

    def snapshot(self) -> dict[str, Any]:
        """Returns what only a log point needs."""
        figures = self.explorer.snapshot() | self.bonus.snapshot()
        figures |= self._diagnostics.snapshot(has_clusters="rooms/clusters" in figures)
        return figures | {"teach/rounds": self._rounds, "teach/steps": self.teacher.steps}

    def state_dict(self) -> dict[str, Any]:
        return {
            "learner": self.teacher.state_dict(),
            "bonus": self.bonus.state_dict(),
            "explorer": self.explorer.state_dict(),
            "phase": self._phase,
            "rounds": self._rounds,
            "diagnostics": self._diagnostics.state_dict(),
            "starts": self._starts.bit_generator.state,
            "generators": self._generators.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> list[int]:
        """Goes on from what `state_dict` returned; no environment has to begin anew."""
        self.teacher.load_state_dict(state["learner"])
        self.bonus.load_state_dict(state["bonus"])
        self.explorer.load_state_dict(state["explorer"])
        self._phase, self._rounds = state["phase"], state["rounds"]
        self._diagnostics.load_state_dict(state["diagnostics"])
        self._starts.bit_generator.state = state["starts"]
        self._generators.load_state_dict(state["generators"])
        return []
