"""How fast the emulators alone can go, in agent steps/s: bare, and through our vector environment."""

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median

import ale_py
import numpy as np
from ale_py import ALEInterface, roms

from benchmarks.machine import cores
from coex.envs import POLICY_SHAPE, ROMS, Shape, VectorEnv
from coex.envs.game_config import GameConfig

FRAME_SKIP = 4
ENVIRONMENTS = 16


def bare_rate(seed: int, *, game: str, seconds: float) -> float:
    """Random play in one `act` loop: no screen is read, nothing is resized or moved."""
    ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    emulator = ALEInterface()
    emulator.setInt("random_seed", seed)
    emulator.setInt("frame_skip", FRAME_SKIP)
    emulator.setFloat("repeat_action_probability", 0.0)
    rom = roms.get_rom_path(ROMS[game])
    assert rom is not None, f"ale-py has no ROM of {game}"
    emulator.loadROM(rom)
    actions = emulator.getMinimalActionSet()
    script = np.random.default_rng(seed).integers(len(actions), size=1000).tolist()

    steps, start = 0, time.perf_counter()
    while time.perf_counter() < start + seconds:
        for choice in script:
            emulator.act(actions[choice])
            if emulator.game_over():
                emulator.reset_game()
        steps += len(script)
    return steps / (time.perf_counter() - start)


def bare_rate_together(game: str, seconds: float) -> float:
    """One bare loop a core, all at once: the sum of their rates."""
    # Spawned as ours are; the loops start within a fraction of `seconds` of one another.
    with multiprocessing.get_context("spawn").Pool(cores()) as pool:
        pool.map(partial(bare_rate, game=game, seconds=0.1), range(cores()), chunksize=1)
        return sum(pool.map(partial(bare_rate, game=game, seconds=seconds), range(cores()), chunksize=1))


def vector_rate(game: str, seconds: float, views: Mapping[str, Shape]) -> float:
    """Random play through `VectorEnv` with as many workers as cores, producing `views`.

    Groups of environments go on their own, as they do while a rollout is collected.
    """
    seed = np.random.SeedSequence(0)
    with VectorEnv(game, GameConfig(), num_envs=ENVIRONMENTS, views=views, seed=seed) as vector:
        vector.reset()
        with ThreadPoolExecutor(len(vector.groups)) as pool:
            rates = [pool.submit(_group_rate, vector, group, seconds) for group in range(len(vector.groups))]
            return sum(rate.result() for rate in rates)


def _group_rate(vector: VectorEnv, group: int, seconds: float) -> float:
    size = vector.groups[group].stop - vector.groups[group].start
    script = np.random.default_rng(group).integers(vector.num_actions, size=(50, size))
    steps, start = 0, time.perf_counter()
    while time.perf_counter() < start + seconds:
        for actions in script:
            vector.send(group, actions)
            vector.receive(group)
        steps += script.size
    return steps / (time.perf_counter() - start)


def main() -> None:
    """Measure every rate `rounds` times in turn and print their medians as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--game", required=True)
    parser.add_argument("--seconds", type=float, required=True, help="how long each rate is measured, each time")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    game, seconds = options.game, options.seconds
    measurements: dict[str, Callable[[], float]] = {
        "bare_one_core": lambda: bare_rate(0, game=game, seconds=seconds),
        "bare_all_cores": lambda: bare_rate_together(game, seconds),
        "vector_without_views": lambda: vector_rate(game, seconds, views={}),
        "vector_policy_view": lambda: vector_rate(game, seconds, views={"policy": POLICY_SHAPE}),
    }
    rounds = [{name: measure() for name, measure in measurements.items()} for _ in range(options.rounds)]
    print(json.dumps({name: median(rates[name] for rates in rounds) for name in measurements}))


if __name__ == "__main__":
    main()
