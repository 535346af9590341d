"""Playing on from saved games in rare places, and saving what is new."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coex.archive.archive import Archive, Cell, Entry, progress_of
from coex.archive.cells import CellEncoder, Seen
from coex.archive.ways import Way, pack_ways, unpack_ways
from coex.config.archive import ArchiveConfig
from coex.envs.pool import GamePool, Plan, Played

_DOOMED_STEPS = 12  # an unproven saved game whose life ends sooner was dying
_LOOK_STEPS = 4  # after which a saved game must be seen where its cell says


def random_actions(generator: np.random.Generator, length: int, num_actions: int, keep: float) -> bytes:
    """Draws actions, each of which is the one before with the chance `keep`."""
    fresh = generator.random(length) >= keep
    last_drawn = np.maximum.accumulate(np.where(fresh, np.arange(length), 0))
    return generator.integers(num_actions, size=length).astype(np.uint8)[last_drawn].tobytes()


class BurstExplorer:
    """Explores from an archive: bursts of random play from rare cells."""

    def __init__(
        self,
        pool: GamePool,
        encoder: CellEncoder,
        config: ArchiveConfig,
        roots: list[int],
        seed: np.random.SeedSequence,
    ) -> None:
        self.archive = Archive()
        self.best: tuple[float, Way] = (0.0, Way(roots[0]))  # the highest score, and the shortest way to it
        self.steps = 0  # of exploring
        self.misplaced = 0  # saved games that were not seen where their cell said, and are gone
        self._pool = pool
        self._encoder = encoder
        self._config = config
        self._roots = roots
        self._generator = np.random.default_rng(seed)

    def explore(self) -> dict[str, float]:
        """Plays one burst in every slot; returns metrics."""
        warming = self._encoder.learns and self.steps < self._config.warmup_steps
        origins: list[tuple[Cell | None, Entry]] = []
        plans = []
        cells = iter(self._choose(warming))
        for slot in range(self._pool.num_slots):
            cell = next(cells)
            entry = self.archive.entries[cell] if cell else self._root()
            origins.append((cell, entry))
            keep = 0.0 if warming else self._config.keep_action
            actions = random_actions(self._generator, self._config.burst_steps, len(self._pool.action_names), keep)
            plans.append(Plan(slot, actions, entry.start()))
        rewards = 0.0
        learned, notes = [], []
        for plan, (cell, entry), played in zip(plans, origins, self._pool.play_each(plans), strict=True):
            self.steps += played.steps
            rewards += played.rewards.sum()
            views = {name: view[plan.slot, 1 : len(played) + 1] for name, view in self._pool.views.items()}
            scores = entry.score + played.rewards.cumsum()
            seen = self._encoder.encode(views, scores)
            if self._encoder.learns:
                learned.append((views[self._encoder.view], plan.actions))
            notes.append((cell, entry, plan, played, scores, seen))
        if not warming:  # not before: saved games are fetched from who still plays
            for note in notes:
                self._note(*note)
        metrics = self._encoder.fit(learned, self._generator) if learned else {}
        return metrics | {"archive/burst_reward": rewards / len(plans)}

    def _choose(self, warming: bool) -> list[Cell | None]:
        """A cell for every slot; None is a real start."""
        count = self._pool.num_slots
        if warming or not len(self.archive):
            return [None] * count
        at_root = self._generator.random(count) < self._config.root_share
        chosen = self.archive.choose(count, self._generator)
        return [None if root else cell for root, cell in zip(at_root.tolist(), chosen, strict=True)]

    def _root(self) -> Entry:
        number = self._roots[int(self._generator.integers(len(self._roots)))]
        return Entry(Way(number), 0.0, b"", is_safe=True)

    def _note(
        self, origin: Cell | None, entry: Entry, plan: Plan, played: Played, scores: NDArray[np.float64], seen: Seen
    ) -> None:
        """Saves what is new or better in a burst, and drops its own beginning where that proved false."""
        alive = played.playable
        if origin is not None:
            if origin in self.archive.entries:
                self.archive.entries[origin].visits += 1
            self._check_origin(origin, entry, alive, played.is_lost, seen)
        self._note_best(entry, plan, scores[: played.kept], played.rewards[: played.kept])
        wanted: list[tuple[Cell, int, bool]] = []  # cells whose game is to be saved after a step
        passed: set[Cell] = set()
        for t in np.flatnonzero(seen.certain[:alive]).tolist():
            room, column, row = seen.cells[t].tolist()
            cell = Cell(room, progress_of(scores[t]), column, row, int(seen.things[t]))
            if cell in passed:
                continue
            passed.add(cell)
            is_safe = t + self._config.safe_steps < alive
            if self._is_better(cell, float(scores[t]), entry.way.length + t + 1, is_safe):
                wanted.append((cell, t, is_safe))
            else:
                self.archive.entries[cell].visits += 1
        saves = self._pool.fetch([(plan.slot, t + 1) for _, t, _ in wanted])
        for (cell, t, is_safe), saved in zip(wanted, saves, strict=True):
            old = self.archive.entries.get(cell)
            self.archive.entries[cell] = Entry(
                entry.way.then(plan.actions[: t + 1]), float(scores[t]), saved, is_safe, (old.visits if old else 0) + 1
            )

    def _is_better(self, cell: Cell, score: float, length: int, is_safe: bool) -> bool:
        old = self.archive.entries.get(cell)
        if old is None or (is_safe and not old.is_safe):
            return True
        if is_safe < old.is_safe:
            return False
        if self._encoder.is_true or self._config.returns == "replay":  # where every step of a way is paid for
            return (score, -length) > (old.score, -old.way.length)
        # A false location with a short way must not push out a true one: there is no preference for short ways.
        as_good = score == old.score and bool(self._generator.random() < self._config.replace_chance)
        return is_safe and (score > old.score or as_good)

    def _check_origin(self, origin: Cell, entry: Entry, alive: int, is_lost: bool, seen: Seen) -> None:
        if self._encoder.is_true or self.archive.entries.get(origin) is not entry or len(self.archive) < 3:
            return
        is_doomed = is_lost and alive < _DOOMED_STEPS and not entry.is_safe
        looks = seen.cells[:_LOOK_STEPS]
        column, row = np.median(looks[:, 1:], axis=0)
        far = max(abs(column - origin.column), abs(row - origin.row)) > 1
        is_elsewhere = far or origin.room not in looks[:, 0]  # rooms have names: there is none between two of them
        if is_doomed or (alive >= _LOOK_STEPS and is_elsewhere):
            del self.archive.entries[origin]
            self.misplaced += 1

    def _note_best(self, entry: Entry, plan: Plan, scores: NDArray[np.float64], rewards: NDArray[np.float64]) -> None:
        for t in np.flatnonzero(rewards > 0).tolist():
            score, length = float(scores[t]), entry.way.length + t + 1
            if (score, -length) > (self.best[0], -self.best[1].length):
                self.best = (score, entry.way.then(plan.actions[: t + 1]))

    def snapshot(self) -> dict[str, Any]:
        """Returns the figures of a log point."""
        return {
            "archive/cells": len(self.archive),
            "archive/rooms": self.archive.rooms,
            "archive/best": self.best[0],
            "archive/best_length": self.best[1].length,
            "archive/misplaced": self.misplaced,
            "archive/explore_steps": self.steps,
        }

    def state_dict(self) -> dict[str, Any]:
        return {
            "archive": self.archive.state_dict(),
            "best_score": self.best[0],
            "best_way": pack_ways([self.best[1]]),
            "steps": self.steps,
            "misplaced": self.misplaced,
            "generator": self._generator.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.archive.load_state_dict(state["archive"])
        self.best = (state["best_score"], unpack_ways(state["best_way"])[0])
        self.steps, self.misplaced = state["steps"], state["misplaced"]
        self._generator.bit_generator.state = state["generator"]
