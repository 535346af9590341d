"""A bonus without our trainer: what another one saw and did goes in step by step, a bonus for each comes out."""

import dataclasses
import json
import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from coex.bonuses import Bonus, BonusContext, Rewarded
from coex.config.presets import bonus_config, load_bonus_class
from coex.core.numbers import column, whole
from coex.core.threads import one_thread
from coex.envs.views import STACK, Frame, Pictures, Shape, check_view, paint_pictures
from coex.errors import UsageError
from coex.learners.batch import LargestReward
from coex.rollouts.rollout import Transitions
from coex.runs.checkpoints import manifest
from coex.runs.checkpoints.store import read_checkpoint, write_checkpoint
from coex.runs.checkpoints.tree import take_snapshot

_FIRST_CAPACITY = 8  # steps; buffers double when a rollout is longer


class _Step(NamedTuple):
    """One step of all environments, without its pictures."""

    actions: NDArray[np.int64]  # (N,)
    log_probs: NDArray[np.float32] | None  # (N,)
    scores: NDArray[np.float64]  # (N,)
    valid: NDArray[np.bool_]  # (N,)


class Explorer:
    """A bonus for what N environments reach, whoever steps them.

    `begin` once, then for every rollout: `add` each step, ask for the `bonus`, give it to your learner, `update`.
    """

    def __init__(
        self,
        num_actions: int,
        num_envs: int,
        bonus: str = "coex",
        config: Any = None,
        *,
        game: str = "",
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        """Makes the bonus of that name (as in `coex methods`, or `module:Class`).

        `config` holds its settings: its dataclass, or nested ones by name, such as `{"adm": {"found_by": 0}}`.
        `game` is for a bonus that looks at a known game's RAM.
        Raises UsageError for a name or a setting that is not there.
        """
        from coex.training.loop import pick_device  # with all that a run takes: not when this module is imported

        self.num_actions = num_actions = whole("num_actions", num_actions, least=1)
        self.num_envs = num_envs = whole("num_envs", num_envs, least=1)
        seed = whole("seed", seed, least=0)
        self.config = config = bonus_config(bonus, game, config)
        self._made_with = {"bonus": bonus, "game": game, "seed": seed, "num_actions": num_actions, "num_envs": num_envs}
        context = BonusContext(game, num_actions, np.random.SeedSequence(seed), pick_device(device))
        with torch.random.fork_rng(devices=[]):  # the same weights whatever was drawn before, and nobody's draws moved
            torch.manual_seed(seed)
            self.method: Bonus = load_bonus_class(bonus)(config, context)
        find = getattr(config, "views", None)
        self.views: dict[str, Shape] = dict(find(game)) if find else {}
        for name, shape in self.views.items():
            check_view(name, shape)
        self.steps_done = 0  # of all environments, in the rollouts that `update` has seen
        self._rows = {
            name: np.zeros((_FIRST_CAPACITY + 1, num_envs, *shape), np.uint8) for name, shape in self.views.items()
        }
        self._steps: list[_Step] = []
        self._finals: list[tuple[int, int, dict[str, Frame]]] = []  # (t, n) of each episode's end, its last pictures
        self._scores = np.zeros(num_envs)  # of the episodes so far
        self._over = np.zeros(num_envs, bool)  # episodes that ended and whose next one has not shown itself
        self._begun = False
        self._rewarded: tuple[Transitions, Rewarded] | None = None
        self._largest = LargestReward()

    @property
    def ready(self) -> bool:
        """Whether the bonuses can be trusted: before, `coex train` rewards nobody with them."""
        return self.method.ready

    def begin(self, frames: Pictures) -> None:
        """Begins new episodes everywhere, which show `frames`; a rollout that was not finished is dropped."""
        self._steps, self._finals, self._rewarded = [], [], None
        self._paint(0, frames, np.ones(self.num_envs, bool), range(self.num_envs))
        self._scores[...] = 0.0
        self._over[...] = False
        self.method.forget_episodes()
        self._begun = True

    def add(
        self,
        actions: ArrayLike,
        frames: Pictures,
        ended: ArrayLike,
        *,
        rewards: ArrayLike | None = None,
        scores: ArrayLike | None = None,
        first_frames: Pictures | None = None,
        log_probs: ArrayLike | None = None,
        valid: ArrayLike | None = None,
    ) -> None:
        """Adds one step of all environments; everything is (N,) or, pictures, (N, …).

        `frames` is what the actions led to, the last picture of an episode included; where `ended`, `first_frames`
        shows the next episode's first picture (other rows of it are not looked at). Say either the `rewards` as the
        game gives them, neither clipped nor normalised, or the `scores` that they have added up to.

        `log_probs` are those of the actions: without them, all actions count as equally likely. `valid` is False where
        no action led to `frames`, as in Gymnasium's NEXT_STEP autoreset, where such a row shows the next episode's
        first picture and `first_frames` is not needed. Raises UsageError for what does not fit.
        """
        if not self._begun:
            raise UsageError("begin() comes before the first add(): the explorer has not seen where the episodes begin")
        if self._rewarded is not None:
            raise UsageError("update() comes between bonus() and the next rollout's add()")
        t, count = len(self._steps), self.num_envs
        is_valid = np.ones(count, bool) if valid is None else column("valid", valid, count, np.bool_)
        has_ended = column("ended", ended, count, np.bool_) & is_valid
        if not is_valid.all() and not self.method.skips_invalid:
            raise UsageError("this bonus cannot leave steps out: use SAME_STEP autoreset instead of NEXT_STEP")
        if (self._over & is_valid).any() or (~self._over & ~is_valid).any():
            raise UsageError(
                "first_frames are needed where an episode ended, or, as the next step, one that is not valid"
            )
        if (scores is None) == (rewards is None):
            raise UsageError("add() takes either rewards or scores")
        if scores is not None:
            totals = column("scores", scores, count, np.float64)
        else:
            totals = self._scores + column("rewards", rewards, count, np.float64) * is_valid
        chosen = column("actions", actions, count, np.int64)
        if (is_valid & ((chosen < 0) | (chosen >= self.num_actions))).any():
            raise UsageError(f"actions are whole numbers from 0 to {self.num_actions - 1}")
        chances = None if log_probs is None else column("log_probs", log_probs, count, np.float32)
        self._reserve(t + 1)
        for name, rows in self._rows.items():
            if self.views[name][2:] == (STACK,):
                rows[t + 1] = rows[t]  # frames are pushed onto it
        # Where a row is not valid, nothing happened, and then the next episode began.
        finals = [(t, n, self._shown(t, n)) for n in np.flatnonzero(~is_valid).tolist()]
        self._paint(t + 1, frames, ~is_valid, range(count))
        if first_frames is not None:
            over = np.flatnonzero(has_ended).tolist()
            finals += [(t, n, self._shown(t + 1, n)) for n in over]
            self._paint(t + 1, first_frames, np.ones(count, bool), over)
        # Only now that nothing can be refused any more: whoever corrects a step and adds it again has lost nothing.
        self._finals += finals
        self._steps.append(_Step(np.where(is_valid, chosen, 0), chances, totals, is_valid))
        self._over = has_ended & (first_frames is None)
        self._scores = np.where(has_ended, 0.0, totals)

    def bonus(self) -> NDArray[np.float32]:
        """Returns (T, N) the bonus of each step since the last `update`, without any weight; counts them once."""
        if self._rewarded is None:
            if not self._steps:
                raise UsageError("there is nothing to reward: add() the rollout's steps first")
            rollout = self._rollout()
            with one_thread():
                self._rewarded = rollout, self.method.reward(rollout)
        bonus = self._rewarded[1].bonus.cpu().numpy().astype(np.float32)
        return bonus * np.stack([step.valid for step in self._steps])

    def reward_unit(self, rewards: ArrayLike) -> float:
        """Takes in rewards as your learner sees them; returns the size of the largest ever, 1 until there is any.

        A bonus weighed in this unit counts as much beside rewards of 0.01 as beside rewards of 1,000.
        """
        flat = np.append(0.0, np.asarray(rewards))
        return self._largest.update(torch.from_numpy(column("rewards", flat, flat.size, np.float64)))

    def states(self) -> dict[str, NDArray[np.int64]]:
        """Returns (T, N) each what the rollout's `bonus` counted: x, y, c, R of the paper's method."""
        self.bonus()
        assert self._rewarded is not None
        return dict(self._rewarded[1].states)

    def update(self) -> dict[str, float]:
        """Fits the bonus's networks on the rollout, forgets it, and returns metrics."""
        bonus = self.bonus()
        assert self._rewarded is not None
        with one_thread():
            metrics = self.method.update(*self._rewarded)
        for rows in self._rows.values():
            rows[0] = rows[len(self._steps)]
        self.steps_done += sum(int(step.valid.sum()) for step in self._steps)
        self._steps, self._finals, self._rewarded = [], [], None
        return {"bonus/mean": float(bonus.mean()), **metrics, **self.method.snapshot()}

    def locate(self, frames: Pictures) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Returns (M, 2) the cells (x, y) that the agents are in and (M, 9, 9) the attention; nothing is counted.

        Each picture is looked at by itself: attention is not smoothed over time.
        """
        shown = next(iter(frames.values()), ()) if isinstance(frames, Mapping) else frames
        size = (np.shape(shown) or (0,))[0]
        views = {name: np.zeros((size, *shape), np.uint8) for name, shape in self.views.items()}
        paint_pictures(views, frames, np.ones(size, bool), range(size))
        with one_thread():
            found = self.method.attend({name: torch.from_numpy(view) for name, view in views.items()})
        if found is None:
            raise UsageError(f"the bonus {self._made_with['bonus']} looks at no place in particular")
        attention = found.float().cpu().numpy()
        cells = attention.reshape(size, math.prod(attention.shape[1:])).argmax(-1)
        return np.stack([cells % attention.shape[2], cells // attention.shape[2]], -1), attention

    def save(self, path: str | Path) -> None:
        """Writes the explorer as a directory of files that cannot run code, in the place of one that is there.

        Steps of a rollout that `update` has not seen are left out: whoever loads it then must `begin`.
        """
        place = _finish_saving(Path(path))
        if place.exists() and not (place / manifest.NAME).is_file():
            raise UsageError(f"{place} is something else: name another directory for the explorer")
        state: dict[str, Any] = {"method": self.method.state_dict(), "steps_done": self.steps_done}
        state["largest_reward"] = self._largest.size
        if self._begun and not self._steps:
            now = {name: rows[0] for name, rows in self._rows.items()}
            state |= {"now": now, "scores": self._scores, "over": self._over}
        config = {**self._made_with, "config": dataclasses.asdict(self.config)}
        place.parent.mkdir(parents=True, exist_ok=True)
        written, old = place.with_name(f".new-{place.name}"), place.with_name(f".old-{place.name}")
        for rest in (written, old):
            if rest.exists():
                shutil.rmtree(rest)
        write_checkpoint(written, 0, config, {}, take_snapshot(state), scratch_name=f".tmp-{place.name}")
        if place.exists():
            place.rename(old)
        written.rename(place)
        if old.exists():
            shutil.rmtree(old)

    @classmethod
    def load(cls, path: str | Path, device: str = "cpu") -> "Explorer":
        """Reads what `save` wrote. If the environments have begun new episodes since, `begin` with what they show.

        Raises UsageError where there is no explorer, and CoexError where a file has changed.
        """
        place = _finish_saving(Path(path))
        if not (place / manifest.NAME).is_file():
            raise UsageError(f"{path}: there is no explorer here")
        saved = read_checkpoint(place, 0)
        settings = json.loads(json.dumps(saved.manifest.config))
        if "num_envs" not in settings or "bonus" not in settings:
            raise UsageError(f"{path} is something else: there is no explorer here")
        explorer = cls(
            settings["num_actions"], settings["num_envs"], settings["bonus"], settings["config"],
            game=settings["game"], seed=settings["seed"], device=device,
        )  # fmt: skip
        explorer.method.load_state_dict(saved.state["method"])
        explorer.steps_done = saved.state["steps_done"]
        explorer._largest.size = saved.state.get("largest_reward", 0.0)  # older ones have none
        if "now" in saved.state:
            for name, rows in explorer._rows.items():
                rows[0] = saved.state["now"][name]
            explorer._scores[...], explorer._over[...] = saved.state["scores"], saved.state["over"]
            explorer._begun = True
        return explorer

    def _shown(self, t: int, n: int) -> dict[str, Frame]:
        return {name: rows[t, n].copy() for name, rows in self._rows.items()}

    def _reserve(self, t: int) -> None:
        """Sees to it that row t is there."""
        for name, rows in self._rows.items():
            if t >= len(rows):
                self._rows[name] = np.concatenate([rows, np.zeros_like(rows)])

    def _paint(self, t: int, pictures: Pictures, fresh: NDArray[np.bool_], envs: Sequence[int]) -> None:
        paint_pictures({name: rows[t] for name, rows in self._rows.items()}, pictures, fresh, envs)

    def _rollout(self) -> Transitions:
        steps, shape = self._steps, (len(self._steps), self.num_envs)
        chances = [step.log_probs for step in steps if step.log_probs is not None]
        if chances and len(chances) < len(steps):
            raise UsageError("log_probs must be given at every step of a rollout, or at none")
        valid = np.stack([step.valid for step in steps])
        finals = sorted(self._finals, key=lambda final: final[:2])  # time-major
        index = torch.tensor([final[:2] for final in finals], dtype=torch.int64).reshape(-1, 2)
        last = {name: np.zeros((0, *view), np.uint8) for name, view in self.views.items()}
        if finals:
            last = {name: np.stack([final[2][name] for final in finals]) for name in self.views}
        return Transitions(
            views={name: torch.from_numpy(rows[: len(steps) + 1]) for name, rows in self._rows.items()},
            actions=torch.from_numpy(np.stack([step.actions for step in steps])),
            log_probs=torch.from_numpy(np.stack(chances))
            if chances
            else torch.full(shape, -math.log(self.num_actions)),
            scores=torch.from_numpy(np.stack([step.scores for step in steps])),
            final_index=index,
            final_views={name: torch.from_numpy(view) for name, view in last.items()},
            valid=None if valid.all() else torch.from_numpy(valid),
        )


def _finish_saving(place: Path) -> Path:
    """Returns the place; where `save` was killed between its two renames, the second one is made up for."""
    if not place.exists():
        written = place.with_name(f".new-{place.name}")
        if (written / manifest.NAME).is_file():
            written.rename(place)
    return place
