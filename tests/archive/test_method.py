"""The archive as a method: it finds a goal, teaches a policy that reaches it from real starts, and resumes exactly."""

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from benchmarks.kill import differences
from coex.analysis.evaluation import EvalConfig, evaluate
from coex.analysis.trained import find_saved
from coex.cli import main
from coex.config.presets import make_config
from coex.config.run import RunConfig
from coex.errors import CoexError, UsageError
from coex.runs.directory import read_metrics
from coex.training.loop import pick_device, train
from tests.report.test_page import Page

QUICK = {
    "explore_steps": 1_500, "burst_steps": 40, "num_starts": 2, "first_updates": 30, "num_updates": 10,
    "batch_size": 32, "search_steps": 200, "max_game_steps": 60, "stuck_steps": 60, "precision": "float32",
}  # fmt: skip

BRIEF = {
    "search_steps": 60, "shorten_steps": 200, "demonstrate_steps": 200, "cut_steps": 40, "max_game_steps": 60,
    "num_starts": 1,
}  # fmt: skip


def configure(game: str, method: str = "archive", steps: int = 2_000, **learner: Any) -> RunConfig:
    settings = {"total_steps": steps, "num_envs": 4, "num_workers": 0, "log_every_steps": 300}
    return make_config(game, method, settings | {"learner": QUICK | learner})


def test_it_finds_the_goal_and_teaches_the_way_to_it(hall: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    summary = train(configure(hall, steps=2_400, first_updates=80), out)
    assert summary["finished"]
    assert summary["setting"] == "deterministic environment"
    points = read_metrics(out)
    assert points[-1]["archive/best"] == 1
    assert points[-1]["archive/best_length"] < 20
    assert points[-1]["return_mean40"] > 0.9
    result = evaluate(find_saved(out, None, print), EvalConfig(episodes=8, num_workers=0), pick_device("cpu"))
    assert result["return_mean"] == 1
    sticky = EvalConfig(episodes=2, num_workers=0, sticky=0.25)  # only training must go without
    assert evaluate(find_saved(out, None, print), sticky, pick_device("cpu"))["sticky"] == 0.25
    assert result["length_mean"] < 15


@pytest.mark.parametrize("returns", ["restore", "replay"])
def test_every_step_counts(hall: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, returns: str) -> None:
    """Those that are played again to get back to a place, searches and trials too."""
    from coex.envs.atari import AtariGame
    from coex.envs.gym import GymGame

    kind, game = (AtariGame, "seaquest") if returns == "restore" else (GymGame, hall)
    taken, step = itertools.count(), kind.step

    def counted(self: Any, action: int) -> Any:
        next(taken)
        return step(self, action)

    monkeypatch.setattr(kind, "step", counted)
    learner = {"returns": returns, "explore_steps": 600, **BRIEF, "first_updates": 2, "num_updates": 2}
    train(configure(game, steps=6_000, **learner), tmp_path / "run")
    assert read_metrics(tmp_path / "run")[-1]["step"] == next(taken)
    assert read_metrics(tmp_path / "run")[-1]["teach/rounds"] >= 1


@pytest.mark.parametrize("method", ["archive", "archive-ram"])
def test_stopped_and_resumed_anywhere_it_ends_as_one_that_was_never_stopped(method: str, tmp_path: Path) -> None:
    learner = {"explore_steps": 900, **BRIEF, "first_updates": 4, "num_updates": 4}
    config = configure("seaquest", method, steps=3_200, **learner)
    train(config, tmp_path / "whole")
    asked = itertools.count()
    resumed = tmp_path / "resumed"
    summary = train(config, resumed, should_stop=lambda: next(asked) == 1)
    for _ in range(100):
        if summary["finished"]:
            break
        calls = itertools.count()
        summary = train(config, resumed, should_stop=lambda calls=calls: next(calls) == 2, resume=True)
    assert summary["finished"]
    assert differences(tmp_path / "whole", resumed) == []
    assert read_metrics(resumed)[-1]["teach/rounds"] >= 2


def test_the_number_of_workers_changes_nothing(tmp_path: Path) -> None:

    config = configure("seaquest", steps=700, explore_steps=5_000)
    train(config, tmp_path / "here")
    train(dataclasses.replace(config, num_workers=2), tmp_path / "workers")
    assert differences(tmp_path / "here", tmp_path / "workers") == []


def test_a_game_without_a_reward_is_explored_to_the_end(tmp_path: Path) -> None:
    train(configure("montezuma", "archive-ram", steps=700, explore_steps=400), tmp_path / "run")
    point = read_metrics(tmp_path / "run")[-1]
    assert (point["teach/rounds"], point["archive/best"]) == (0, 0)
    assert point["archive/cells"] > 3
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["setting"] == "resettable simulator"


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--sticky", "0.25"], "env.sticky"),
        (["--preset", "paper"], "--preset"),
        (["--set", "learner.burst_steps=0"], "burst_steps"),
        (["--set", "learner.returns=jump"], "returns"),
        (["--set", "bonus.state=cR"], "bonus.state"),
    ],
)
def test_bad_settings_get_a_line(
    options: list[str], part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert main(["train", "montezuma", "--method", "archive-ram", "--out", str(out), *options]) == 2
    line = capsys.readouterr().err
    assert part in line
    assert line.count("\n") == 1
    assert not out.exists()


def test_a_world_that_does_not_repeat_itself_ends_the_run_with_a_line(
    hall: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the goal pays whoever comes first, and nobody after."""
    world: Any = gymnasium.spec("LongHall-v0").entry_point
    step, paid = world.step, itertools.count()

    def pay_once(self: Any, action: int) -> Any:
        picture, reward, *rest = step(self, action)
        return picture, reward if reward and not next(paid) else 0.0, *rest

    monkeypatch.setattr(world, "step", pay_once)
    with pytest.raises(CoexError, match="does not repeat itself"):
        train(configure(hall), tmp_path / "run")
    assert next(paid) > 1


def test_actions_that_are_no_bytes_get_a_line(
    hall: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world: Any = gymnasium.spec("LongHall-v0").entry_point
    monkeypatch.setattr(world, "action_space", gymnasium.spaces.Discrete(257))
    out = ["--out", str(tmp_path / "run")]
    assert main(["train", hall, "--method", "archive", "--workers", "0", "--steps", "500", *out]) == 2
    assert "257 actions" in capsys.readouterr().err.splitlines()[-1]


def test_true_places_have_a_method_of_their_own() -> None:
    with pytest.raises(UsageError, match=r"use archive-ram$"):
        make_config("montezuma", "archive", {"bonus": {"locator": "ram"}})


def test_other_worlds_are_gone_back_to_by_replay(hall: str) -> None:
    assert configure(hall).learner.returns == "replay"
    with pytest.raises(UsageError, match="replay"):
        configure(hall, returns="restore")


def test_the_best_way_is_filmed_and_ends_with_its_score(hall: str, tmp_path: Path) -> None:
    from coex.report.play import play_best_way

    out = tmp_path / "run"
    train(configure(hall, steps=1_600), out)
    moments = list(play_best_way(find_saved(out, None, print)))
    assert (moments[0].score, moments[-1].score, moments[-1].action) == (0, 1, None)
    assert len(moments) == read_metrics(out)[-1]["archive/best_length"] + 1
    assert moments[3].sight.cell is not None
    assert main(["video", str(out), "--best-way", "--seconds", "1"]) == 0
    [film] = out.glob("best-way-*.mp4")
    film.unlink()
    assert main(["report", str(out)]) == 0  # the page has it beside the policy's film
    scene = Page(out / "report.html").scene
    assert film.exists()
    assert scene["way_film"].startswith("data:video/mp4;base64,")
    assert "not the policy" in scene["way_film_caption"]


def test_a_way_may_end_before_its_game(tmp_path: Path) -> None:
    from coex.archive.ways import Way, pack_ways
    from coex.report.play import play_best_way

    train(configure("montezuma", "archive-ram", steps=300), tmp_path / "run")
    saved = find_saved(tmp_path / "run", None, print)
    saved.state["agent"]["explorer"] |= {"best_score": 100.0, "best_way": pack_ways([Way(3).then(bytes(5))])}
    assert [moment.action for moment in play_best_way(saved)] == ["NOOP"] * 5 + ["–"]


def test_without_a_reward_there_is_no_best_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    train(configure("montezuma", "archive-ram", steps=300), run)
    assert main(["video", str(run), "--best-way"]) == 2
    assert "reward" in capsys.readouterr().err
    assert main(["report", str(run)]) == 0
    assert "way_film" not in Page(run / "report.html").scene
    assert not list(run.glob("best-way-*.mp4"))


def test_other_runs_have_no_best_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(make_config("freeway", "a2c", {"total_steps": 20, "num_envs": 2, "num_workers": 0}), tmp_path / "run")
    assert main(["video", str(tmp_path / "run"), "--best-way"]) == 2
    assert "--best-way" in capsys.readouterr().err


def test_a_run_too_short_to_teach_says_so(hall: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--envs", "2", "--workers", "0", "--set", "learner.burst_steps=20", "--set", "learner.explore_steps=60"]
    for steps, says_so in (("60", True), ("61", False)):
        out = ["--out", str(tmp_path / steps)]
        assert main(["train", hall, "--method", "archive", "--steps", steps, *options, *out]) == 0
        assert ("learner.explore_steps" in capsys.readouterr().err) == says_so
