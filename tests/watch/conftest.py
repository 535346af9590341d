"""Runs made of files alone, and a server that shows them."""

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from coex.config.presets import make_config
from coex.watch.runs import DescribeGrid, Runs
from coex.watch.server import WatchServer

Serve = Callable[..., WatchServer]


def write_run(path: Path, game: str = "freeway", method: str = "a2c", steps: int = 10, **settings: object) -> Path:
    """A stopped run with a log point every 1,000 steps, its return the number of the point."""
    path.mkdir(parents=True)
    config = make_config(game, method, {"total_steps": 100_000, **settings})
    (path / "config.json").write_text(json.dumps(config.to_dict()))
    append(path, *({"step": 1_000 * i, "return_mean40": i, "max_return_mean40": i} for i in range(1, steps + 1)))
    (path / "episodes.csv").write_text("episode,step,env,return,length,truncated\n0,16,3,1.5,12,1\n")
    return path


def append(path: Path, *points: dict[str, object]) -> None:
    with (path / "metrics.jsonl").open("a") as file:
        file.writelines(json.dumps(point) + "\n" for point in points)


def write_archive(run: Path) -> None:
    """A checkpoint with two rooms: the second was reached from the first."""
    place = run / "checkpoints" / "step-000000000100"
    place.mkdir(parents=True)
    counts, album, archive = "agent/bonus/counts/", "agent/diagnostics/album/", "agent/explorer/archive/"
    np.savez(
        place / "arrays.npz",
        **{
            counts + "keys": np.array([[1, 2, 4, 0], [3, 4, 7, 100]]),
            counts + "counts": np.array([5, 1]),
            album + "rooms": np.array([4, 7]),
            album + "frames": np.zeros((2, 84, 84), np.uint8),
            archive + "cells": np.array([[4, 0, 1, 2], [7, 0, 3, 4]]),
            archive + "scores": np.array([0.0, 100.0]),
            archive + "ways/index": np.array([1, 2]),
            archive + "ways/parents": np.array([-1, 0, 1]),
            archive + "ways/actions/lengths": np.array([0, 3, 5]),
        },
    )


@contextmanager
def serving(*roots: Path, describe_grid: DescribeGrid = lambda *_: None, **options: str) -> Iterator[WatchServer]:
    runs = Runs(roots, describe_grid=describe_grid)
    runs.poll()
    with WatchServer(runs, 0, **options) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WatchServer]:
    write_run(tmp_path / "runs" / "one")
    with serving(tmp_path / "runs") as server:
        yield server


def ask(server: WatchServer, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """One request; `Host` and others by keyword, with _ for -."""
    port = server.server_address[1]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    given = {"Host": f"127.0.0.1:{port}"} | {k.replace("_", "-"): v for k, v in headers.items()}
    for name, value in given.items():
        if value:
            connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found
