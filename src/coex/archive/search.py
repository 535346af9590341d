"""From a state to the next reward: bursts from saved games that follow what is known, or try something else."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coex.archive.bursts import random_actions
from coex.archive.cells import GREY, CellEncoder, Seen, same_place
from coex.archive.lessons import STACK, Lessons, Segment
from coex.config.archive import ArchiveConfig
from coex.envs.pool import GamePool, Plan, Played, Start

_FOLLOW_CHANCE, _AT_ONCE_CHANCE = 0.75, 0.3  # of a burst that could follow a guide; of one that follows without waiting
_LEAST_CUT = 4  # steps that a detour has at least
_CUT_PATIENCE = 48  # detours that could not be done without, one after the other, are enough


class State(NamedTuple):
    """Where a search begins."""

    start: Start
    frames: NDArray[np.uint8]  # (4, 84, 84) what the policy saw last
    cell: tuple[int, int, int]  # room, column, row
    look: NDArray[np.uint8]  # (196,) the picture around the player
    score: float


class Trace(NamedTuple):
    """What was played from a state until a reward, with everything to go back to."""

    actions: bytes
    frames: NDArray[np.uint8]  # (L, 84, 84) after each step
    cells: NDArray[np.int64]  # (L, 3) after each step
    prints: NDArray[np.uint8]  # (L, 196) after each step
    saves: list[bytes]  # (L,) after each step
    reward: float
    is_over: bool  # it ended the game

    def head(self, length: int, then: "Trace") -> "Trace":
        """Returns its first steps, followed by another trace."""
        join = np.concatenate
        return Trace(
            self.actions[:length] + then.actions, join([self.frames[:length], then.frames]),
            join([self.cells[:length], then.cells]), join([self.prints[:length], then.prints]),
            self.saves[:length] + then.saves, then.reward, then.is_over,
        )  # fmt: skip

    def as_segment(self, state: State) -> Segment:
        """Returns what the policy can learn from it."""
        return Segment(
            np.concatenate([state.frames, self.frames[:-1]]),
            self.actions,
            np.concatenate([np.array([state.cell]), self.cells[:-1]]),
            np.concatenate([state.look[None], self.prints[:-1]]),
            state.score,
        )

    def end_state(self, state: State) -> State:
        """Returns the state that it leads to."""
        start = Start(state.start.number, state.start.actions + self.actions, self.saves[-1])
        frames = np.concatenate([state.frames, self.frames])[-STACK:]
        room, column, row = self.cells[-1].tolist()
        return State(start, frames, (room, column, row), self.prints[-1], state.score + self.reward)


class _Spot:
    """A place that the search has been to."""

    def __init__(self, path: bytes, saved: bytes, cell: tuple[int, ...], look: NDArray[np.uint8]) -> None:
        self.path, self.saved, self.cell, self.look = path, saved, cell, look
        self.visits, self.is_safe = 1, False


class Search:
    """Looks for one more reward from a state, without losing a life, within a number of steps."""

    def __init__(self, state: State, config: ArchiveConfig, budget: int) -> None:
        self.state = state
        self.solution: bytes | None = None
        self.steps = 0
        self._config = config
        self._budget = budget
        root = _Spot(b"", state.start.saved, state.cell, state.look)
        self._spots: dict[tuple[int, ...], _Spot] = {(): root}
        self._from = root

    @property
    def is_done(self) -> bool:
        return self.solution is not None or self.steps >= self._budget

    def plan(self, slot: int, lessons: Lessons, num_actions: int, longest: int, generator: np.random.Generator) -> Plan:
        """Returns the next burst: from a rare spot, by a guide where one passes there, or at random."""
        spots = list(self._spots.values())
        weights = np.array([1 / spot.visits for spot in spots])
        spot = spots[int(generator.choice(len(spots), p=weights / weights.sum()))] if self.steps else self._from
        spot.visits += 1
        self._from = spot
        matches = self._matches(spot, lessons)
        burst = random_actions(generator, self._config.burst_steps, num_actions, self._config.keep_action)
        if matches and (not self.steps or generator.random() < _FOLLOW_CHANCE):
            segment, step = matches[int(generator.integers(len(matches)))] if self.steps else matches[-1]
            at_once = not self.steps or generator.random() < _AT_ONCE_CHANCE
            wait = 0 if at_once else int(generator.integers(1, max(self._config.max_wait, 2)))
            burst = bytes(wait) + segment.actions[step:] + burst[: self._config.burst_steps // 2]
        start = Start(self.state.start.number, self.state.start.actions + spot.path, spot.saved)
        return Plan(slot, burst[:longest], start)

    def _matches(self, spot: _Spot, lessons: Lessons) -> list[tuple[Segment, int]]:
        found = []
        for segment in lessons.guides(self.state.score):
            there = np.flatnonzero((segment.cells == spot.cell).all(axis=-1))
            same = same_place(spot.look, segment.prints[there], self._config.same_place)
            found += [(segment, step) for step in there[same].tolist()]
        return found

    def take(self, pool: GamePool, plan: Plan, played: Played, seen: Seen) -> None:
        """Takes in what became of a plan."""
        self.steps += played.steps
        path = self._from.path
        rewarded = np.flatnonzero(played.rewards[: played.kept] > 0)
        if len(rewarded) and len(path) + int(rewarded[0]) < self._config.search_length:
            self.solution = path + plan.actions[: int(rewarded[0]) + 1]
            return
        alive = min(played.playable, self._config.search_length - len(path))
        if len(rewarded):
            alive = min(alive, int(rewarded[0]))
        new: list[tuple[tuple[int, ...], int]] = []
        passed = set()
        for t in np.flatnonzero(seen.certain[: max(alive, 0)]).tolist():
            key = (*seen.cells[t].tolist(), int(seen.things[t]))
            if key in passed:
                continue
            passed.add(key)
            old, is_safe = self._spots.get(key), t + self._config.safe_steps < alive
            shorter = old is not None and is_safe and len(path) + t + 1 < len(old.path)
            if old is None or (is_safe and not old.is_safe) or shorter:
                new.append((key, t))
            else:
                old.visits += 1
        saves = pool.fetch([(plan.slot, t + 1) for _, t in new])
        for (key, t), saved in zip(new, saves, strict=True):
            old = self._spots.get(key)
            spot = _Spot(path + plan.actions[: t + 1], saved, key[:3], seen.prints[t])
            spot.visits, spot.is_safe = (old.visits if old else 0) + 1, t + self._config.safe_steps < alive
            self._spots[key] = spot


class Tracer:
    """Plays from states with the eyes of the archive, and counts every step."""

    def __init__(self, pool: GamePool, encoder: CellEncoder, config: ArchiveConfig, lessons: Lessons,
                 generator: np.random.Generator) -> None:  # fmt: skip
        self.steps = 0
        self._pool, self._encoder, self._config = pool, encoder, config
        self._lessons, self._generator = lessons, generator

    def views(self, slot: int, length: int) -> dict[str, NDArray[np.uint8]]:
        """Returns what the slot's last steps led to."""
        return {name: view[slot, 1 : length + 1] for name, view in self._pool.views.items()}

    def see(self, slot: int, played: Played, score: float) -> Seen:
        """Returns where a slot's last steps led to."""
        return self._encoder.encode(self.views(slot, len(played)), score + played.rewards.cumsum())

    def search(self, searches: list[Search]) -> None:
        """Lets searches go on, side by side, until each has found a reward or spent its steps."""
        while waiting := [search for search in searches if not search.is_done]:
            turn = waiting[: self._pool.num_slots]
            plans = [
                search.plan(slot, self._lessons, len(self._pool.action_names), self._pool.num_steps, self._generator)
                for slot, search in enumerate(turn)
            ]
            results = [
                (search, plan, played, self.see(plan.slot, played, search.state.score))
                for search, plan, played in zip(turn, plans, self._pool.play_each(plans), strict=True)
            ]
            for search, plan, played, seen in results:
                self.steps += played.steps
                search.take(self._pool, plan, played, seen)

    def trace(self, state: State, actions: bytes) -> Trace | None:
        """Plays actions from a state until the first reward; None where a life is lost before."""
        parts: list[Trace] = []
        start: Start | None = state.start
        for first in range(0, len(actions), self._pool.num_steps):
            plan = Plan(0, actions[first : first + self._pool.num_steps], start)
            start = None
            [played] = self._pool.play([plan])
            self.steps += played.steps
            rewarded = np.flatnonzero(played.rewards > 0)
            length = int(rewarded[0]) + 1 if len(rewarded) else len(played)
            if length == len(played) and played.is_lost:
                return None
            seen = self.see(0, played, state.score)
            part = self._record(plan, played, length, seen, first)
            parts.append(part)
            if len(rewarded):
                whole = parts[-1]
                for part in reversed(parts[:-1]):
                    whole = part.head(len(part.actions), whole)
                return whole
        return None

    def _record(self, plan: Plan, played: Played, length: int, seen: Seen, played_before: int = 0) -> Trace:
        saves = self._pool.fetch([(plan.slot, played_before + t + 1) for t in range(length)])
        frames = self._pool.views[GREY][plan.slot, 1 : length + 1].copy()
        reward, is_over = float(played.rewards[:length].sum()), played.is_over and length == len(played)
        return Trace(plan.actions[:length], frames, seen.cells[:length], seen.prints[:length], saves, reward, is_over)

    def shorten(self, state: State, trace: Trace, budget: int) -> Trace:
        """Takes detours out: where one place was passed twice, what was done at last is done at first."""
        tried: set[tuple[int, int, int]] = set()
        failures = 0
        while failures < _CUT_PATIENCE:
            cuts: list[tuple[int, int]] = []
            for first, last in self._detours(state, trace):
                key = (len(trace.actions), first // _LEAST_CUT, last // _LEAST_CUT)  # neighbours are as good
                length = len(trace.actions) - last
                if key not in tried and length <= budget and len(cuts) < self._pool.num_slots:
                    tried.add(key)
                    cuts.append((first, last))
                    budget -= length
            if not cuts:
                break
            better = self._try_cuts(state, trace, cuts)
            failures = 0 if better else failures + len(cuts)
            trace = better or trace
        return trace

    def _try_cuts(self, state: State, trace: Trace, cuts: list[tuple[int, int]]) -> Trace | None:
        """Returns the trace without the first of the detours that it can do without."""
        plans = [
            Plan(slot, trace.actions[last:], self._start_at(state, trace, first))
            for slot, (first, last) in enumerate(cuts)
        ]
        better = None
        for plan, (first, _), played in zip(plans, cuts, self._pool.play(plans), strict=True):
            self.steps += played.steps
            rewarded = np.flatnonzero(played.rewards[: played.kept] > 0)
            if better is None and len(rewarded):
                length = int(rewarded[0]) + 1
                record = self._record(plan, played, length, self.see(plan.slot, played, state.score))
                better = trace.head(first, record) if first else record
        return better

    def _start_at(self, state: State, trace: Trace, step: int) -> Start:
        saved = trace.saves[step - 1] if step else state.start.saved
        return Start(state.start.number, state.start.actions + trace.actions[:step], saved)

    def _detours(self, state: State, trace: Trace) -> list[tuple[int, int]]:
        """Pairs of steps (first, last) before which the same place was seen, the farthest apart first."""
        cells = np.concatenate([np.array([state.cell]), trace.cells[:-1]])
        prints = np.concatenate([state.look[None], trace.prints[:-1]])
        pairs = []
        for first in range(len(cells) - _LEAST_CUT):
            later = np.arange(max(first + _LEAST_CUT, len(cells) - self._pool.num_steps), len(cells))
            later = later[(cells[later] == cells[first]).all(axis=-1)]
            same = later[same_place(prints[first], prints[later], self._config.same_place)]
            pairs += [(first, last) for last in same.tolist()]
        return sorted(pairs, key=lambda pair: pair[0] - pair[1])
