"""Runs are found and followed as they begin, grow, are cut back, break and go."""

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from coex.config.grid import even_grid, model_grid
from coex.runs.lock import RunLock
from coex.runs.visits import describe_visits, saved_visits
from coex.watch import tail
from coex.watch.follow import MOST_POINTS, Follower, Points
from coex.watch.groups import compare, join, score
from coex.watch.runs import Runs, find_runs

from .conftest import append, write_archive, write_run


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    monkeypatch.setattr("coex.watch.runs._SCAN_SECONDS", 0.0)
    return Runs([tmp_path / "runs"])


def follow(path: Path) -> Follower:
    run = Follower(path, path.name)
    run.poll()
    return run


def test_only_what_has_changed_is_told(runs: Runs, tmp_path: Path) -> None:
    assert runs.overview(0)["runs"] == []
    first = write_run(tmp_path / "runs" / "deep" / "down" / "first")
    write_run(tmp_path / "runs" / "second", "montezuma")
    runs.poll()
    news = runs.overview(0)
    assert {card["name"] for card in news["runs"]} == {"runs/deep/down/first", "runs/second"}
    assert runs.overview(news["version"])["runs"] == []
    append(first, {"step": 11_000, "return_mean40": 11})
    runs.poll()
    later = runs.overview(news["version"])
    assert [card["newest"]["return_mean40"] for card in later["runs"]] == [11]
    assert list(later["games"]) == ["Freeway"]
    key = later["runs"][0]["id"]
    assert runs.detail(key, later["version"]) == {"epoch": runs.epoch, "version": later["version"]}
    shutil.rmtree(first)
    runs.poll()
    assert runs.overview(later["version"])["gone"] == [key]
    assert runs.detail(key, 0) is None


def test_a_log_that_was_cut_back_begins_anew(tmp_path: Path) -> None:
    run = follow(write_run(tmp_path / "run"))
    log = tmp_path / "run" / "metrics.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    # It grows beyond its old length before anyone looks: the size alone would not tell.
    log.write_text("".join(lines[:5]))
    append(tmp_path / "run", *({"step": 5_000 + 100 * i, "return_mean40": -i} for i in range(1, 40)))
    assert log.stat().st_size > len("".join(lines))
    assert run.poll()
    assert run.restarts == 1
    steps, values = run.points.series("return_mean40")
    assert steps == [1_000, 2_000, 3_000, 4_000, 5_000, *range(5_100, 9_000, 100)]
    assert values[-1] == -39
    log.unlink()
    run.poll()
    assert run.points.count == 0


def test_a_torn_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    run = follow(write_run(tmp_path / "run", steps=1))
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2000, "return')
        file.flush()
        run.poll()
        assert (run.points.count, run.num_broken) == (1, 0)
        file.write('_mean40": 5}\n')
    run.poll()
    assert run.points.newest["return_mean40"] == 5


def test_broken_runs_are_shown_as_far_as_they_go(tmp_path: Path, runs: Runs) -> None:
    root = tmp_path / "runs"
    broken = write_run(root / "broken", steps=1)
    bad = [
        '{"step": 5, "x": NaN, "big": 1e999, "flag": true, "text": "x", "list": [1]}',
        "[" * 5_000,
        "[]",
        '{"step": -1}',
        '{"step": "x"}',
        '{"step": 1' + "0" * 400 + "}",
        "\x00",
        '{"long": "' + "x" * 100_000 + '"}',
        '{"step": 7}',
    ]
    with (broken / "metrics.jsonl").open("a") as file:
        file.write("\n".join(bad) + "\n")
    for name, content in (
        ("no-json", "{"),
        ("a-list", "[]"),
        ("empty", ""),
        ("deep", "[" * 5_000),
        ("odd", '{"game": 5}'),
    ):
        (root / name).mkdir()
        (root / name / "config.json").write_text(content)
    (root / "link").symlink_to(broken)
    (root / "links").mkdir()
    (root / "links" / "config.json").symlink_to(broken / "config.json")
    os.mkfifo(root / "empty" / "metrics.jsonl")
    (root / "odd" / "episodes.csv").write_bytes(b"\xff\xfe,,\n1,2\n1,2,3,4,5,nan\n")
    runs.poll()
    news = runs.overview(0)
    cards = {card["name"]: card for card in news["runs"]}
    assert "runs/link" not in cards
    assert "left out: 7" in str(runs.detail(cards["runs/broken"]["id"], 0))
    assert cards["runs/broken"]["newest"]["step"] == 7
    assert {cards[f"runs/{name}"]["status"] for name in ("no-json", "a-list", "empty", "deep", "links")} == {"broken"}
    assert all(runs.detail(card["id"], 0) for card in cards.values())
    json.dumps(news, allow_nan=False)


def test_who_writes_a_run_is_found_without_touching_its_lock(tmp_path: Path, runs: Runs) -> None:
    run = write_run(tmp_path / "runs" / "one")
    runs.poll()
    with RunLock(run):
        runs.poll()
        assert runs.overview(0)["runs"][0]["status"] == "running"
    runs.poll()
    assert runs.overview(0)["runs"][0]["status"] == "stopped"
    (run / "summary.json").write_text('{"finished": true}')
    runs.poll()
    assert runs.overview(0)["runs"][0]["status"] == "finished"


def test_looking_leaves_a_mark_only_in_a_run_that_goes_on(tmp_path: Path, runs: Runs) -> None:
    run = write_run(tmp_path / "runs" / "one")
    runs.poll()
    key = runs.overview(0)["runs"][0]["id"]
    before = sorted(run.iterdir())
    assert runs.live(key) == {"map": None}
    assert sorted(run.iterdir()) == before
    with RunLock(run):
        runs.poll()
        (run / "live.json").write_text('{"play": 1}')
        assert runs.live(key) == {"play": 1, "map": None}
        assert (run / "watched").is_file()
        (run / "live.json").write_text("{" * 10_000)
        assert runs.live(key) == {"map": None}
        (run / "watched").unlink()
        (run / "watched").symlink_to(tmp_path / "elsewhere")
        runs._touched.clear()
        runs.live(key)
        assert not (tmp_path / "elsewhere").exists()


def test_foreign_code_in_a_method_is_not_imported(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    config = json.loads((run / "config.json").read_text()) | {"method": "a2c+this:Evil"}
    (run / "config.json").write_text(json.dumps(config))
    sys.modules.pop("this", None)
    followed = follow(run)
    assert "this" not in sys.modules
    assert followed.identity is not None
    assert followed.identity.method == "A2C+this:Evil"
    assert f"--config {run}/config.json" in followed.identity.command


def test_points_stay_few_and_true() -> None:
    points = Points()
    for i in range(10 * MOST_POINTS + 3):
        points.add({"step": float(i), "square": float(i * i)} | ({"late": 1.0} if i > 5_000 else {}))
    columns = points.columns()
    steps = [step for step in columns["step"] if step is not None]
    assert len(steps) <= MOST_POINTS + 1
    assert steps == sorted(set(steps))
    assert (steps[0], steps[-1]) == (0, 10 * MOST_POINTS + 2)
    assert columns["square"] == [step * step for step in steps]
    assert columns["late"] == [1 if step > 5_000 else None for step in steps]


def test_many_metrics_are_bounded() -> None:
    points = Points()
    points.add({"step": 1.0} | {f"metric-{i}": 1.0 for i in range(5_000)})
    assert len(points.columns()) == 120


def test_only_so_many_runs_are_followed(tmp_path: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    for index in range(8):
        write_run(tmp_path / "runs" / str(index), steps=1)
    monkeypatch.setattr("coex.watch.runs.MOST_RUNS", 5)
    runs.poll()
    assert len(runs.overview(0)["runs"]) == 5


def test_what_a_run_wrote_is_read_only_up_to_a_size(tmp_path: Path, runs: Runs) -> None:
    run = write_run(tmp_path / "runs" / "one")
    with (run / "episodes.csv").open("a") as file:
        file.writelines(f"{i},{i},0,1,9,0\n" for i in range(1_000))
    with RunLock(run):
        runs.poll()
        [card] = runs.overview(0)["runs"]
        detail = runs.detail(card["id"], 0)
        assert detail is not None
        assert len(detail["log"]) == 200
        scene = json.dumps({"play": "x" * 3_000_000})
        (run / "live.json").write_text(scene)
        assert runs.live(card["id"]) == {"play": "x" * 3_000_000, "map": None}
        (run / "live.json").write_text(scene + " " * 1_000_000)
        assert runs.live(card["id"]) == {"map": None}
        (run / "config.json").write_text((run / "config.json").read_text() + " " * 1_000_000)
        runs.poll()
        assert [card["status"] for card in runs.overview(0)["runs"]] == ["broken"]


def test_a_large_log_is_read_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "CHUNK", 2_000)
    run = follow(write_run(tmp_path / "run", steps=500))
    assert 0 < run.points.count < 500
    while run.poll():
        pass
    assert (run.points.count, run.num_broken) == (500, 0)


def test_two_hundred_runs_are_polled_without_reading_them_again(tmp_path: Path, runs: Runs, monkeypatch) -> None:
    model = write_run(tmp_path / "runs" / "0", steps=200)
    for index in range(1, 200):
        shutil.copytree(model, tmp_path / "runs" / str(index))
    runs.poll()
    assert len(runs.overview(0)["runs"]) == 200
    read = 0

    def count(line: bytes) -> None:
        nonlocal read
        read += 1

    monkeypatch.setattr("coex.watch.follow._parse_point", count)
    version = runs.overview(0)["version"]
    runs.poll()
    append(model, {"step": 300_000})
    runs.poll()
    assert read == 1
    assert len(runs.overview(version)["runs"]) == 1


def test_finding_goes_only_so_deep(tmp_path: Path) -> None:
    write_run(tmp_path / "a" / "b" / "c" / "d" / "e" / "f" / "g")
    inner = write_run(tmp_path / "a" / "run")
    write_run(inner / "within")
    (tmp_path / "a" / ".hidden").mkdir()
    write_run(tmp_path / "a" / ".hidden" / "run")
    assert [name for _, name in find_runs([tmp_path / "a"])] == ["a/run"]
    assert list(find_runs([tmp_path / "none"])) == []


def test_seeds_are_taken_together_at_the_steps_they_share(tmp_path: Path) -> None:
    followed = []
    for seed, best in enumerate((1.0, 2.0, 6.0, 3.0)):
        path = write_run(tmp_path / str(seed), steps=0, seed=seed)
        last = 200 if seed < 3 else 100
        append(
            path,
            *({"step": s, "return_mean40": best, "max_return_mean40": best * s / 100} for s in range(50, last + 1, 50)),
        )
        followed.append(follow(path))
    (group,) = compare(followed)
    assert (group["label"], group["seeds"], group["budget"]) == ("A2C", [0, 1, 2, 3], 100)
    assert (group["score"]["middle"], group["score"]["seeds"]) == (2.5, 4)  # of 1, 2, 3 and 6 without the ends
    assert 1 <= group["score"]["low"] < 2.5 < group["score"]["high"] <= 6
    few = score(followed[:2], 200)
    assert few is not None
    assert (few["middle"], few["low"], few["high"]) == (3, 2, 4)
    assert group["runs"] == [run.key for run in followed]
    other = follow(write_run(tmp_path / "other", learner={"gamma": 0.5}))
    assert [part["label"] for part in compare([*followed, other])] == ["A2C", "A2C (learner.gamma = 0.5)"]


def test_curves_are_joined_where_all_have_values() -> None:
    grid = np.linspace(0, 30, 7)
    curve = join(grid, [([0, 10, 20], [0, 10, 20]), ([10, 30], [0, 20])])
    assert curve["each"] == [[0, 5, 10, 15, 20, None, None], [None, None, 0, 5, 10, 15, 20]]
    assert curve["middle"] == [None, None, 5, 10, 15, None, None]
    assert (curve["low"][2], curve["high"][2]) == (0, 10)
    assert join(grid, [([0, 5], [1, 1]), ([25, 30], [1, 1])])["middle"] == [None] * 7
    assert join(grid, [([0, 30], [0, 30])])["middle"] == grid.tolist()
    empty = {"middle": [], "low": [], "high": [], "each": []}
    assert join(np.empty(0), []) == empty
    three = join(grid, [([0, 30], [value, value]) for value in (1, 2, 6)])
    assert (three["middle"], three["low"][0], three["high"][0]) == ([3] * 7, 1, 6)
    late = join(np.array([5.0]), [([5], [7])])  # a single log point
    assert late["middle"] == [7]


def test_the_map_counts_by_room_and_cell() -> None:
    rng = np.random.default_rng(0)
    keys = np.unique(rng.integers(0, 9, (400, 4)), axis=0)
    rng.shuffle(keys)
    counts = rng.integers(1, 50, len(keys))
    shown = describe_visits(
        7,
        "xycR",
        model_grid(9, 16),
        keys,
        counts,
        {3: np.zeros((84, 84), np.uint8)},
        np.array([[3, 8], [3, 8], [3, 1]]),
    )
    assert shown["num_states"] == len(keys)
    for room in shown["rooms"]:
        inside = keys[:, 2] == room["name"]
        assert room["visits"] == counts[inside].sum()
        assert room["states"] == inside.sum()
        expected = np.zeros((9, 9), int)
        for (x, y, _, _), visits in zip(keys[inside], counts[inside], strict=True):
            expected[y, x] += visits
        assert room["heat"] == expected.ravel().tolist()
        assert (room["picture"] is not None) == (room["name"] == 3)
        assert room["true"] == (8 if room["name"] == 3 else None)
    newest = list(dict.fromkeys(keys[:, 2].tolist()))[-1]
    assert [room["name"] for room in shown["rooms"] if room["newest"]] == [newest]
    assert shown["most"][0]["count"] == counts.max()
    assert shown["rarest"][0]["count"] == counts.min()


def test_a_checkpoint_that_cannot_be_read_has_no_map(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    assert saved_visits(run, "xyc", model_grid(9, 16)) is None
    place = run / "checkpoints" / "step-000000000100"
    place.mkdir(parents=True)
    (place / "arrays.npz").write_bytes(b"PK\x03\x04 broken")
    assert saved_visits(run, "xyc", model_grid(9, 16)) is None
    np.savez(place / "arrays.npz", other=np.zeros(3))
    assert saved_visits(run, "xyc", model_grid(9, 16)) is None


def test_only_what_a_map_is_made_of_must_be_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coex.runs.visits._LARGEST_ARRAY", 10_000)
    place = write_run(tmp_path / "run") / "checkpoints" / "step-000000000100"
    place.mkdir(parents=True)
    arrays = {
        "agent/bonus/counts/keys": np.array([[1, 2, 0]]),
        "agent/bonus/counts/counts": np.array([5]),
        "agent/diagnostics/album/rooms": np.array([0]),
        "agent/diagnostics/album/frames": np.zeros((1, 84, 84), np.uint8),
        "agent/explorer/archive/saved/joined": np.zeros(20_000, np.uint8),
    }
    np.savez(place / "arrays.npz", **arrays)
    shown = saved_visits(tmp_path / "run", "xyc", model_grid(9, 16))
    assert shown is not None
    assert shown["rooms"][0]["visits"] == 5
    arrays |= {"agent/bonus/counts/keys": np.zeros((2_000, 3), int), "agent/bonus/counts/counts": np.ones(2_000, int)}
    np.savez(place / "arrays.npz", **arrays)
    assert saved_visits(tmp_path / "run", "xyc", model_grid(9, 16)) is None
    monkeypatch.undo()
    assert saved_visits(tmp_path / "run", "xyc", model_grid(9, 16)) is not None


def test_a_checkpoint_tells_the_map_and_the_tree_of_ways(tmp_path: Path) -> None:
    write_archive(run := write_run(tmp_path / "run"))
    shown = saved_visits(run, "xycR", even_grid(9))
    assert shown is not None
    assert [room["name"] for room in shown["rooms"]] == [4, 7]
    assert [(node["name"], node["parent"], node["steps"]) for node in shown["ways"]] == [(4, None, 3), (7, 4, 8)]
