"""Films that a browser shows."""

import shutil
from collections.abc import Callable
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest

from coex.bonuses import Inspection
from coex.cli import main
from coex.config.grid import model_grid
from coex.report.film import LARGEST_GIF
from coex.report.play import Moment, PlayTruth
from coex.report.scene import HEAT, TRUTH, Scene, facts
from coex.runs.lock import RunLock

CopyRun = Callable[..., Path]


def probe(film: Path) -> dict[str, object]:
    reader = imageio_ffmpeg.read_frames(str(film))
    meta = next(reader)
    return meta | {"frames": sum(1 for _ in reader)}


def test_a_film_has_its_frames_and_plays_everywhere(coex_run: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "new" / "film.mp4"
    assert main(["video", str(coex_run), "--seconds", "2", "--out", str(out), "--gif"]) == 0
    film = probe(out)
    assert film["frames"] == 30
    assert film["size"] == (480 + 330 + 60, 630 + 40)
    assert film["fps"] == 15
    assert (film["codec"], str(film["pix_fmt"]).startswith("yuv420p")) == ("h264", True)
    content = out.read_bytes()
    assert content.index(b"moov") < content.index(b"mdat")  # plays before all of it is there
    gif = out.with_suffix(".gif").read_bytes()
    assert gif.startswith(b"GIF89a")
    assert len(gif) < LARGEST_GIF
    assert sorted(path.name for path in out.parent.iterdir()) == ["film.gif", "film.mp4"]
    told = capsys.readouterr().out
    assert "2 seconds of play" in told
    assert "film.gif" in told


def test_whole_episodes_of_an_older_checkpoint(coex_run: Path, capsys) -> None:
    assert main(["video", str(coex_run), "--checkpoint", "100", "--episodes", "2", "--seconds", "60"]) == 0
    out = coex_run / "video-100.mp4"
    assert probe(out)["frames"] == 2 * 51  # 50 steps and the picture they started from
    assert "game over" in capsys.readouterr().out
    out.unlink()


def test_a_method_without_attention_in_a_world_without_ram(plain_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "film.mp4"
    assert main(["video", str(plain_run), "--seconds", "1", "--out", str(out)]) == 0
    assert probe(out)["frames"] == 10


def test_bad_input_gets_one_line(coex_run: Path, copy_run: CopyRun, tmp_path: Path, capsys) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    bare = copy_run(coex_run)
    shutil.rmtree(bare / "checkpoints")
    for arguments, message in (
        ([str(tmp_path / "none")], str(tmp_path / "none")),
        ([str(empty)], "holds no run"),
        ([str(bare)], "has no checkpoint"),
        ([str(coex_run), "--checkpoint", "7"], "these are there:"),
        ([str(coex_run), "--checkpoint", "last"], "--checkpoint"),
        ([str(coex_run), "--episodes", "0"], "--episodes"),
        ([str(coex_run), "--seconds", "nan"], "--seconds"),
        ([str(coex_run), "--seed", "-1"], "--seed takes"),
        ([str(coex_run), "--out", str(tmp_path / "film.avi")], "ends in .mp4"),
        ([str(coex_run), "--out", str(empty)], "is a directory"),
    ):
        assert main(["video", *arguments]) == 2, arguments
        lines = capsys.readouterr().err.strip().splitlines()
        assert len(lines) == 1, lines
        assert message in lines[0]


def test_a_run_that_goes_on_is_filmed_as_it_is(coex_run: Path, tmp_path: Path, capsys) -> None:
    with RunLock(coex_run):
        assert main(["video", str(coex_run), "--seconds", "1", "--out", str(tmp_path / "film.mp4")]) == 0
    assert "step 240" in capsys.readouterr().err


def test_without_ffmpeg_it_says_so(coex_run: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    def missing() -> str:
        raise RuntimeError("No ffmpeg exe could be found")

    monkeypatch.setattr("imageio_ffmpeg.get_ffmpeg_exe", missing)
    assert main(["video", str(coex_run), "--out", str(tmp_path / "film.mp4")]) == 1
    assert "there is no ffmpeg" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def moment(**changes: object) -> Moment:
    settings = {
        "picture": np.zeros((210, 160, 3), np.uint8), "step": 12, "score": 400.0, "value": 1.5, "action": "LEFT",
        "sight": Inspection(None, (4, 3), 2, 3), "truth": PlayTruth((76, 73, 8, 20), ((4.5, 3.56), (8.5, 8.5)), 1),
    }  # fmt: skip
    return Moment(**(settings | changes))


def test_the_panel_tells_what_is_known() -> None:
    assert facts(moment()) == [
        ("action", "LEFT"),
        ("step", "12"),
        ("value V(s)", "1.50"),
        ("room", "2  (RAM: 1)"),
        ("located cell x, y", "4, 3"),
        ("off by", "0.1 cells"),
        ("visits N in training", "3"),
        ("bonus 1/√(N+1)", "0.500"),
    ]
    assert facts(moment(sight=Inspection(), truth=None, action=None)) == [
        ("action", "game over"),
        ("step", "12"),
        ("value V(s)", "1.50"),
    ]


def test_attention_and_truth_are_drawn_where_they_are() -> None:
    attention = np.zeros((9, 9))
    attention[3, 4] = 1.0  # centred at half the width and four tenths of the height
    scene = Scene(moment().picture, "Game", "subtitle", model_grid(9, 16))
    drawn = scene.draw(moment(sight=Inspection(attention)))[20:650, 20:500].astype(int)  # the game, enlarged threefold
    orange = np.abs(drawn - 0.75 * np.array(HEAT)).sum(-1) < 12
    ys, xs = np.nonzero(orange)
    assert (ys.mean(), xs.mean()) == pytest.approx((0.4 * 630, 0.5 * 480), abs=4)
    ys, xs = np.nonzero((drawn == TRUTH).all(-1))
    assert (xs.min(), xs.max(), ys.min(), ys.max()) == (76 * 3 - 3, 84 * 3 + 3, 73 * 3 - 3, 93 * 3 + 3)


def test_large_and_small_pictures_fit() -> None:
    for height, width in ((64, 64), (400, 600), (900, 1200), (33, 47)):
        picture = np.zeros((height, width, 3), np.uint8)
        scene = Scene(picture, "A very long name of an environment that nobody can pronounce-v0", "", None)
        drawn = scene.draw(moment(picture=picture, truth=None, sight=Inspection()))
        assert drawn.shape == (scene.size[1], scene.size[0], 3)
        assert not any(side % 2 for side in scene.size)
        assert max(scene.size) < 1_100
