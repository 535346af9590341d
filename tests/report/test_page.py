"""The report: the live page in one file, whole, self-contained, and honest about what is missing."""

import json
import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from coex import watch
from coex.cli import main
from coex.runs.lock import RunLock

CopyRun = Callable[..., Path]


class Page(HTMLParser):
    """What a saved page would load, and the data in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self._tag = ("", False)
        self._embedded = ""
        self.feed(path.read_text())
        self.close()
        self.data: dict[str, Any] = json.loads(self._embedded)
        assert all(load.startswith(("data:", "#")) for load in self.loads)

    @property
    def only(self) -> dict[str, Any]:
        (run,) = self.data["runs"].values()
        return run

    @property
    def scene(self) -> dict[str, Any]:
        (scene,) = self.data["scenes"].values()
        return scene

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [value or "" for name, value in attrs if name in ("src", "href", "poster", "srcset", "data")]
        self._tag = tag, ("id", "embedded") in attrs

    def handle_data(self, data: str) -> None:
        if self._tag == ("script", True):
            self._embedded += data
            self._tag = "", False


def report(*arguments: str | Path) -> int:
    return main(["report", *map(str, arguments)])


def test_a_run_with_its_video_in_one_page(coex_run: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "deep" / "page.html"
    assert report(coex_run, "--out", out) == 0
    page = Page(out)
    assert str(coex_run / "video-240.mp4") in capsys.readouterr().out
    run, scene = page.only, page.scene
    assert page.data["single"] == run["id"]
    assert (run["game"], run["method"], run["status"]) == ("MontezumaRevenge", "A2C+CoEX", "finished")
    assert run["paper"] == [6635, 100_000_000]
    assert {"return_mean40", "adm/distance", "rooms/ari", "steps_per_second"} <= run["columns"].keys()
    assert run["columns"]["step"][-1] == 240
    assert run["command"].startswith("coex train MontezumaRevenge --method a2c+coex --steps 240")
    assert "learner.gamma" in [name for name, _, _ in run["settings"]]
    assert scene["film"].startswith("data:video/mp4;base64,")
    assert scene["map"]["step"] == 240
    assert scene["map"]["rooms"][0]["true"] == 1
    assert sum(room["visits"] for room in scene["map"]["rooms"]) == 240
    assert len(list(out.parent.iterdir())) == 1
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', out.read_text())
    assert policy
    assert "unsafe" not in policy[1]


def test_the_default_place_and_no_video(plain_run: Path, copy_run: CopyRun) -> None:
    run = copy_run(plain_run)
    assert report(run, "--no-video") == 0
    page = Page(run / "report.html")
    assert not list(run.glob("*.mp4"))
    assert page.only["game"] == "MiniGrid-Empty-5x5-v0"
    assert page.only["paper"] is None
    assert page.scene == {"map": None}


def test_metrics_alone_are_enough(coex_run: Path, copy_run: CopyRun, capsys) -> None:
    run = copy_run(coex_run)
    shutil.rmtree(run / "checkpoints")
    (run / "summary.json").unlink()
    for film in run.glob("*.mp4"):
        film.unlink()
    assert report(run) == 0
    page = Page(run / "report.html")
    assert page.only["status"] == "stopped"
    assert len(page.only["notes"]) == 2
    assert "no checkpoint" in capsys.readouterr().err
    assert "adm/distance" in page.only["columns"]


def test_broken_lines_are_left_out_and_counted(coex_run: Path, copy_run: CopyRun, capsys) -> None:
    run = copy_run(coex_run)
    metrics = run / "metrics.jsonl"
    good = metrics.read_text().splitlines()
    odd = '{"step": 60, "entropy": "<b>high</b>", "adm/distance": null, "rooms/ari": NaN, "episodes": true}'
    lines = [good[0], '{"step": 40, "ret', "[]", '{"step": "x"}', '{"step": -1}', "\x00\xff", odd, *good[1:], '{"st']
    metrics.write_text("\n".join(lines))
    assert report(run, "--no-video") == 0
    assert Page(run / "report.html").only["notes"] == ["Broken lines of metrics.jsonl that are left out: 5."]
    assert "b>high" not in (run / "report.html").read_text()
    assert "left out: 5" in capsys.readouterr().err  # the torn last line may still be written
    metrics.write_text("")
    assert report(run, "--no-video") == 0
    assert "no curve can be drawn" in capsys.readouterr().err


def test_a_run_that_goes_on_says_so(coex_run: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "page.html"
    with RunLock(coex_run):
        assert report(coex_run, "--no-video", "--out", out) == 0
    assert Page(out).only["status"] == "running"
    assert "still going on" in capsys.readouterr().err
    assert not (coex_run / "watched").exists()


def test_what_is_no_run_is_refused(coex_run: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    for arguments, message in (
        ([tmp_path / "none"], "there is no such directory"),
        ([coex_run, tmp_path / "empty"], "holds no run"),
        ([tmp_path / "file"], "holds no run"),
        ([coex_run, coex_run], "is named twice"),
        ([coex_run, "--out", tmp_path / "page.pdf"], "ends in .html"),
        ([coex_run, "--out", tmp_path], "is a directory"),
    ):
        assert report(*arguments) == 2
        lines = capsys.readouterr().err.strip().splitlines()
        assert len(lines) == 1
        assert message in lines[0]
    assert not list(tmp_path.rglob("*.html"))


def test_nothing_of_a_run_is_markup(coex_run: Path, copy_run: CopyRun) -> None:
    run = copy_run(coex_run, "<!--<script>alert(1)<&quot;")
    assert report(run, "--no-video") == 0
    assert "<script>alert(1)" not in (run / "report.html").read_text()
    assert Page(run / "report.html").only["path"] == str(run)


def test_runs_are_compared_by_game_and_method(
    coex_run: Path, plain_run: Path, copy_run: CopyRun, tmp_path: Path
) -> None:
    seeds = [copy_run(plain_run, f"seed-{seed}") for seed in range(3)]
    for seed, path in enumerate(seeds):
        config = json.loads((path / "config.json").read_text()) | {"seed": seed}
        (path / "config.json").write_text(json.dumps(config))
    (seeds[0] / "eval-240.json").write_text('{"return_mean": 0.5, "episodes": 8}')
    (seeds[1] / "eval-240.json").write_text('{"return_mean": 1.5, "episodes": 24}')
    (seeds[2] / "eval-240.json").write_text('{"return_mean": "<b>", "episodes": true}')
    assert report(*seeds, coex_run, "--out", tmp_path / "page.html") == 0
    page = Page(tmp_path / "page.html")
    assert page.data["single"] is None
    assert len(page.data["runs"]) == 4
    games = page.data["overview"]["games"]
    assert list(games) == ["MiniGrid-Empty-5x5-v0", "MontezumaRevenge"]
    (group,) = games["MiniGrid-Empty-5x5-v0"]
    assert (group["seeds"], group["played"]) == ([0, 1, 2], [1.25, 32])
    # No film is made for this page; those that are there already are shown.
    films = sum("film" in scene for scene in page.data["scenes"].values())
    assert films == sum(bool(list(run.glob("video-*.mp4"))) for run in (*seeds, coex_run))


@pytest.mark.parametrize("path", sorted((Path(watch.__path__[0]) / "page").glob("*.js")), ids=lambda path: path.name)
def test_no_script_would_end_its_element(path: Path) -> None:
    content = path.read_text()
    assert "</script" not in content
    assert "<!--" not in content
    assert "innerhtml" not in content.lower() or path.name == "preact.js"  # which our own scripts never ask for it
