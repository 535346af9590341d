"""The page: whole, self-contained, and honest about what is missing."""

import json
import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from coex.cli import main
from coex.report.comparison import common_steps, group_by_game, score_of
from coex.report.run import load_run
from coex.runs.lock import RunLock

CopyRun = Callable[..., Path]
VOID = {"meta", "link", "img", "image", "rect", "path", "use", "br"}


class Checker(HTMLParser):
    """Every element is closed in its turn; collects the text, the ids and whatever the page would load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [value or "" for name, value in attrs if name in ("src", "href", "poster", "srcset", "data")]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.text += data


def report(*arguments: str | Path) -> int:
    return main(["report", *map(str, arguments)])


def check(page: Path) -> Checker:
    content = page.read_text()
    checked = Checker(content)
    assert all(load.startswith(("data:", "#")) for load in checked.loads)
    assert "@import" not in content
    assert not re.search(r"url\((?!data:)", content)
    assert len(checked.ids) == len(set(checked.ids))
    assert {load[1:] for load in checked.loads if load.startswith("#")} <= set(checked.ids)
    return checked


def test_a_run_with_its_video_in_one_page(coex_run: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "deep" / "page.html"
    assert report(coex_run, "--out", out) == 0
    page = check(out)
    assert str(coex_run / "video-240.mp4") in capsys.readouterr().out
    assert any(load.startswith("data:video/mp4") for load in page.loads)
    for words in (
        "MontezumaRevenge", "A2C+CoEX", "finished", "the paper: 6,635 after 100M steps", "Learning curve",
        "Localisation error", "adjusted Rand index", "Map of visits", "Room 0 (RAM: 1)", "Most visited states",
        "Rarest states", "Throughput", "learner.gamma", "coex train MontezumaRevenge --method a2c+coex --steps 240",
    ):  # fmt: skip
        assert words in page.text, words
    assert len(list(out.parent.iterdir())) == 1


def test_the_default_place_and_no_video(plain_run: Path, copy_run: CopyRun) -> None:
    run = copy_run(plain_run)
    assert report(run, "--no-video") == 0
    page = check(run / "report.html")
    assert not list(run.glob("*.mp4"))
    assert "MiniGrid-Empty-5x5-v0" in page.text
    assert "Map of visits" not in page.text
    assert "the paper:" not in page.text


def test_metrics_alone_are_enough(coex_run: Path, copy_run: CopyRun) -> None:
    run = copy_run(coex_run)
    shutil.rmtree(run / "checkpoints")
    (run / "summary.json").unlink()
    for film in run.glob("*.mp4"):
        film.unlink()
    assert report(run) == 0
    page = check(run / "report.html")
    assert "no checkpoint" in page.text
    assert "240 of 240" in page.text
    assert "Localisation error" in page.text


def test_broken_lines_are_left_out_and_counted(coex_run: Path, copy_run: CopyRun, capsys) -> None:
    run = copy_run(coex_run)
    metrics = run / "metrics.jsonl"
    good = metrics.read_text().splitlines()
    odd = '{"step": 60, "entropy": "<b>high</b>", "adm/distance": null, "rooms/ari": NaN, "episodes": true}'
    lines = [good[0], '{"step": 40, "ret', "[]", '{"step": "x"}', '{"step": -1}', "\x00\xff", odd, *good[1:], '{"st']
    metrics.write_text("\n".join(lines))
    assert report(run, "--no-video") == 0
    page = check(run / "report.html")
    assert "6 broken lines" in page.text
    assert "high" not in page.text
    assert "6 broken lines" in capsys.readouterr().err
    metrics.write_text("")
    assert report(run, "--no-video") == 0
    assert "no curve can be drawn" in check(run / "report.html").text


def test_a_run_that_goes_on_says_so(coex_run: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "page.html"
    with RunLock(coex_run):
        assert report(coex_run, "--no-video", "--out", out) == 0
    assert "still going on" in check(out).text
    assert "still going on" in capsys.readouterr().err


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


def test_everything_is_escaped(coex_run: Path, copy_run: CopyRun) -> None:
    run = copy_run(coex_run, "<script>alert(1)<&quot;")
    assert report(run, "--no-video") == 0
    assert "<script>alert(1)" not in (run / "report.html").read_text()
    assert str(run) in check(run / "report.html").text


@pytest.fixture
def seeds(plain_run: Path, copy_run: CopyRun) -> list[Path]:
    """Runs whose scores are known: seeds 0 to 3 with 1, 2, 6 and 3; the last is shorter."""
    runs = []
    for seed, score in enumerate((1.0, 2.0, 6.0, 3.0)):
        run = copy_run(plain_run, f"seed-{seed}")
        config = json.loads((run / "config.json").read_text()) | {"seed": seed}
        (run / "config.json").write_text(json.dumps(config))
        points = [
            {"step": step, "return_mean40": score, "max_return_mean40": score * step / 100}
            for step in range(50, 201 if seed < 3 else 101, 50)
        ]
        (run / "metrics.jsonl").write_text("".join(json.dumps(point) + "\n" for point in points))
        runs.append(run)
    return runs


def test_seeds_are_taken_together_at_the_steps_they_share(seeds: list[Path]) -> None:
    ((group,),) = group_by_game([load_run(path, print) for path in seeds]).values()
    assert group.label == "A2C (num_envs = 2)"
    assert common_steps([group]) == 100
    score = score_of(group, 100)
    assert score is not None
    assert (score.middle, score.seeds) == (2.5, 4)  # of 1, 2, 3 and 6 without the lowest and the highest
    assert 1 <= score.low < 2.5 < score.high <= 6
    few = score_of(group.__class__("", group.runs[:2], 0), 200)
    assert few is not None
    assert (few.middle, few.low, few.high) == (3, 2, 4)


def test_runs_of_different_lengths_are_not_seeds_of_one_method(seeds: list[Path]) -> None:
    for path, steps in zip(seeds, (100, 1_000, 1_000, 1_000), strict=True):
        config = json.loads((path / "config.json").read_text()) | {"total_steps": steps, "schedule_steps": steps}
        (path / "config.json").write_text(json.dumps(config))
    (groups,) = group_by_game([load_run(path, print) for path in seeds]).values()
    labels = [group.label for group in groups]
    assert labels == ["A2C (num_envs = 2), planned for 100 steps", "A2C (num_envs = 2), planned for 1k steps"]
    assert [len(group.runs) for group in groups] == [1, 3]


def test_runs_of_two_games_are_grouped(coex_run: Path, seeds: list[Path], tmp_path: Path, monkeypatch) -> None:
    other = json.loads((seeds[3] / "config.json").read_text())
    other["learner"]["gamma"] = 0.5
    (seeds[3] / "config.json").write_text(json.dumps(other))
    monkeypatch.chdir(tmp_path)
    assert report(*seeds, coex_run) == 0
    page = check(tmp_path / "report.html")
    assert "MiniGrid-Empty-5x5-v0, MontezumaRevenge" in page.text
    assert "A2C (num_envs = 2), 3 seeds" in page.text
    assert "A2C (num_envs = 2, learner.gamma = 0.5), 1 seed" in page.text
    assert page.text.count("All settings") == 5
    films = [film for run in (*seeds, coex_run) for film in run.glob("video-*.mp4")]  # none is made for this page
    assert sum(load.startswith("data:video") for load in page.loads) == len(films)
