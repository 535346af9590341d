"""Teaching a policy by its own search: imitate, play real games, search from where they failed, imitate."""

from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from coex.archive.cells import GREY, CellEncoder
from coex.archive.games import SAVE_EVERY, RealGame, step_before
from coex.archive.lessons import STACK, Lessons
from coex.archive.search import Search, State, Tracer
from coex.archive.ways import Way
from coex.config.archive import ArchiveConfig
from coex.core.optim import guarded_step
from coex.envs.pool import GamePool, Plan, Start
from coex.errors import CoexError
from coex.learners.loss import health
from coex.learners.networks import ActorCritic, SamplingPolicy
from coex.rollouts.rollout import Episode

_CHUNK = 32  # steps of a game between two looks at where it has come to
_LEAST_BACK, _SECOND_BACK = 8, 110  # steps before a failure that a search begins at, and its second try
_VALUE_WEIGHT = 0.5


class Teacher:
    """Owns the policy and what it imitates."""

    def __init__(
        self, network: ActorCritic, pool: GamePool, encoder: CellEncoder, config: ArchiveConfig,
        seed: np.random.SeedSequence,
    ) -> None:  # fmt: skip
        self.network = network
        self.lessons = Lessons(config.memory)
        self.generator = np.random.default_rng(seed)
        self.tracer = Tracer(pool, encoder, config, self.lessons, self.generator)
        self._pool, self._encoder, self._config = pool, encoder, config
        self.is_done = False  # the last real games failed nowhere
        self._parameters = list(network.parameters())
        self._optimizer = torch.optim.Adam(self._parameters, config.learning_rate, eps=config.adam_epsilon, fused=True)

    @property
    def steps(self) -> int:
        """All steps of emulators that teaching took."""
        return self.tracer.steps

    def demonstrate(self, best: Way, starts: list[int]) -> dict[str, float]:
        """Learns the stretches of the best way, and finds them again from other real starts; returns metrics.

        Raises CoexError where the best way, played once more, brings no reward.
        """
        state, actions, levels = self.real_start(best.number), best.path(), 0
        while trace := self.tracer.trace(state, actions):
            following, actions = trace.end_state(state), actions[len(trace.actions) :]
            budget = self._config.shorten_steps * len(trace.actions) // best.length
            self.lessons.add(self.tracer.shorten(state, trace, budget).as_segment(state))
            state, levels = following, levels + 1
        if not levels:
            raise CoexError(
                "the best way brings nothing when it is played once more: this world does not repeat itself"
            )
        chains = [self.real_start(number) for number in starts]
        found, end = 0, self.steps + self._config.demonstrate_steps
        for _ in range(levels):
            if not chains or self.steps >= end:
                break
            budget = min(self._config.search_steps * 2, (end - self.steps) // len(chains))
            chains = self._find_next(chains, budget)
            found += len(chains)
        return {"teach/levels": levels, "teach/demonstrated": found / max(len(starts) * levels, 1)}

    def real_start(self, number: int) -> State:
        """Returns the state of a real start."""
        start = Start(number)
        self._pool.play([Plan(0, b"", start)])
        views = {name: view[0, :1].copy() for name, view in self._pool.views.items()}
        seen = self._encoder.encode(views, np.zeros(1))
        frames = np.concatenate([np.zeros((STACK - 1, 84, 84), np.uint8), views[GREY]])
        room, column, row = seen.cells[0].tolist()
        return State(start, frames, (room, column, row), seen.prints[0], 0.0)

    def _find_next(self, states: list[State], budget: int) -> list[State]:
        """Searches for one more reward from each state, learns the ways, and returns the states they lead to."""
        searches = [Search(state, self._config, budget) for state in states]
        self.tracer.search(searches)
        reached = []
        for search in searches:
            trace = self.tracer.trace(search.state, search.solution) if search.solution else None
            if trace is not None:
                trace = self.tracer.shorten(search.state, trace, self._config.cut_steps)
                self.lessons.add(trace.as_segment(search.state))
                if not trace.is_over:
                    reached.append(trace.end_state(search.state))
        return reached

    def imitate(self, updates: int) -> dict[str, float]:
        """Takes gradient steps on the lessons' actions; the value learns how soon the reward comes."""
        config = self._config
        frames = np.concatenate([segment.frames[STACK - 1 :: 8] for segment in self.lessons.segments])
        self.network.update_mean_frame(torch.from_numpy(frames)[None, ..., None])
        figures: list[dict[str, float]] = []
        for update in range(updates):
            for group in self._optimizer.param_groups:
                group["lr"] = config.learning_rate * min(1.0, 3 * (1 - update / updates))
            observations, actions, values = self.lessons.batch(config.batch_size, config.gamma, self.generator)
            features = self.network.features(observations.to(self.network.device))
            logits = self.network.policy(features)
            # The value looks on: its error does not shape what the policy sees.
            errors = self.network.value(features.detach())[:, 0] - values.to(logits.device)
            loss = F.cross_entropy(logits, actions.to(logits.device)) + _VALUE_WEIGHT * errors.square().mean()
            norm = guarded_step(self._optimizer, loss, self._parameters, config.max_grad_norm)
            if update >= updates - 50:
                right = (logits.argmax(-1).cpu() == actions).float().mean().item()
                signs = {name: value.item() for name, value in health(features.detach(), logits.detach()).items()}
                figures.append(signs | {"teach/loss": loss.item(), "teach/accuracy": right, "grad_norm": norm})
        means = {name: float(np.mean([figure[name] for figure in figures])) for name in figures[0]} if figures else {}
        return means | {"teach/transitions": float(len(self.lessons))}

    def play_and_repair(self, numbers: list[int], step: int) -> tuple[list[Episode], dict[str, float]]:
        """Plays real games, keeps their good stretches, and searches from where they failed."""
        before = self.steps
        games = self._play(numbers)
        episodes = [
            Episode(slot, step + self.steps - before, float(sum(game.rewards)), len(game.actions), False)
            for slot, game in enumerate(games)
        ]
        played = self.steps - before
        picks = [(slot, failure) for slot, game in enumerate(games) for failure in self._pick(game.failures)]
        first = [self._before(games[slot], slot, failure, self._back()) for slot, failure in picks]
        second = [self._before(games[slot], slot, failure, _SECOND_BACK) for slot, failure in picks]
        for game in games:
            for segment in game.stretches(self._config.own_steps):
                self.lessons.add(segment)
        searches = [Search(state, self._config, self._config.search_steps) for state in first]
        self.tracer.search(searches)
        again = [
            Search(state, self._config, self._config.search_steps)
            for state, search in zip(second, searches, strict=True)
            if search.solution is None
        ]
        self.tracer.search(again)
        found = 0
        for search in [*searches, *again]:
            trace = self.tracer.trace(search.state, search.solution) if search.solution else None
            if trace is not None:
                trace = self.tracer.shorten(search.state, trace, self._config.cut_steps)
                self.lessons.add(trace.as_segment(search.state))
                found += 1
        self.is_done = not any(game.failures for game in games)
        metrics = {"teach/play_steps": float(played), "teach/search_steps": float(self.steps - before - played)}
        return episodes, metrics | {"teach/repaired": found / max(len(picks), 1)}

    def _back(self) -> int:
        return int(self.generator.integers(_LEAST_BACK, max(self._config.repair_back, _LEAST_BACK + 1)))

    def _pick(self, failures: list[tuple[int, int]]) -> list[tuple[int, int]]:
        order = self.generator.permutation(len(failures))[: self._config.repairs_per_game]
        return [failures[i] for i in order.tolist()]

    def _before(self, game: RealGame, slot: int, failure: tuple[int, int], back: int) -> State:
        """Returns the state some steps before a failure, but not before its life began."""
        step = step_before(failure, back)
        [saved] = self._pool.fetch([(slot, step)]) if step else [b""]
        cell, look = game.seen[step]
        room, column, row = cell.tolist()
        return State(
            Start(game.number, bytes(game.actions[:step]), saved),
            np.stack(game.frames[step : step + STACK]),
            (room, column, row),
            look,
            float(game.scores()[step]),
        )

    @torch.no_grad()
    def _play(self, numbers: list[int]) -> list[RealGame]:
        """Plays a real game in each slot, until it is over, stuck or too long."""
        policy = SamplingPolicy(self.network)
        states = [self.real_start(number) for number in numbers]
        games = [
            RealGame(state.start.number, list(state.frames), [(np.array(state.cell), state.look)]) for state in states
        ]
        self._pool.play([Plan(slot, b"", Start(number)) for slot, number in enumerate(numbers)])
        while active := [slot for slot, game in enumerate(games) if not game.is_over]:
            for _ in range(_CHUNK):
                active = [slot for slot in active if not games[slot].is_over]
                if active:
                    self._step(games, active, policy)
            for game in games:
                self._look(game)
        return games

    def _step(self, games: list[RealGame], active: list[int], policy: SamplingPolicy) -> None:
        observations = np.stack([np.stack(games[slot].frames[-STACK:], axis=-1) for slot in active])
        draws = torch.from_numpy(self.generator.random(len(active))).float()
        actions, _, _ = policy.act(torch.from_numpy(observations).to(self.network.device), draws)
        plans = [
            Plan(slot, bytes([action]), save_every=SAVE_EVERY)
            for slot, action in zip(active, actions.tolist(), strict=True)
        ]
        for plan, played in zip(plans, self._pool.play(plans), strict=True):
            self.tracer.steps += played.steps
            game, views = games[plan.slot], self.tracer.views(plan.slot, 1)
            game.actions += plan.actions
            game.rewards.append(float(played.rewards[0]))
            game.frames.append(views[GREY][0].copy())
            game.views.append({name: view[0].copy() for name, view in views.items()})
            if played.is_lost:
                game.lose()
            game.is_over = played.is_over or len(game.actions) >= self._config.max_game_steps

    def _look(self, game: RealGame) -> None:
        """Finds out where a game has come to since the last look, and whether it is stuck."""
        if not game.views:
            return
        views = {name: np.stack([view[name] for view in game.views]) for name in game.views[0]}
        first, scores = len(game.actions) - len(game.views), game.scores()
        seen = self._encoder.encode(views, scores[first + 1 :])
        game.views = []
        for t, (cell, look) in enumerate(zip(seen.cells, seen.prints, strict=True), start=first):
            game.seen.append((cell, look))
            place = tuple(cell.tolist())
            if game.rewards[t] > 0 or t == game.life_from:
                game.places.clear()
            if place not in game.places:
                game.places.add(place)
                game.new_at = t
        now = len(game.actions)
        if not game.is_over and now - max(game.new_at, game.life_from) >= self._config.stuck_steps:
            game.failures.append((game.life_from, min(game.new_at + 20, now - 1)))
            game.is_over = True

    def state_dict(self) -> dict[str, Any]:
        return {
            "network": self.network.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "lessons": self.lessons.state_dict(),
            "steps": self.tracer.steps,
            "is_done": self.is_done,
            "generator": self.generator.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        self.lessons.load_state_dict(state["lessons"])
        self.tracer.steps, self.is_done = state["steps"], state["is_done"]
        self.generator.bit_generator.state = state["generator"]
