"""Killed and resumed, a run ends as if nothing had happened."""

import copy
import dataclasses
import itertools
import json
import os
import re
import resource
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from benchmarks.kill import differences, events
from coex.cli import main
from coex.config.learners import RewardConfig
from coex.config.presets import make_config
from coex.errors import CoexError, UsageError
from coex.learners.batch import LargestReward, Rewards, make_rewards
from coex.runs.checkpoints import CheckpointStore
from coex.runs.directory import read_metrics
from coex.runs.lock import RunLock
from coex.runs.resume import saved_config
from coex.runs.stopping import StopSignal
from coex.training.loop import train
from tests.children import Children

SETTINGS = {
    "total_steps": 600,
    "num_envs": 4,
    "num_workers": 0,
    "log_every_steps": 80,
    "env": {"sticky": 0.25, "max_episode_frames": 200},
    "checkpoint": {"every_steps": 60},
}


# A PPO iteration of 60 steps; A2C's are 20.
SHORT = {"ppo": {"learner": {"num_steps": 15}}, "a2c": {}}


def configure(method: str = "a2c", game: str = "montezuma", **settings: Any) -> Any:
    return make_config(game, method, SETTINGS | SHORT[method.partition("+")[0]] | settings)


def arguments(method: str, out: Path, steps: int = 600, workers: int = 0) -> list[str]:
    options = f"train montezuma --method {method} --steps {steps} --envs 4 --workers {workers} --sticky 0.25 --resume"
    settings = ["log_every_steps=80", "env.max_episode_frames=200", "checkpoint.every_steps=60"]
    settings += ["learner.num_steps=15"] if method.startswith("ppo") else []
    sets = (part for setting in settings for part in ("--set", setting))
    return [*options.split(), "--quiet", "--out", str(out), *sets]


# In the middle of its work, between a point's line and its event, and in the course of writing a checkpoint.
ITERATING, LOGGING = "coex.training.agent:Agent.iterate", "coex.runs.events:EventWriter.add"
WRITING, PLACING, PRUNING = "coex.runs.checkpoints.manifest:describe", "pathlib:Path.rename", "shutil:rmtree"
KILLS = {
    "a2c": (ITERATING, WRITING),
    "a2c+coex": (LOGGING, PLACING),
    "a2c+coex-ram": (WRITING, LOGGING),
    "a2c+simhash": (PLACING, PRUNING),
    "ppo": (PRUNING, LOGGING),
    "ppo+coex": (ITERATING, WRITING),
}


@pytest.mark.parametrize("method", KILLS)
def test_killed_and_resumed_runs_end_as_one_that_was_never_stopped(
    method: str, tmp_path: Path, children: Children
) -> None:
    """Killed twice, at the methods' different moments; the plain learner with worker processes, too."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    train(configure(method), whole)
    store = CheckpointStore(killed)
    for moment, step in zip(KILLS[method], (120, 300), strict=True):
        children.start(*arguments(method, killed, workers=2 * (method == "a2c")), moment=(moment, killed, step))
        assert children.wait() == -signal.SIGKILL
        assert step <= store.steps()[-1] <= step + 60
        assert bool(list(store.path.glob(".tmp-*"))) == (moment in (WRITING, PLACING))
    assert main(["resume", str(killed), "--quiet"]) == 0
    assert differences(whole, killed) == []
    assert not list(store.path.glob(".tmp-*"))
    assert len(store.steps()) == 3
    assert json.loads((killed / "summary.json").read_text())["finished"]


def test_checkpoints_do_not_change_a_run(tmp_path: Path) -> None:
    train(configure("a2c+coex", total_steps=300, checkpoint={"every_steps": 20}), tmp_path / "often")
    train(configure("a2c+coex", total_steps=300, checkpoint={"every_minutes": 0}), tmp_path / "never")
    assert differences(tmp_path / "often", tmp_path / "never") == []


def test_a_run_can_be_extended(tmp_path: Path) -> None:
    centred = {"centre_observations": True}  # the mean picture goes on too
    first = configure(total_steps=180, schedule_steps=300, learner=centred)  # an end between two log points
    train(first, tmp_path / "extended")
    assert main(["resume", str(tmp_path / "extended"), "--steps", "3e2", "--quiet"]) == 0
    train(configure(total_steps=300, learner=centred), tmp_path / "whole")
    assert differences(tmp_path / "whole", tmp_path / "extended") == []
    learner = CheckpointStore(tmp_path / "extended").read(300).state["agent"]["learner"]
    assert learner["network"]["frames_seen"] == 300
    assert json.loads((tmp_path / "extended" / "config.json").read_text())["total_steps"] == 300


def test_no_step_appears_twice_in_any_log(tmp_path: Path) -> None:
    """A run that is stopped between two checkpoints has logged what it will do again."""
    out, calls = tmp_path / "run", iter(range(1_000))
    config = configure(total_steps=400, checkpoint={"every_steps": 0}, log_every_steps=40)
    train(config, out, should_stop=lambda: next(calls) == 12)
    stopped = max(CheckpointStore(out).steps())
    shutil.rmtree(CheckpointStore(out).path_of(stopped))  # as if it had been killed there: only step 0 is left
    train(config, out, resume=True)
    steps = [point["step"] for point in read_metrics(out)]
    assert steps == list(range(40, 401, 40))
    for tag, points in events(out).items():
        assert [step for step, _ in points] == sorted({step for step, _ in points}), tag
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    shown = EventAccumulator(str(out / "tensorboard")).Reload().Scalars("policy_loss")
    assert [event.step for event in shown] == steps
    episodes = (out / "episodes.csv").read_text().splitlines()[1:]
    assert [int(row.split(",")[0]) for row in episodes] == list(range(len(episodes)))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "finished"
    train(configure("a2c+coex", total_steps=400, checkpoint={"every_steps": 100}), out)
    return out


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A finished run of its own for each test, with the checkpoints 200, 300 and 400."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def resume(run: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    code = main(["resume", str(run), "--quiet", *options])
    errors = capsys.readouterr().err
    assert "Traceback" not in errors
    return code, errors


def damage(run: Path, step: int) -> None:
    path = CheckpointStore(run).path_of(step) / "arrays.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_finished_run_says_so(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    assert main(["resume", str(run)]) == 0
    assert " 400 " in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


def test_a_damaged_newest_checkpoint_is_named_and_the_one_before_used(
    run: Path, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(run, 400)
    (run / "summary.json").unlink()
    code, errors = resume(run, capsys)
    assert code == 0
    assert re.search("step-000000000400 .*arrays.npz", errors)
    assert differences(finished, run) == []
    assert (run / "checkpoints" / "damaged-step-000000000400").exists()


def test_a_run_whose_checkpoints_are_all_damaged_stops(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for step in (200, 300, 400):
        damage(run, step)
    before = (run / "metrics.jsonl").read_bytes()
    code, errors = resume(run, capsys, "--steps", "500")
    assert code == 1
    assert "none of the 3 checkpoints" in errors.splitlines()[-1]
    assert (run / "metrics.jsonl").read_bytes() == before
    shutil.rmtree(run / "checkpoints")
    code, errors = resume(run, capsys, "--steps", "500")
    assert (code, errors.count("\n"), str(run) in errors) == (1, 1, True)
    assert (run / "metrics.jsonl").read_bytes() == before


def test_a_run_killed_before_its_first_checkpoint_begins_again(
    run: Path, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("checkpoints", "tensorboard"):
        shutil.rmtree(run / name)
    for name in ("metrics.jsonl", "episodes.csv", "summary.json"):
        (run / name).unlink()
    code, errors = resume(run, capsys)
    assert (code, "it begins at step 0" in errors) == (0, True)
    assert differences(finished, run) == []


def change(run: Path, **settings: Any) -> None:
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(config | settings))


def test_what_does_not_fit_is_said_in_one_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis").mkdir()

    def refused(directory: Path, message: str, *options: str) -> None:
        code, errors = resume(directory, capsys, *options)
        assert code == 2
        assert errors.count("\n") == 1
        assert message in errors

    refused(tmp_path / "none", str(tmp_path / "none"))
    refused(tmp_path / "thesis", "config.json")
    assert not (tmp_path / "none").exists()
    assert not list((tmp_path / "thesis").iterdir())
    refused(run, "step 400 ", "--steps", "300")
    refused(run, "total_steps", "--steps", "many")
    refused(run, "use --device cpu", "--steps", "500", "--device", "cuda")
    change(run, num_envs=5)
    refused(run, "num_envs is 5, not 4", "--steps", "500")
    change(run, num_envs=4, game="Hero")
    refused(run, "game is Hero, not MontezumaRevenge", "--steps", "500")
    change(run, game="MontezumaRevenge", method="ppo9")
    refused(run, "unknown method", "--steps", "500")
    (run / "config.json").write_text("{")
    refused(run, "not JSON")


def test_links_in_a_run_are_not_followed(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outside = tmp_path / "outside.jsonl"
    (run / "metrics.jsonl").rename(outside)
    (run / "metrics.jsonl").symlink_to(outside)
    before = outside.read_bytes()
    code, errors = resume(run, capsys, "--steps", "500")
    assert (code, "metrics.jsonl is a link" in errors) == (2, True)
    assert outside.read_bytes() == before


def test_train_resumes_only_the_same_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = ["train", "--config", str(run / "config.json"), "--resume"]
    assert main([*again, "--out", str(run)]) == 0
    assert "is finished" in capsys.readouterr().err
    assert main([*again, "--out", str(run), "--set", "learner.gamma=0.5"]) == 2
    assert "learner.gamma is 0.99, not 0.5" in capsys.readouterr().err
    assert main(again) == 2
    assert "--resume needs --out" in capsys.readouterr().err


def test_the_place_may_change(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = ["train", "--config", str(run / "config.json"), "--resume", "--out", str(run)]
    assert main([*again, "--workers", "2", "--set", "log_every_steps=50", "--set", "checkpoint.keep=9"]) == 0
    assert resume(run, capsys, "--steps", "500", "--workers", "2")[0] == 0
    assert json.loads((run / "config.json").read_text())["num_workers"] == 2
    assert resume(run, capsys, "--steps", "600", "--workers", "-2")[0] == 2


def test_a_run_has_one_writer(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RunLock(run):
        code, errors = resume(run, capsys, "--steps", "500")
        assert (code, f"in use by process {os.getpid()}" in errors) == (2, True)
    (run / "lock").write_text("999999\n")  # a dead process leaves its number behind, and nothing else
    assert resume(run, capsys, "--steps", "500")[0] == 0
    with RunLock(tmp_path / "new"), pytest.raises(UsageError, match="in use"):
        train(configure(), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def wait_until(happened: Callable[[], object], pid: int) -> None:
    while not happened():
        os.kill(pid, 0)  # raises once the process is gone
        time.sleep(0.01)


def test_a_killed_runs_lock_is_free_at_once(tmp_path: Path, children: Children) -> None:
    """Its workers may live on for a moment, but they do not hold it."""
    out = tmp_path / "run"
    pid = children.start(*arguments("a2c", out, steps=10**9, workers=2))
    wait_until(lambda: CheckpointStore(out).steps(), pid)
    with pytest.raises(UsageError, match=f"in use by process {pid}"), RunLock(out):
        pass
    os.kill(pid, signal.SIGKILL)
    assert children.wait() == -signal.SIGKILL
    with RunLock(out):
        pass


def test_minigrid_goes_on_as_if_it_had_never_been_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = make_config(
        "gym:MiniGrid-Empty-5x5-v0", "a2c+coex",
        {"total_steps": 400, "num_envs": 2, "num_workers": 0, "log_every_steps": 100},
    )  # fmt: skip
    calls = iter(range(1_000))
    train(config, tmp_path / "run", should_stop=lambda: next(calls) == 15)
    train(config, tmp_path / "run", resume=True)
    train(config, tmp_path / "whole")
    assert "new episode" not in capsys.readouterr().err
    assert (tmp_path / "run" / "episodes.csv").read_text() == (tmp_path / "whole" / "episodes.csv").read_text()
    resumed, whole = (
        [
            {name: value for name, value in point.items() if name not in ("seconds", "steps_per_second")}
            for point in points
        ]
        for points in (read_metrics(tmp_path / "run"), read_metrics(tmp_path / "whole"))
    )
    assert resumed == whole


class Noise(gymnasium.Env[np.ndarray, int]):
    """Shows something else whenever it is played."""

    observation_space = gymnasium.spaces.Box(0, 255, (40, 40, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[np.ndarray, dict[str, object]]:
        return self._look(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, object]]:
        return self._look(), 0.0, False, False, {}

    def _look(self) -> np.ndarray:
        return np.frombuffer(os.urandom(40 * 40 * 3), np.uint8).reshape(40, 40, 3)


gymnasium.register("CoexNoise-v0", entry_point=Noise)


def test_a_world_that_does_not_repeat_itself_begins_new_episodes_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = iter(range(1_000))
    config = make_config("gym:CoexNoise-v0", "a2c", {"total_steps": 100, "num_envs": 2, "num_workers": 0})
    train(config, tmp_path / "run", should_stop=lambda: next(calls) == 5)
    summary = train(config, tmp_path / "run", resume=True)
    assert summary["step"] == 100
    assert "2 environments begin a new episode" in capsys.readouterr().err


def test_a_checkpoint_without_a_setting_of_today_is_refused(run: Path) -> None:
    saved = CheckpointStore(run).read(400)
    assert saved_config(saved).to_dict() == saved.manifest.config
    settings = copy.deepcopy(saved.manifest.config)
    del settings["bonus"]["adm"]["contrast"]  # its default would make another model of the same weights
    earlier = dataclasses.replace(saved, manifest=dataclasses.replace(saved.manifest, config=settings))
    with pytest.raises(UsageError, match=r"step 400 .* bonus\.adm\.contrast"):
        saved_config(earlier)


def test_a_loss_that_is_no_number_names_the_last_good_checkpoint(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def poisoned(rewards: torch.Tensor, bonus: torch.Tensor, config: RewardConfig, largest: LargestReward) -> Rewards:
        return make_rewards(torch.full_like(rewards, float("nan")), bonus, config, largest)

    monkeypatch.setattr("coex.training.agent.make_rewards", poisoned)
    with pytest.raises(CoexError, match=r"step 400: .* nan.*step-000000000400"):
        train(configure("a2c+coex", total_steps=800), run, resume=True)
    assert CheckpointStore(run).steps() == [200, 300, 400]
    CheckpointStore(run).read(400)


def test_a_full_disk_keeps_the_previous_checkpoint_and_training(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    config = configure("a2c+coex", total_steps=700, checkpoint={"every_steps": 100})
    calls = iter(range(1_000))

    def fill_then_make_room() -> bool:
        call = next(calls)
        if call == 0:  # once the environments have their shared memory, which is a file, too
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
        if call == 8:  # after the checkpoint of step 500 was due
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        return False

    try:
        summary = train(config, run, should_stop=fill_then_make_room, resume=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (summary["step"], summary["finished"]) == (700, True)
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 1
    assert re.search("step 500 .*File too large", errors[0])
    assert errors[0].endswith("step-000000000400")
    assert CheckpointStore(run).steps() == [400, 600, 700]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_a_long_iteration_ends_it_with_everything_saved(
    number: int, tmp_path: Path, children: Children
) -> None:
    """An iteration of 8,192 steps would take many seconds: it is abandoned, and the run is as at its beginning."""
    out, errors = tmp_path / "run", tmp_path / "errors"
    options = f"train freeway --steps 1e6 --workers 0 --out {out} --set learner.num_steps=512"
    pid = children.start(*options.split(), errors=errors)
    wait_until(lambda: CheckpointStore(out).steps(), pid)
    time.sleep(1)  # into the iteration
    os.kill(pid, number)
    assert children.wait() == 128 + number
    assert "Traceback" not in errors.read_text()
    assert "0 steps" in errors.read_text().splitlines()[-1]
    assert CheckpointStore(out).steps() == [0]


@pytest.mark.slow
def test_an_iteration_may_be_abandoned_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signals at odd moments of long iterations: what is saved is the state at the iteration's beginning."""
    monkeypatch.setattr("coex.runs.saver._LONG_SECONDS", 0.0)
    config = configure("a2c+coex", total_steps=2_400, learner={"num_steps": 50}, checkpoint={"every_minutes": 0})
    train(config, tmp_path / "whole")
    out, steps = tmp_path / "stopped", []
    for delay in (0.05, 0.4, 0.8):
        with StopSignal() as stop:

            def interrupting(stop: StopSignal = stop, delay: float = delay, entries: Any = itertools.count()) -> Any:
                if next(entries) == 1:  # the second iteration, whose beginning is held in memory only
                    threading.Timer(delay, os.kill, (os.getpid(), signal.SIGTERM)).start()
                return stop.interrupting()

            summary = train(config, out, None, stop.received, interrupting, resume=out.exists())
        steps.append(summary["step"])
        assert stop.code == 143
        assert CheckpointStore(out).steps()[-1] == summary["step"] < 2_400
    assert steps == sorted(set(steps))
    train(config, out, resume=True)
    assert differences(tmp_path / "whole", out) == []
