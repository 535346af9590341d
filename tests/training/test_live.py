"""A run that is watched shows itself, and is otherwise the same run."""

import base64
import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from coex.config.presets import make_config
from coex.runs.directory import read_metrics
from coex.runs.visits import newest_checkpoint
from coex.training.loop import train

TIMINGS = ("seconds", "steps_per_second")


def run(out: Path, method: str, *, watched: bool) -> list[dict[str, object]]:
    """Trains a little; returns what it showed of itself, in turn."""
    learner = {"ppo": {"num_steps": 20, "num_epochs": 1}, "archive-ram": {"burst_steps": 20}}.get(method, {})
    settings = {"total_steps": 400, "num_envs": 2, "num_workers": 0, "log_every_steps": 40, "learner": learner,
                "env": {"max_episode_frames": 100, "stagger": 0}}  # fmt: skip
    shown: list[dict[str, object]] = []

    def look() -> bool:
        if watched:
            (out / "watched").touch()
            if (out / "live.json").is_file():
                scene = json.loads((out / "live.json").read_text())
                if shown[-1:] != [scene]:
                    shown.append(scene)
        return False

    train(make_config("montezuma", method, settings), out, should_stop=look)
    return shown


def state_of(out: Path) -> dict[str, np.ndarray]:
    place = newest_checkpoint(out)
    assert place
    with np.load(place / "arrays.npz") as arrays:
        found = {name: arrays[name] for name in arrays.files}
    return found | {"tensors": np.frombuffer((place / "tensors.safetensors").read_bytes(), np.uint8)}


@pytest.mark.parametrize("method", ["a2c+coex", "ppo", "archive-ram"])
def test_a_watched_run_has_the_same_numbers(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coex.training.live._LOOK_SECONDS", 0.0)
    monkeypatch.setattr("coex.training.live._SHARE", 1e9)  # whatever it costs
    alone, watched = tmp_path / "alone", tmp_path / "watched"
    assert run(alone, method, watched=False) == []
    shown = run(watched, method, watched=True)
    assert len(shown) >= 3
    first, second = (
        [{name: value for name, value in point.items() if name not in TIMINGS} for point in read_metrics(out)]
        for out in (alone, watched)
    )
    assert first == second
    assert (alone / "episodes.csv").read_text() == (watched / "episodes.csv").read_text()
    one, other = state_of(alone), state_of(watched)
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert not (alone / "live.json").exists()
    assert not (watched / "live.json").exists()  # what was true for a moment does not stay


def test_what_is_shown_is_what_happened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coex.training.live._LOOK_SECONDS", 0.0)
    monkeypatch.setattr("coex.training.live._SHARE", 1e9)
    scene = run(tmp_path / "run", "a2c+coex", watched=True)[-1]
    play, visits = scene["play"], scene["map"]
    assert isinstance(play, dict)
    assert isinstance(visits, dict)
    strip = cv2.imdecode(np.frombuffer(base64.b64decode(play["picture"]), np.uint8), cv2.IMREAD_COLOR)
    assert strip.shape == (16 * 160, 160, 3)
    assert len(play["frames"]) == 16
    for frame in play["frames"]:
        attention = np.array(frame["attention"])
        assert attention.sum() == pytest.approx(1, abs=0.05)
        # Rounded values may tie, so the cell is among the largest.
        x, y = frame["cell"]
        assert attention.reshape(9, 9)[y, x] == attention.max()
        assert frame["bonus"] == pytest.approx(frame["visits"] ** -0.5, abs=1e-4)
        assert frame["action"]
        ((left, top, width, height),) = frame["truth"]
        assert 0 <= left <= left + width <= 1
        assert 0 <= top <= top + height <= 1
    assert sum(room["visits"] for room in visits["rooms"]) == visits["step"] == play["stamp"]
    assert all(sum(room["heat"]) == room["visits"] for room in visits["rooms"])


def test_nothing_is_done_when_nobody_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coex.training.live._LOOK_SECONDS", 0.0)
    monkeypatch.setattr("coex.training.live.LiveView._record", lambda *_: pytest.fail("it looked"))
    assert run(tmp_path / "run", "a2c", watched=False) == []


def test_an_archive_shows_its_map_and_its_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coex.training.live._LOOK_SECONDS", 0.0)
    monkeypatch.setattr("coex.training.live._SHARE", 1e9)
    out, scenes = tmp_path / "run", list[dict[str, dict[str, object]]]()

    def look() -> bool:
        (out / "watched").touch()
        if (out / "live.json").is_file():
            scenes.append(json.loads((out / "live.json").read_text()))
        return len(scenes) > 2

    settings = {"num_envs": 2, "num_workers": 0, "learner": {"burst_steps": 20}}
    train(make_config("montezuma", "archive-ram", settings), out, should_stop=look)
    assert scenes[-1]["play"] is None
    (node,) = scenes[-1]["map"]["ways"]  # type: ignore[misc]
    assert (node["name"], node["parent"], node["steps"]) == (1, None, 1)  # type: ignore[index]
    assert not (out / "live.json").exists()
