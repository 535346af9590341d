"""Playing with a checkpoint's policy, one game at a time, with everything to look at."""

import itertools
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import torch

from coex.analysis.trained import TrainedAgent
from coex.archive.ways import unpack_ways
from coex.bonuses import Inspection
from coex.config.archive import ArchiveConfig
from coex.config.run import RunConfig
from coex.envs import POLICY_SHAPE, RAM_SHAPE, make_game, ram
from coex.envs.game import Game
from coex.envs.pool import make_pool_game
from coex.envs.views import Frame, Views
from coex.errors import UsageError
from coex.runs.checkpoints import Saved
from coex.runs.resume import saved_config


@dataclass(frozen=True)
class PlayTruth:
    """What RAM knows."""

    box: tuple[int, int, int, int] | None  # x, y, width, height on the screen; None when the player is not on it
    cells: tuple[tuple[float, float], ...]  # centres of what it controls (itself, and its car) in units of the grid
    room: int | None  # None in games of one room


@dataclass(frozen=True)
class Moment:
    """A picture, what the agent makes of it and what it does next."""

    picture: Frame  # (H, W, 3)
    step: int  # since the episode's beginning
    score: float
    value: float
    action: str | None  # None: the episode is over; "–": the way that is filmed is
    sight: Inspection
    truth: PlayTruth | None
    episode: int = 1


def play(saved: Saved, seed: int) -> Iterator[Moment]:
    """Endless episodes. The policy acts as in training: by sampling."""
    config = saved_config(saved)
    # Another sequence than the training's or `coex eval`'s.
    game_seed, acting_seed = np.random.SeedSequence([seed, saved.manifest.step, 1]).spawn(2)
    generator = torch.Generator().manual_seed(int(acting_seed.generate_state(1)[0]))
    agent = TrainedAgent(saved)
    with closing(make_game(config.game, config.env.with_whole_episodes(), game_seed)) as game:
        for episode in itertools.count(1):
            game.reset()
            yield from _play_episode(config, game, agent, generator, episode)


def has_best_way(saved: Saved) -> bool:
    """Returns whether a checkpoint has an archive that came to a reward."""
    config = saved_config(saved)
    return isinstance(config.learner, ArchiveConfig) and saved.state["agent"]["explorer"]["best_score"] > 0


def play_best_way(saved: Saved) -> Iterator[Moment]:
    """The best way that an archive found, from its real start; raises UsageError where there is none."""
    config = saved_config(saved)
    if not isinstance(config.learner, ArchiveConfig):
        raise UsageError(f"--best-way is for runs with an archive, and {config.method} has none")
    if not has_best_way(saved):
        raise UsageError(f"there is no --best-way yet: by step {saved.manifest.step:,} no burst had come to a reward")
    [way] = unpack_ways(saved.state["agent"]["explorer"]["best_way"])
    with closing(make_pool_game(config.game, config.env)) as game:
        game.begin(way.number)
        yield from _play_episode(config, game, TrainedAgent(saved), torch.Generator(), actions=way.path())


def _play_episode(
    config: RunConfig, game: Game, agent: TrainedAgent, generator: torch.Generator, episode: int = 1,
    actions: bytes | None = None,
) -> Iterator[Moment]:  # fmt: skip
    """The episode that has begun, as the policy plays it, or with the given actions."""
    wanted = {"policy": POLICY_SHAPE, **config.views()}
    if config.game in ram.RAM_GAMES:
        wanted["ram"] = RAM_SHAPE
    views = {name: np.zeros(shape, np.uint8) for name, shape in wanted.items()}
    step, score, over, is_done = 0, 0.0, False, False
    agent.begin_episode()
    while True:
        game.paint(views, fresh=step == 0)
        draw = torch.rand(1, generator=generator)
        sampled, _, values = agent.policy.act(torch.from_numpy(views["policy"])[None], draw)
        action = int(sampled[0]) if actions is None or is_done else actions[step]
        yield Moment(
            picture=game.rgb().copy(),
            step=step,
            score=score,
            value=float(values[0]),
            action=None if over else "–" if is_done else game.action_names[action],
            sight=agent.inspect(views, score),
            episode=episode,
            truth=_truth(config, views) if "ram" in views else None,
        )
        if is_done:
            return
        reward, terminated, truncated = game.step(action)
        step, score = step + 1, score + reward
        over = terminated or truncated
        is_done = over or step == len(actions or ())


def _truth(config: RunConfig, views: Views) -> PlayTruth:
    game, memory = config.game, views["ram"]
    x, y, width, height = ram.player_box(game, memory).tolist()
    cells = tuple((across, down) for across, down in ram.controlled_cells(game, memory, config.grid.cells).tolist())
    room = int(ram.room(game, memory)) if game in ram.ROOM_GAMES else None
    box = (x, y, width, height) if bool(ram.player_visible(game, memory)) else None
    return PlayTruth(box, cells, room)
