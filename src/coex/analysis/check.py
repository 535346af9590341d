"""`coex check`: a few thousand random steps in a world, and what they tell of it."""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from coex.analysis.localisation import UniformPolicy
from coex.bonuses import BonusContext
from coex.config.bonuses import CoexConfig
from coex.config.grid import Grid
from coex.config.presets import make_config
from coex.config.run import RunConfig
from coex.config.settings import flat_settings, merge_settings
from coex.core.threads import one_thread
from coex.envs import POLICY_SHAPE, VectorEnv
from coex.envs.views import Frame
from coex.method.bonus import CoexBonus
from coex.rollouts.collector import Collector
from coex.rollouts.rollout import Rollout, Transitions

METHOD = "ppo+coex"
NUM_ENVS, ROLLOUT_STEPS = 16, 8
_REMEMBERED = 24  # rollouts that are learned from again, 10 MB each
_AGAIN = 4  # of them after each new one: steps are few here, and learning from them once finds little
_JUDGED = 0.25  # the last share of the steps, by which the model is judged
_MANY_ROOMS = 0.2  # rooms an observation: more are noise
_MOST_SAMPLES = 6  # rooms shown
_MANY_REWARDS = 0.1  # rewards a step: with more, the score is a clock


@dataclass
class World:
    """What random play showed of a world."""

    game: str
    actions: list[str]
    steps: int
    found_at: float  # times chance: from there on, the player counts as found
    grid: Grid = CoexConfig().grid  # of the model
    accuracy: float = 0.0  # right guesses of the action, in the last quarter of the steps
    changed: float = 0.0  # share of the steps that changed anything in the picture
    attention: NDArray[np.float64] = field(default_factory=lambda: np.zeros((1, 1)))  # on `picture`, by cell
    cells: int = 0  # where the most attended cell lay, in the last quarter
    rooms: int = 0
    threshold: float = 0.0  # τ
    returns: list[float] = field(default_factory=list)  # of the episodes that ended
    lengths: list[int] = field(default_factory=list)
    rewards: int = 0  # steps with one
    gains: int = 0  # steps with one above 0
    has_fractions: bool = False  # a reward was no whole number
    env_rate: float = 0.0  # steps/s
    rate: float = 0.0  # steps/s with the model learning
    picture: Frame = field(default_factory=lambda: np.zeros((1, 1, 3), np.uint8))  # the last, as the model sees it
    samples: list[Frame] = field(default_factory=list)  # of the largest rooms
    changes: dict[str, Any] = field(default_factory=dict)  # settings that were given, by their full names

    @property
    def skill(self) -> float:
        """Right guesses as a multiple of what chance would bring."""
        return self.accuracy * len(self.actions)

    @property
    def is_found(self) -> bool:
        """Whether something was found that obeys the actions."""
        return self.skill >= self.found_at

    @property
    def has_noisy_rooms(self) -> bool:
        return self.rooms > _MANY_ROOMS * self.steps


def check(game: str, steps: int, seed: int, num_workers: int = -1, changes: dict[str, Any] | None = None) -> World:
    """Plays at random for so many steps, with the attentive dynamics model learning, and returns what was seen.

    `changes` are nested settings of a run, such as `{"bonus": {"adm": {"grid": 4}}}`.
    """
    chosen = {"bonus": {"clusters": {"threshold": 0.0}}, "num_workers": num_workers}
    config = make_config(game, METHOD, merge_settings(chosen, changes or {}))
    env_seed, acting_seed, bonus_seed = np.random.SeedSequence(seed).spawn(3)
    views = {"policy": POLICY_SHAPE, **config.views(), "rgb84": (84, 84, 3)}
    with VectorEnv(
        config.game, config.env, num_envs=NUM_ENVS, num_workers=num_workers, views=views, seed=env_seed
    ) as env:
        world = World(config.game, env.action_names, 0, config.bonus.adm.found_at, config.grid)
        world.changes = flat_settings(changes or {})
        torch.manual_seed(seed)
        bonus = _make_bonus(config, env.num_actions, bonus_seed)
        generator = torch.Generator().manual_seed(int(acting_seed.generate_state(1)[0]))
        collector = Collector(env, ROLLOUT_STEPS, generator, torch.device("cpu"))
        collector.reset()
        _play(world, bonus, collector, UniformPolicy(env.num_actions), steps)
    return world


def _make_bonus(config: RunConfig, num_actions: int, seed: np.random.SeedSequence) -> CoexBonus:
    settings = config.bonus
    if "c" not in settings.state:  # rooms are counted in any case
        settings = type(settings)(state="xycR", adm=settings.adm, clusters=settings.clusters)
    return CoexBonus(settings, BonusContext(config.game, num_actions, seed, torch.device("cpu")))


def _play(world: World, bonus: CoexBonus, collector: Collector, policy: UniformPolicy, steps: int) -> None:
    accuracies: list[float] = []
    cells = set[tuple[int, int]]()
    sizes: dict[int, int] = {}
    samples: dict[int, Frame] = {}
    memory: list[Transitions] = []
    generator = np.random.default_rng(0)
    view = bonus.config.adm.view
    changed, env_seconds, seconds = 0.0, 0.0, 0.0
    while world.steps < steps:
        before = time.monotonic()
        rollout = collector.collect(policy)
        env_seconds += time.monotonic() - before
        world.steps += rollout.num_transitions
        with one_thread():
            rewarded = bonus.reward(rollout)
            metrics = bonus.update(rollout, rewarded)  # its guesses are made before it learns from the rollout
            seconds += time.monotonic() - before
            for old in generator.permutation(len(memory))[:_AGAIN].tolist():
                assert bonus.encoder.locator is not None
                bonus.encoder.locator.fit(memory[old], None)
            memory = [_remember(rollout, view), *memory[: _REMEMBERED - 1]]
        _count_rewards(world, rollout)
        moved = (rollout.views[view][:-1] != rollout.next_view(view)).flatten(2).any(-1)  # (T, N)
        changed += float(moved.float().sum())
        rooms, frames = rewarded.states["c"].ravel(), rollout.next_view("rgb84").flatten(0, 1).numpy()
        for room in np.unique(rooms).tolist():
            sizes[room] = sizes.get(room, 0) + int((rooms == room).sum())
            if bonus.encoder.rooms is not None and bonus.encoder.rooms.threshold and room not in samples:
                samples[room] = frames[int((rooms == room).argmax())].copy()
        if world.steps > (1 - _JUDGED) * steps:
            accuracies.append(metrics["adm/accuracy"])
            cells |= set(zip(rewarded.states["x"].ravel().tolist(), rewarded.states["y"].ravel().tolist(), strict=True))
            looked = bonus.attend({view: rollout.views[view][-1]})
            assert looked is not None
            world.picture = rollout.views[view][-1, 0].numpy().copy()
            world.attention = looked[0].double().numpy()
    world.accuracy = float(np.mean(accuracies))
    world.changed = changed / world.steps
    world.cells = len(cells)
    found = bonus.encoder.rooms
    assert found is not None
    world.rooms, world.threshold = len(found), found.threshold
    largest = sorted(samples, key=lambda room: -sizes[room])[:_MOST_SAMPLES]
    world.samples = [samples[room] for room in largest]
    world.env_rate, world.rate = world.steps / env_seconds, world.steps / seconds


def _remember(rollout: Rollout, view: str) -> Transitions:
    """Returns a copy of what the model learns from: the collector uses its buffers again."""
    return Transitions(
        views={view: rollout.views[view].clone()},
        actions=rollout.actions,
        log_probs=rollout.log_probs,
        scores=rollout.scores,
        final_index=rollout.final_index,
        final_views={view: rollout.final_views[view]},
    )


def _count_rewards(world: World, rollout: Rollout) -> None:
    world.returns += [episode.score for episode in rollout.episodes]
    world.lengths += [episode.length for episode in rollout.episodes]
    world.rewards += int((rollout.rewards != 0).sum())
    world.gains += int((rollout.rewards > 0).sum())
    world.has_fractions |= bool((rollout.rewards != rollout.rewards.round()).any())


def describe_world(world: World) -> list[tuple[str, str]]:
    """Returns the findings, each with its name."""
    found = "yes" if world.is_found else "not yet"
    whose = "as set" if "bonus.clusters.threshold" in world.changes else "chosen from the first observations"
    chance = f"{world.accuracy:.0%} of the actions guessed, {world.skill:.1f} times chance"
    rows = [
        ("actions", f"{len(world.actions)}: {', '.join(world.actions[:8])}{' …' if len(world.actions) > 8 else ''}"),
        ("something obeys them", f"{found} ({chance}; found from {world.found_at} times on)"),
        (
            "where",
            f"{world.cells} of {world.grid.cells**2} cells in the last quarter of the steps" if world.is_found else "-",
        ),
        ("picture changes", f"in {world.changed:.0%} of the steps"),
        ("rooms", f"{world.rooms} at τ = {world.threshold:.3g}, {whose}"),
    ]
    if world.returns:
        mean, lengths = float(np.mean(world.returns)), float(np.mean(world.lengths))
        rows.append(
            ("episodes", f"{len(world.returns)} ended, {lengths:.0f} steps and a return of {mean:.3g} on average")
        )
    else:
        rows.append(("episodes", f"none ended in {world.steps // NUM_ENVS} steps of {NUM_ENVS} environments"))
    share = world.rewards / world.steps
    rows.append(("rewards", f"in {world.rewards:,} of {world.steps:,} steps ({share:.2%})"))
    rows.append(
        ("speed", f"{world.env_rate:,.0f} steps/s of the environments alone, {world.rate:,.0f} with the model learning")
    )
    return rows


def advise(world: World) -> list[str]:
    """Returns what to try, most important first."""
    advice: list[str] = []
    settings: dict[str, Any] = dict(world.changes)
    if world.changed < 0.01:
        advice.append("The picture hardly ever changes: is it the right one?")
    elif not world.is_found:
        advice.append(
            f"Look for longer (--steps {10 * world.steps}). If nothing is found then: is the player visible, and does "
            "it move over the picture? A camera that follows it hides it. A player that fills more than a third of the "
            "picture's side wants fewer cells (--set bonus.adm.grid=4), one of less than a twentieth more of them (19)."
        )
    letters = "xy" if world.rooms == 1 or world.has_noisy_rooms else "xyc"
    is_clock = world.rewards > _MANY_REWARDS * world.steps
    if world.rewards and not world.has_fractions and not is_clock:
        letters += "R"
    if letters != "xycR":
        settings["bonus.state"] = letters
    if world.rooms == 1:
        advice.append("One room was seen: c tells nothing so far. Keep it if there are more to come.")
    elif world.has_noisy_rooms:
        advice.append("Every other picture is a room of its own: leave c out, or set a larger τ.")
    if world.has_fractions:
        advice.append("Rewards are not whole numbers: R, the score rounded down, tells little.")
    elif is_clock:
        advice.append("The score changes all the time: with R in it, every step would be a new state.")
    # In a short look perhaps only those games have ended that were rewarded: every environment has begun one.
    rewarded = sum(score > 0 for score in world.returns) / max(len(world.returns), NUM_ENVS)
    if rewarded > 0.5:
        advice.append("Most random games are rewarded: see first how far plain ppo comes.")
    elif not world.gains:
        advice.append("Random play is never rewarded: that is what the bonus is for.")
    sets = "".join(f" --set {name}={value}" for name, value in settings.items())
    return [*advice, f"coex train {world.game} --method {METHOD}{sets}"]
