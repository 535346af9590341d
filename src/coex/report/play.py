"""Playing with a checkpoint's policy, one game at a time, with everything to look at."""

import dataclasses
import itertools
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import torch

from coex.analysis.trained import TrainedAgent
from coex.bonuses import Inspection
from coex.envs import POLICY_SHAPE, RAM_SHAPE, make_game, ram
from coex.envs.game import Game
from coex.envs.views import Frame, Views
from coex.runs.checkpoints import Saved
from coex.runs.resume import saved_config


@dataclass(frozen=True)
class Truth:
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
    action: str | None  # None: the episode is over
    sight: Inspection
    episode: int = 1
    truth: Truth | None = None


def play(saved: Saved, seed: int) -> Iterator[Moment]:
    """Endless episodes. The policy acts as in training: by sampling."""
    config = saved_config(saved)
    # Another sequence than the training's or `coex eval`'s.
    game_seed, acting_seed = np.random.SeedSequence([seed, saved.manifest.step, 1]).spawn(2)
    generator = torch.Generator().manual_seed(int(acting_seed.generate_state(1)[0]))
    agent = TrainedAgent(saved)
    with closing(make_game(config.game, config.env.with_whole_episodes(), game_seed)) as game:
        wanted = {"policy": POLICY_SHAPE, **config.views()}
        if config.game in ram.RAM_GAMES:
            wanted["ram"] = RAM_SHAPE
        views = {name: np.zeros(shape, np.uint8) for name, shape in wanted.items()}
        for episode in itertools.count(1):
            for moment in _play_episode(game, agent, views, generator):
                yield dataclasses.replace(moment, episode=episode, truth=_truth(config.game, views))


def _play_episode(game: Game, agent: TrainedAgent, views: Views, generator: torch.Generator) -> Iterator[Moment]:
    step, score, over = 0, 0.0, False
    game.reset()
    agent.begin_episode()
    while True:
        game.paint(views, fresh=step == 0)
        draw = torch.rand(1, generator=generator)
        actions, _, values = agent.policy.act(torch.from_numpy(views["policy"])[None], draw)
        action = int(actions[0])
        yield Moment(
            picture=game.rgb().copy(),
            step=step,
            score=score,
            value=float(values[0]),
            action=None if over else game.action_names[action],
            sight=agent.inspect(views, score),
        )
        if over:
            return
        reward, terminated, truncated = game.step(action)
        step, score, over = step + 1, score + reward, terminated or truncated


def _truth(game: str, views: Views) -> Truth | None:
    if "ram" not in views:
        return None
    memory = views["ram"]
    x, y, width, height = ram.player_box(game, memory).tolist()
    cells = tuple((across, down) for across, down in ram.controlled_cells(game, memory).tolist())
    room = int(ram.room(game, memory)) if game in ram.ROOM_GAMES else None
    box = (x, y, width, height) if bool(ram.player_visible(game, memory)) else None
    return Truth(box, cells, room)
