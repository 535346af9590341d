"""Playing given actions from saved games, many at once, in worker processes that write into shared memory."""

import ctypes
import functools
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.sharedctypes import RawArray
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coex.envs.atari import SavedGame
from coex.envs.game import Game, make_game
from coex.envs.game_config import GameConfig
from coex.envs.processes import Channel, InProcess, close_workers, count_workers, split_evenly, start_worker
from coex.envs.views import Shape, Views
from coex.errors import UsageError

_MOST_ACTIONS = 256  # one is a byte


class Start(NamedTuple):
    """Where play begins: a real start, and what was done since."""

    number: int  # of the real start (see `draw_start`)
    actions: bytes = b""  # since then
    saved: bytes = b""  # the packed game after them; without it, the actions are played again


class Plan(NamedTuple):
    """What a slot is to play: it ends with the life, or with the actions."""

    slot: int
    actions: bytes
    start: Start | None = None  # None: where the slot stands
    save_every: int = 1  # steps; the beginning of a life is saved too


class Played(NamedTuple):
    """What became of a plan; row t + 1 of the slot's views shows what its step t led to."""

    rewards: NDArray[np.float64]  # (L,) of the steps that were taken
    is_lost: bool  # the last of them lost a life, or ended the game without a reward
    is_over: bool  # the last of them ended the game
    steps: int  # of the emulator, those included that were played again

    @property
    def kept(self) -> int:
        """Steps whose reward was not paid for with a life."""
        return len(self.rewards) - self.is_lost

    @property
    def playable(self) -> int:
        """Steps after which play can go on."""
        return len(self.rewards) - (self.is_lost or self.is_over)

    def __len__(self) -> int:
        return len(self.rewards)


class _Slot:
    """One game, and what can be gone back to since its last start."""

    def __init__(self, game: Any, rows: Sequence[Views], restores: bool) -> None:
        self.game = game
        self.restores = restores
        self.steps = 0  # since the start
        self.saves: dict[int, SavedGame] = {}  # by the steps before them
        self._rows = rows
        self._seen = {name: np.zeros_like(view) for name, view in rows[0].items()}

    def play(self, plan: Plan) -> Played:
        game, replayed = self.game, self._go_to(plan.start) if plan.start else 0
        lives, rewards, is_lost, is_over = game.lives, [], False, False
        for row, action in zip(self._rows[1:], plan.actions, strict=False):
            reward, terminated, truncated = game.step(action)
            self._paint(row)
            self.steps += 1
            rewards.append(reward)
            is_over = terminated or truncated
            is_lost = game.lives < lives or (is_over and reward <= 0)
            if self.restores and (is_lost or self.steps % plan.save_every == 0):
                self.saves[self.steps] = game.save()
            if is_lost or is_over:
                break
        return Played(np.array(rewards), is_lost, is_over, replayed + len(rewards))

    def _go_to(self, start: Start) -> int:
        """Returns how many steps it took."""
        self.steps, self.saves = 0, {}
        if start.saved:
            self.game.restore(SavedGame.unpack(start.saved))
            return 0
        self.game.begin(start.number)
        for action in start.actions:
            self.game.step(action)
        self._paint(self._rows[0])
        return len(start.actions)

    def _paint(self, row: Views) -> None:
        # Always into the same arrays, of which the painter leaves what has not changed.
        self.game.paint(self._seen, fresh=False)
        for name, view in self._seen.items():
            row[name][...] = view


def make_pool_game(game: str, config: GameConfig) -> Game:
    """Returns a game in which a start and its actions lead to the same place, whichever process plays them."""
    made = make_game(game, config, np.random.SeedSequence(0))
    made.begin(0)  # before anything else: what follows real starts depends on nothing that was played
    return made


class _PoolWorker:
    """Plays the plans of its slots, one after the other."""

    def __init__(self, game: str, config: GameConfig, slots: slice, views: Mapping[str, Any], restores: bool) -> None:
        arrays = {name: _lay(*view) for name, view in views.items()}  # (N, T + 1, …)
        self._slots = {}
        for slot in range(slots.start, slots.stop):
            rows = [
                {name: view[slot, row] for name, view in arrays.items()}
                for row in range(len(next(iter(arrays.values()))[slot]))
            ]
            self._slots[slot] = _Slot(make_pool_game(game, config), rows, restores)
        self.action_names: list[str] = self._slots[slots.start].game.action_names

    def answer(self, request: str, payload: Any, members: slice) -> Any:
        if request == "play":
            return [self._slots[plan.slot].play(plan) for plan in payload]
        if request == "play each":
            return (self._slots[plan.slot].play(plan) for plan in payload)
        return [self._slots[slot].saves[step].pack() for slot, step in payload]

    def close(self) -> None:
        for slot in self._slots.values():
            slot.game.close()


class GamePool:
    """`num_slots` games of one kind, each of which plays given actions from a given start.

    What is played does not depend on how many workers share the slots.
    """

    def __init__(
        self,
        game: str,
        config: GameConfig,
        *,
        num_slots: int,
        num_steps: int,
        num_workers: int = -1,
        views: Mapping[str, Shape],
        restores: bool = True,
    ) -> None:
        """`num_steps`: of a plan at most; `num_workers` as in `VectorEnv`; `restores`: games are saved as they go."""
        self.num_slots = num_slots
        self.num_steps = num_steps
        self._restores = restores
        buffers = {
            name: (RawArray(ctypes.c_uint8, num_slots * (num_steps + 1) * int(np.prod(shape))),
                   (num_slots, num_steps + 1, *shape))
            for name, shape in views.items()
        }  # fmt: skip
        self.views = {name: _lay(*view) for name, view in buffers.items()}  # (N, T + 1, …)
        self._shares = split_evenly(num_slots, count_workers(num_workers))
        self._workers: list[Channel] = []
        try:
            for share in self._shares:
                make = functools.partial(_PoolWorker, game, config, share, buffers, restores)
                if num_workers == 0:
                    worker = make()
                    self._workers.append(Channel(share, InProcess(worker, share)))
                    self.action_names = worker.action_names
                else:
                    self._workers += start_worker(make, [share])
            if num_workers != 0:
                self.action_names, *_ = [worker.receive() for worker in self._workers]
            if len(self.action_names) > _MOST_ACTIONS:
                raise UsageError(
                    f"{game} has {len(self.action_names)} actions: ways are kept of at most {_MOST_ACTIONS}"
                )
        except BaseException:
            self.close()
            raise

    def play(self, plans: Sequence[Plan]) -> list[Played]:
        """Plays at most one plan a slot, and returns what became of each, in the order of the plans."""
        return self._gather("play", plans, [plan.slot for plan in plans])

    def play_each(self, plans: Sequence[Plan]) -> Iterator[Played]:
        """Yields what `play` returns, each as soon as it is known: others are still played while it is looked at."""
        asked = self._ask("play each", plans, [plan.slot for plan in plans])
        players = {i: worker for worker, indices in asked for i in indices}
        for i in range(len(plans)):
            yield players[i].receive()

    def fetch(self, saves: Sequence[tuple[int, int]]) -> list[bytes]:
        """Returns the games that slots saved after so many steps since their starts, packed; empty without saving."""
        if not self._restores:
            return [b""] * len(saves)
        return self._gather("fetch", saves, [slot for slot, _ in saves])

    def _gather(self, request: str, payload: Sequence[Any], slots: Sequence[int]) -> list[Any]:
        answers: list[Any] = [None] * len(payload)
        for worker, indices in self._ask(request, payload, slots):
            for i, answer in zip(indices, worker.receive(), strict=True):
                answers[i] = answer
        return answers

    def _ask(self, request: str, payload: Sequence[Any], slots: Sequence[int]) -> list[tuple[Channel, list[int]]]:
        """Asks the workers of some slots; returns each with the places of its part of the payload."""
        mine = [[i for i, slot in enumerate(slots) if share.start <= slot < share.stop] for share in self._shares]
        asked = [(worker, indices) for worker, indices in zip(self._workers, mine, strict=True) if indices]
        for worker, indices in asked:
            worker.send(request, [payload[i] for i in indices])
        return asked

    def close(self) -> None:
        """Ends the workers; calling it again does nothing."""
        workers, self._workers = self._workers, []
        close_workers([[worker] for worker in workers])

    def __enter__(self) -> "GamePool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _lay(buffer: Any, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    return np.frombuffer(buffer, np.uint8).reshape(shape)
