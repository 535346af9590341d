"""The process that runs some of the environments and writes what they show into shared memory."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coex.envs.game import Game, make_game
from coex.envs.game_config import GameConfig
from coex.envs.views import Views

STAY = -1  # in the place of an action: the environment takes no step, and still shows what it showed


@dataclass(frozen=True)
class Assignment:
    """The environments `first` … `first + len(seeds) - 1` of the vector."""

    game: str
    config: GameConfig
    first: int
    seeds: list[np.random.SeedSequence]


@dataclass
class SharedArrays:
    """What workers and the main process share; everything is indexed by environment first."""

    actions: np.ndarray  # (N,) int64
    rewards: np.ndarray  # (N,) float64
    terminated: np.ndarray  # (N,) bool
    truncated: np.ndarray  # (N,) bool
    views: dict[str, np.ndarray]  # (N, …) what the agent sees now
    final_views: dict[str, np.ndarray]  # (N, …) the true last picture of an episode that has just ended


class Worker:
    """Steps its environments in turn; an episode that ends is followed at once by the next."""

    def __init__(self, assignment: Assignment, arrays: SharedArrays) -> None:
        self._arrays = arrays
        self._first = assignment.first
        self._games: list[tuple[int, Game, Views, Views]] = []
        self._assignment = assignment
        for index, seed in enumerate(assignment.seeds, start=assignment.first):
            game = make_game(assignment.game, assignment.config, seed)
            now = {name: view[index] for name, view in arrays.views.items()}
            final = {name: view[index] for name, view in arrays.final_views.items()}
            self._games.append((index, game, now, final))
        self.action_names = self._games[0][1].action_names

    def answer(self, request: str, payload: Any, members: slice) -> Any:
        """Does what is asked: `step` of some of its environments, all else of all of them."""
        match request:
            case "step":
                return self._step(members)
            case "reset":
                return self._reset()
            case "seed":
                return self._reseed(payload)
            case "state":
                return self._state_dict()
            case "load":
                return self._load_state_dict(payload)
        raise ValueError(request)

    def _reset(self) -> None:
        for _, game, now, _ in self._games:
            game.reset()
            game.paint(now, fresh=True)

    def _reseed(self, seeds: list[np.random.SeedSequence | None]) -> None:
        """Makes the environments anew with these seeds, where there is one."""
        for place, seed in enumerate(seeds):
            if seed is not None:
                index, game, now, final = self._games[place]
                game.close()
                game = make_game(self._assignment.game, self._assignment.config, seed)
                self._games[place] = (index, game, now, final)

    def _step(self, members: slice) -> None:
        arrays = self._arrays
        for index, game, now, final in self._games[members.start - self._first : members.stop - self._first]:
            if arrays.actions[index] == STAY:
                arrays.rewards[index], arrays.terminated[index], arrays.truncated[index] = 0.0, False, False
                continue
            reward, terminated, truncated = game.step(int(arrays.actions[index]))
            arrays.rewards[index] = reward
            arrays.terminated[index] = terminated
            arrays.truncated[index] = truncated
            game.paint(now, fresh=False)
            if terminated or truncated:
                for name, view in now.items():
                    final[name][...] = view
                game.reset()
                game.paint(now, fresh=True)

    def _state_dict(self) -> list[dict[str, Any]]:
        return [game.state_dict() for _, game, _, _ in self._games]

    def _load_state_dict(self, states: list[dict[str, Any]]) -> list[bool]:
        """Restores every environment; those that could not be restored exactly begin a new episode."""
        exact = []
        for (_, game, now, _), state in zip(self._games, states, strict=True):
            exact.append(game.load_state_dict(state))
            if not exact[-1]:
                game.paint(now, fresh=True)
        return exact

    def close(self) -> None:
        for _, game, _, _ in self._games:
            game.close()
