"""Which place is this? Cells of ψ, learned or true, and whether two pictures of a cell show the very same place."""

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from coex.config.archive import ArchiveConfig
from coex.config.bonuses import CoexConfig
from coex.envs import ram
from coex.method.bonus import CoexBonus
from coex.rollouts.rollout import Transitions

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Views = dict[str, NDArray[np.uint8]]

GREY = "grey84"  # the policy's newest picture
_WINDOW = 28  # pixels of it around the player: three cells of the paper's grid
_CHUNK_STEPS, _CHUNKS = 16, 8  # of a gradient step of the attentive dynamics model


class Seen(NamedTuple):
    """Where some steps led to."""

    cells: Ints  # (L, 3) room, column, row
    certain: Bools  # (L,) whether the player is known to be there
    prints: NDArray[np.uint8]  # (L, 196) the picture around the player
    things: Ints  # (L,) a name for the picture away from the player; 0 where it does not matter


class CellEncoder:
    """Locates the player in what was played: by the attentive dynamics model and the clusters, or by RAM."""

    def __init__(
        self,
        game: str,
        config: ArchiveConfig,
        bonus: CoexBonus,
        num_actions: int,
        observe: Callable[[dict[str, Ints], Views], None] = lambda states, views: None,
    ) -> None:
        """`observe` is told the (L,) parts of ψ that were counted, and the pictures."""
        self._game = game
        self._observe = observe
        self._config = config
        self._bonus = bonus
        self._num_actions = num_actions
        settings: CoexConfig = bonus.config
        self.is_true = settings.locator == "ram"
        self.views = settings.views(game)
        self.view = settings.adm.view  # that the model looks at, if there is one

    def encode(self, views: Views, scores: NDArray[np.float64]) -> Seen:
        """Returns where the pictures (L, …) of one life show the player, and counts ψ as the paper does."""
        with torch.no_grad():
            self._bonus.forget_episodes()
            counted = self._bonus.reward(_as_transitions({name: views[name] for name in self.views}, scores)).states
        states = {letter: part[:, 0] for letter, part in counted.items()}
        self._observe(states, views)
        rooms = states.get("c", np.zeros(len(scores), np.int64))
        if self.is_true:
            memory, size = views["ram"], self._config.cell_pixels
            box = ram.player_box(self._game, memory)  # (L, 4)
            cells = np.stack([rooms, box[:, 0] // size, box[:, 1] // size], axis=-1)
            centres = (box[:, :2] + box[:, 2:] // 2) * (84 / ram.SCREEN_WIDTH, 84 / ram.SCREEN_HEIGHT)
            return self._look(cells, ram.player_visible(self._game, memory), views[GREY], centres)
        cells = np.stack([rooms, states["x"], states["y"]], axis=-1)
        centres = (cells[:, 1:] + 0.5) * (84 / self._bonus.config.adm.grid)
        seen = self._look(cells, np.ones(len(cells), bool), views[GREY], centres)
        # Where the player is seen elsewhere than it is, what is seen away from it changes as it moves.
        told = np.concatenate([cells, seen.things[:, None]], axis=-1)
        for back in range(1, self._config.agree_steps):
            seen.certain[back:] &= (told[back:] == told[:-back]).all(axis=-1)
            seen.certain[:back] = False
        return seen

    def _look(self, cells: Ints, certain: Bools, frames: NDArray[np.uint8], centres: NDArray[Any]) -> Seen:
        lefts, tops = (np.clip(np.round(centre).astype(int) - _WINDOW // 2, 0, 84 - _WINDOW) for centre in centres.T)
        things = _name_rests(frames, lefts, tops) if self._config.tell_things else np.zeros(len(cells), np.int64)
        return Seen(cells, certain, _prints(frames, lefts, tops), things)

    @property
    def learns(self) -> bool:
        return self._bonus.encoder.locator is not None

    def fit(self, played: list[tuple[NDArray[np.uint8], bytes]], generator: np.random.Generator) -> dict[str, float]:
        """Fits the attentive dynamics model to (L, 160, 160, 3) pictures and the actions that led to them."""
        locator = self._bonus.encoder.locator
        assert locator is not None
        chunks = [
            (frames, actions, first)
            for frames, actions in played
            for first in range(0, len(frames) - _CHUNK_STEPS, _CHUNK_STEPS)
        ]
        metrics: dict[str, float] = {}
        for _ in range(self._config.fit_epochs):
            order = generator.permutation(len(chunks))
            for some in np.split(order, range(_CHUNKS, len(order), _CHUNKS)):
                if len(some):
                    metrics = locator.fit(_stack_chunks(self.view, [chunks[i] for i in some], self._num_actions), None)
        return metrics


def same_place(one: NDArray[np.uint8], others: NDArray[np.uint8], most: float) -> Bools:
    """(M,) whether (196,) and (M, 196) prints, taken in one cell, differ by at most so many shades on average."""
    return np.asarray(np.abs(others.astype(np.int16) - one.astype(np.int16)).mean(axis=-1) <= most)


def _name_rests(frames: NDArray[np.uint8], lefts: Ints, tops: Ints) -> Ints:
    """(L, 84, 84) grey pictures → (L,) names of what they show outside the windows at (L,) places."""
    rests = frames.copy()
    for rest, left, top in zip(rests, lefts.tolist(), tops.tolist(), strict=True):
        rest[top : top + _WINDOW, left : left + _WINDOW] = 0
    return np.array([zlib.crc32(rest) for rest in rests], np.int64)


def _prints(frames: NDArray[np.uint8], lefts: Ints, tops: Ints) -> NDArray[np.uint8]:
    """(L, 84, 84) grey pictures → (L, 196) their windows at (L,) places, at half their size."""
    windows = np.stack([
        frame[top : top + _WINDOW, left : left + _WINDOW]
        for frame, top, left in zip(frames, tops.tolist(), lefts.tolist(), strict=True)
    ]) if len(frames) else np.zeros((0, _WINDOW, _WINDOW), np.uint8)  # fmt: skip
    half = _WINDOW // 2
    pooled = windows.reshape(-1, half, 2, half, 2).astype(np.uint16).sum(axis=(2, 4)) // 4
    return pooled.astype(np.uint8).reshape(-1, half * half)


def _as_transitions(views: Views, scores: NDArray[np.float64]) -> Transitions:
    """Steps of one environment that led to these pictures; the first is taken to have led from itself."""
    frames = {name: torch.from_numpy(np.concatenate([view[:1], view]))[:, None] for name, view in views.items()}
    length = len(scores)
    return Transitions(
        views=frames,
        actions=torch.zeros((length, 1), dtype=torch.int64),
        log_probs=torch.zeros((length, 1)),
        scores=torch.from_numpy(scores)[:, None],
        final_index=torch.zeros((0, 2), dtype=torch.int64),
        final_views={name: frame[0, :0] for name, frame in frames.items()},
    )


def _stack_chunks(view: str, chunks: list[tuple[NDArray[np.uint8], bytes, int]], num_actions: int) -> Transitions:
    """(16, C) transitions; the action at t led from picture t − 1 of what was played to picture t."""
    frames = np.stack([frames[first : first + _CHUNK_STEPS + 1] for frames, _, first in chunks], axis=1)
    actions = [list(actions[first + 1 : first + _CHUNK_STEPS + 1]) for _, actions, first in chunks]
    shape = (_CHUNK_STEPS, len(chunks))
    return Transitions(
        views={view: torch.from_numpy(frames)},
        actions=torch.tensor(actions, dtype=torch.int64).T.contiguous(),
        # The actions were drawn at random, whatever the picture: they are all alike to the model.
        log_probs=torch.full(shape, -float(np.log(num_actions))),
        scores=torch.zeros(shape, dtype=torch.float64),
        final_index=torch.zeros((0, 2), dtype=torch.int64),
        final_views={view: torch.from_numpy(frames[0, :0])},
    )
