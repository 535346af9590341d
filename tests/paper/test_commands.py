"""`coex paper`, as a user types it."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from coex.cli import main
from coex.config.presets import make_config
from coex.paper.cluster_samples import Samples, take_samples
from coex.paper.curves import curve_path, key_of, read_curve
from coex.paper.studies import STUDIES
from coex.training.loop import train

FREEWAY = "paper table1 --games freeway --methods a2c --steps 800 --seeds 1 --workers 0 --quiet"


@pytest.fixture(autouse=True)
def in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("paper tabel1", "closest: table1"),
        ("paper table1 --steps 800 --seeds 0", "--seeds"),
        ("paper table1 --steps many", "--steps"),
        ("paper table1 --steps 0", "--steps"),
        ("paper table1 --steps 800 --workers -1", "--workers"),
        ("paper table1 --steps 800 --games pacmann", "unknown game 'pacmann'"),
        ("paper table1 --steps 800 --methods a2d", "a2c, a2c+simhash"),
        ("paper table1 --steps 800 --games gym:MiniGrid-Empty-5x5-v0", "has no RAM truth"),
        ("paper table1 --steps 800 --device toaster", "--device takes cpu"),
        ("paper adm-ablation --steps 800 --games gym:CartPole-v1", "has no RAM truth"),
        ("paper --add nowhere", "nowhere"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(
    arguments: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments.split()) == 2
    assert message in capsys.readouterr().err.strip().splitlines()[-1]
    assert not list(Path().rglob("config.json"))


def test_the_list_names_every_table_and_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(STUDIES)
    assert all("not run" in line for line in lines)


def test_nothing_runs_without_a_budget(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "table1"]) == 0
    assert "--steps 100000000 --seeds 3" in capsys.readouterr().out
    assert not list(Path().iterdir())


def test_rendering_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "table1", "--render"]) == 0
    assert "not run" in capsys.readouterr().err
    assert "not run" in Path("results/paper/table1.md").read_text()


@pytest.mark.slow
def test_from_runs_to_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(FREEWAY.split()) == 0
    run = Path("runs/paper/Freeway/a2c/800/s0")
    assert json.loads((run / "summary.json").read_text())["finished"]
    assert "· 800 × 1 | not run |" in Path("results/paper/table1.md").read_text()
    written = (run / "summary.json").stat().st_mtime_ns
    assert main(FREEWAY.split()) == 0  # there is nothing left to do
    assert (run / "summary.json").stat().st_mtime_ns == written

    shutil.rmtree("runs")  # as on a fresh clone, where only results/ is
    Path("results/paper/table1.md").unlink()
    capsys.readouterr()
    assert main(FREEWAY.split()) == 0
    assert main(["paper", "table1", "--render"]) == 0
    assert "1 of 32 measured, to 800 steps" in capsys.readouterr().err
    assert "· 800 × 1" in Path("results/paper/table1.md").read_text()
    assert not Path("runs").exists()


@pytest.mark.slow
def test_a_run_left_half_way_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    config = make_config("freeway", "a2c", {"total_steps": 800, "num_workers": 0})
    run, asked = Path("runs/paper") / key_of(config).path, 0

    def stop_after_four() -> bool:
        nonlocal asked
        asked += 1
        return asked > 4

    assert train(config, run, should_stop=stop_after_four)["step"] == 320
    assert main(["paper", "table1", "--render", "--quiet"]) == 0
    assert read_curve(curve_path(key_of(config), Path("results/paper"))).reached == 320
    assert "· 320 × 1" in Path("results/paper/table1.md").read_text()
    assert main([word for word in FREEWAY.split() if word != "--quiet"]) == 0
    assert "going on from step 320" in capsys.readouterr().err
    assert read_curve(curve_path(key_of(config), Path("results/paper"))).reached == 800


@pytest.mark.slow
def test_runs_made_elsewhere_are_added_once_and_never_shortened(capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"total_steps": 240, "num_envs": 16, "num_workers": 0}
    train(make_config("freeway", "a2c", settings), Path("mine"))
    assert main(["paper", "--add", "mine"]) == 0
    out, err = capsys.readouterr()
    kept = Path(out.strip())
    assert (kept, err) == (Path("results/paper/curves/Freeway/a2c/240/s0.csv"), "")
    assert json.loads(kept.with_suffix(".json").read_text())["method"] == "a2c"
    kept.write_text("step\n240\n999\n")
    assert main(["paper", "--add", "mine"]) == 0
    assert read_curve(kept).reached == 999
    config = json.loads(Path("mine/config.json").read_text())
    del config["learner"]["gamma"]  # as if the setting had come later
    Path("mine/config.json").write_text(json.dumps(config))
    assert main(["paper", "--add", "mine"]) == 0
    assert "learner.gamma" in capsys.readouterr().err


@pytest.mark.slow
def test_signals_stop_and_the_next_call_goes_on() -> None:
    arguments = "paper table1 --games freeway --methods a2c --steps 1600 --seeds 1 --workers 1"
    command = [sys.executable, "-m", "coex.cli", *arguments.split()]
    run = Path("runs/paper/Freeway/a2c/1600/s0")
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not (run / "metrics.jsonl").exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "runs to go: 1" in err
    assert "Traceback" not in err
    assert main([*arguments.split(), "--quiet"]) == 0
    assert read_curve(Path("results/paper/curves/Freeway/a2c/1600/s0.csv")).is_finished


@pytest.mark.slow
def test_the_ablation_on_recorded_play_runs_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["paper", "adm-ablation", "--games", "freeway", "--steps", "160", "--methods", "adm-action,adm-all"]
    assert main([*arguments, "--seeds", "1"]) == 0
    curves = Path("results/paper/curves/Freeway")
    first = {path: path.read_text() for path in curves.rglob("*.csv")}
    assert {path.relative_to(curves).as_posix() for path in first} == {
        "adm-action/160/s0.csv",
        "adm-all/160/s0.csv",
    }
    capsys.readouterr()
    assert main([*arguments, "--seeds", "2"]) == 0
    said = capsys.readouterr().err
    assert "recording" not in said
    assert "seed 0" not in said
    assert all(path.read_text() == text for path, text in first.items())
    assert read_curve(curves / "adm-all/160/s1.csv").points[-1]["adm/distance"] > 0
    assert Path("results/paper/adm-ablation.png").stat().st_size < 300_000


@pytest.mark.slow
def test_clusters_of_a_run_are_shown_and_kept() -> None:
    config = make_config("montezuma", "a2c+coex", {"total_steps": 80, "num_workers": 0})
    run = Path("runs/paper") / key_of(config).path
    train(config, run)
    samples = take_samples(run, observations=160)
    assert samples.step == 80
    assert samples.sizes.sum() == 160
    assert samples.frames.shape == (len(samples.sizes), 3, 84, 84, 3)
    assert samples.frames[0].any(axis=(1, 2, 3)).all()  # none of the largest cluster's is black
    kept = Path("results/paper/clusters/MontezumaRevenge.npz")
    samples.save(kept)
    shutil.rmtree("runs")
    assert main(["paper", "cluster-samples", "--render", "--quiet"]) == 0
    np.testing.assert_array_equal(Samples.load(kept).frames, samples.frames)
    assert Path("results/paper/cluster-samples.png").stat().st_size < 300_000
