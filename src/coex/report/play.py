"""Playing with a checkpoint's policy, one game at a time, with everything to look at."""

import dataclasses
import itertools
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import torch

from coex.config.run import RunConfig
from coex.envs import VIEW_SHAPES, make_game, ram
from coex.envs.game import Game
from coex.envs.views import Frame, Views
from coex.learners.networks import SamplingPolicy
from coex.report.eyes import Eyes, Sight, open_eyes
from coex.runs.checkpoints import Saved
from coex.runs.resume import fitting, saved_config
from coex.training.make import bonus_views, make_network


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
    sight: Sight
    episode: int = 1
    truth: Truth | None = None


def play(saved: Saved, seed: int) -> Iterator[Moment]:
    """Endless episodes. The policy acts as in training: by sampling."""
    config = saved_config(saved)
    # Another sequence than the training's or `coex eval`'s.
    game_seed, acting_seed = np.random.SeedSequence([seed, saved.manifest.step, 1]).spawn(2)
    generator = torch.Generator().manual_seed(int(acting_seed.generate_state(1)[0]))
    with closing(make_game(config.game, config.env.with_whole_episodes(), game_seed)) as game:
        policy, eyes = _load(config, saved, len(game.action_names))
        wanted = {"policy", *bonus_views(config), *(["ram"] if config.game in ram.RAM_GAMES else [])}
        views = {name: np.zeros(VIEW_SHAPES[name], np.uint8) for name in sorted(wanted)}
        for episode in itertools.count(1):
            for moment in _play_episode(game, policy, eyes, views, generator):
                yield dataclasses.replace(moment, episode=episode, truth=_truth(config.game, views))


def _play_episode(
    game: Game, policy: SamplingPolicy, eyes: Eyes, views: Views, generator: torch.Generator
) -> Iterator[Moment]:
    step, score, over = 0, 0.0, False
    game.reset()
    eyes.begin_episode()
    while True:
        game.paint(views, fresh=step == 0)
        draw = torch.rand(1, generator=generator)
        actions, _, values = policy.act(torch.from_numpy(views["policy"])[None], draw)
        action = int(actions[0])
        yield Moment(
            picture=game.rgb().copy(),
            step=step,
            score=score,
            value=float(values[0]),
            action=None if over else game.action_names[action],
            sight=eyes.look(views, score),
        )
        if over:
            return
        reward, terminated, truncated = game.step(action)
        step, score, over = step + 1, score + reward, terminated or truncated


def _load(config: RunConfig, saved: Saved, num_actions: int) -> tuple[SamplingPolicy, Eyes]:
    network = make_network(config, num_actions)
    with fitting(saved, config.game):
        network.load_state_dict(saved.state["agent"]["learner"]["network"])
        eyes = open_eyes(config, saved.state["agent"]["bonus"], num_actions)
    return SamplingPolicy(network), eyes


def _truth(game: str, views: Views) -> Truth | None:
    if "ram" not in views:
        return None
    memory = views["ram"]
    x, y, width, height = ram.player_box(game, memory).tolist()
    cells = tuple((across, down) for across, down in ram.controlled_cells(game, memory).tolist())
    room = int(ram.room(game, memory)) if game in ram.ROOM_GAMES else None
    box = (x, y, width, height) if bool(ram.player_visible(game, memory)) else None
    return Truth(box, cells, room)
