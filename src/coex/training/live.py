"""What a run shows of itself while somebody looks: the agent at play, and where it has been.

`coex watch` touches a file in the run's directory; only while that is fresh is anything written, and never so often
that it takes more than a small share of the run's time. Nothing is drawn at random, and nothing of the run changes.
"""

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from coex.archive.tree import describe_ways
from coex.archive.ways import pack_ways
from coex.bonuses import Rewarded
from coex.config.run import RunConfig
from coex.envs import ram
from coex.method.bonus import CoexBonus
from coex.rollouts.rollout import Rollout
from coex.runs.files import LIVE, WATCHED
from coex.runs.visits import describe_visits, encode_png
from coex.training.agent import Agent
from coex.training.archive_agent import ArchiveAgent

MOST_FRAMES = 16  # of one environment, in a row
_LOOK_SECONDS = 1.0  # between two looks at who watches
_FRESH_SECONDS = 10.0  # after which whoever watched has gone
_SHARE = 1 / 250  # of the run's time that the picture may take, and the map again
_STATE_SECONDS = 1e-6  # what a state adds to the map's time, before that has been measured


class LiveView:
    """Writes `live.json` in a run's directory while it is watched."""

    def __init__(self, run: Path, config: RunConfig) -> None:
        self._run, self._config = run, config
        self._next_look = 0.0
        self._next_map: float | None = None  # None: nobody has looked yet
        self._frames: list[dict[str, Any]] = []
        self._pictures: list[NDArray[np.uint8]] = []
        self._spent = 0.0  # on the strip that is being recorded
        self._map: dict[str, Any] | None = None
        self.close()

    def observe(self, agent: Agent | ArchiveAgent) -> None:
        """Looks at what an iteration left, if that is due and somebody watches."""
        began = time.monotonic()
        if began < self._next_look:
            return
        if not self._frames and not self._is_watched():
            self._next_look = began + _LOOK_SECONDS
            return
        if isinstance(agent, Agent) and agent.last is not None:
            self._record(agent, *agent.last)
        is_whole = isinstance(agent, ArchiveAgent) or len(self._frames) >= MOST_FRAMES
        if is_whole:
            self._write(agent)
        self._spent += time.monotonic() - began
        if is_whole:
            self._next_look = time.monotonic() + max(_LOOK_SECONDS, self._spent / _SHARE)
            self._frames, self._pictures, self._spent = [], [], 0.0

    def close(self) -> None:
        """Leaves nothing behind that was only true for a moment."""
        with contextlib.suppress(OSError):
            (self._run / LIVE).unlink(missing_ok=True)

    def _is_watched(self) -> bool:
        try:
            age = time.time() - os.stat(self._run / WATCHED, follow_symlinks=False).st_mtime
        except OSError:
            return False
        return abs(age) < _FRESH_SECONDS

    def _record(self, agent: Agent, rollout: Rollout, rewarded: Rewarded | None) -> None:
        """Takes in the first environment's last steps."""
        length = len(rollout.actions)
        first = max(0, length - MOST_FRAMES)
        view = next((name for name, frames in rollout.views.items() if frames.shape[4:] == (3,)), "policy")
        pictures = rollout.next_view(view, slice(first, length))[:, 0].numpy()
        self._pictures += [picture.copy() if view != "policy" else picture[..., -1].copy() for picture in pictures]
        following = torch.cat([rollout.values[1:, 0], rollout.last_values[:1]])
        values = torch.where(rollout.ended[:, 0], rollout.next_values_at_end()[:, 0], following)
        boxes = self._true_boxes(rollout, first)
        for t in range(first, length):
            frame: dict[str, Any] = {
                "action": agent.action_names[int(rollout.actions[t, 0])],
                "score": float(rollout.scores[t, 0]),
                "value": round(float(values[t]), 4),
                "truth": boxes[t - first] if boxes else None,
            }
            self._frames.append(frame | (_describe_bonus(rewarded, t) if rewarded else {}))

    def _true_boxes(self, rollout: Rollout, first: int) -> list[list[list[float]]] | None:
        """Where RAM says the player is, and its car if it has one, as shares of the picture."""
        if "ram" not in rollout.views:
            return None
        memory = rollout.next_view("ram", slice(first, len(rollout.actions)))[:, 0].numpy()
        size = np.array([ram.SCREEN_WIDTH, ram.SCREEN_HEIGHT] * 2)
        boxes = (ram.controlled_boxes(self._config.game, memory) / size).round(4).tolist()
        visible = ram.player_visible(self._config.game, memory).tolist()
        return [found if seen else [] for found, seen in zip(boxes, visible, strict=True)]

    def _draw_map(self, agent: Agent | ArchiveAgent) -> None:
        """Takes in where the agent has been, if there is time: of very many states the first waits as the others do."""
        bonus = agent.bonus
        if not isinstance(bonus, CoexBonus) or not len(bonus.counts):
            return
        began = time.monotonic()
        entries = agent.explorer.archive.entries if isinstance(agent, ArchiveAgent) else {}
        if self._next_map is None:
            size = len(bonus.counts) + 5 * len(entries)
            self._next_map = began + (size * _STATE_SECONDS / _SHARE if size > 1_000 else 0.0)
        if began < self._next_map:
            return
        counted, config = bonus.counts.state_dict(), bonus.config
        keys, counts = counted["keys"].astype(np.int64), counted["counts"].astype(np.int64)
        self._map = describe_visits(agent.steps_done, config.state, config.grid, keys, counts, agent.room_pictures)
        if entries:
            ways = pack_ways([entry.way for entry in entries.values()])
            scores = np.array([entry.score for entry in entries.values()])
            cells = np.array(list(entries), np.int64)
            self._map["ways"] = describe_ways(cells, scores, ways["index"], ways["parents"], ways["actions"]["lengths"])
        self._next_map = time.monotonic() + (time.monotonic() - began) / _SHARE

    def _write(self, agent: Agent | ArchiveAgent) -> None:
        self._draw_map(agent)
        play = self._frames and {
            "stamp": agent.steps_done,
            "grid": self._config.grid._asdict(),
            "frames": self._frames[-MOST_FRAMES:],
            "picture": encode_png(np.concatenate(self._pictures[-MOST_FRAMES:])),
        }
        scratch = self._run / f".{LIVE}.tmp"
        with contextlib.suppress(OSError):  # the run goes on, seen or not
            scratch.unlink(missing_ok=True)
            with scratch.open("x") as file:
                file.write(json.dumps({"play": play or None, "map": self._map}))
            scratch.replace(self._run / LIVE)


def _describe_bonus(rewarded: Rewarded, t: int) -> dict[str, Any]:
    states = rewarded.states
    attention, visits = rewarded.attention, rewarded.visits
    return {
        "bonus": round(float(rewarded.bonus[t, 0]), 5),
        "room": int(states["c"][t, 0]) if "c" in states else None,
        "cell": [int(states["x"][t, 0]), int(states["y"][t, 0])] if {"x", "y"} <= states.keys() else None,
        "visits": None if visits is None else int(visits[t, 0]),
        "attention": None if attention is None else attention[t, 0].double().cpu().numpy().round(3).tolist(),
    }
