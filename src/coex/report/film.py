"""`coex video`: films of agents at play."""

import contextlib
import itertools
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import imageio_ffmpeg

from coex.envs import is_atari
from coex.errors import CoexError, UsageError
from coex.report.play import play, play_best_way
from coex.report.scene import Scene
from coex.runs.checkpoints import Saved
from coex.runs.resume import saved_config

_LONGEST_SECONDS = 600
LARGEST_GIF = 5_000_000  # bytes
# From good to small: width, frames a second, colours.
_GIF_SIZES = ((720, 10, 128), (640, 8, 96), (480, 8, 64), (360, 5, 48), (240, 4, 32))


@dataclass(frozen=True)
class VideoConfig:
    """What is filmed: so many episodes, but no more than so many seconds of film."""

    episodes: int = 1
    seconds: float = 60.0
    seed: int = 0
    best_way: bool = False  # what an archive found, instead of what the policy does

    def __post_init__(self) -> None:
        for name, least in (("episodes", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise UsageError(f"--{name} takes a whole number of at least {least}, not {getattr(self, name)}")
        if not 1 <= self.seconds <= _LONGEST_SECONDS:
            raise UsageError(f"--seconds takes a number from 1 to {_LONGEST_SECONDS}, not {self.seconds:g}")


class Film(NamedTuple):
    """What was filmed."""

    seconds: float
    score: float  # of the last episode
    is_over: bool  # whether an episode came to its end


def record(saved: Saved, settings: VideoConfig, out: Path) -> Film:
    """Plays with a checkpoint and writes an MP4 that every browser shows."""
    config = saved_config(saved)
    rate = 60 / config.env.frame_skip if is_atari(config.game) else 10.0  # the console's; others have no clock
    played = play_best_way(saved) if settings.best_way else play(saved, settings.seed)
    wanted = itertools.takewhile(lambda moment: moment.episode <= settings.episodes, played)
    moments = itertools.islice(wanted, int(settings.seconds * rate))
    last = next(moments)
    subtitle = f"{config.method} · seed {config.seed} · after {saved.manifest.step:,} steps"
    scene = Scene(last.picture, config.game.removeprefix("gym:"), subtitle, config.grid)
    frames, is_over = 0, False
    scratch = out.with_name(f".{out.stem}.tmp.mp4")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(_writer(scratch, scene.size, rate)) as writer:
            writer.send(None)
            for moment in itertools.chain([last], moments):
                writer.send(scene.draw(moment).tobytes())
                frames, last, is_over = frames + 1, moment, is_over or moment.action is None
        scratch.replace(out)
    except OSError as error:
        raise CoexError(f"the video {out} could not be written: {error.strerror or error}") from error
    finally:
        scratch.unlink(missing_ok=True)
    return Film(frames / rate, last.score, is_over)


def make_gif(film: Path, out: Path) -> None:
    """The same as a GIF, as good as its size allows."""
    scratch = out.with_name(f".{out.stem}.tmp.gif")
    try:
        for width, rate, colours in _GIF_SIZES:
            filters = (
                f"fps={rate},scale='min({width},iw)':-2:flags=lanczos,split[a][b];"
                f"[a]palettegen=max_colors={colours}:stats_mode=diff[p];[b][p]paletteuse=dither=none:diff_mode=rectangle"
            )
            command = [_ffmpeg(), "-y", "-v", "error", "-i", str(film), "-filter_complex", filters]
            if (width, rate, colours) == _GIF_SIZES[-1]:  # a film too long even for this is cut off
                command += ["-fs", str(LARGEST_GIF * 9 // 10)]
            done = subprocess.run([*command, str(scratch)], capture_output=True, text=True, check=False)
            if done.returncode:
                raise CoexError(f"the GIF could not be made: {done.stderr.strip().splitlines()[-1:]}")
            if scratch.stat().st_size < LARGEST_GIF:
                break
        scratch.replace(out)
    finally:
        scratch.unlink(missing_ok=True)


def _writer(path: Path, size: tuple[int, int], rate: float) -> Any:
    _ffmpeg()
    quality = ["-crf", "24", "-preset", "veryfast", "-movflags", "+faststart"]
    return imageio_ffmpeg.write_frames(
        str(path), size, fps=rate, codec="libx264", pix_fmt_out="yuv420p", quality=None, macro_block_size=2,
        output_params=quality,
    )  # fmt: skip


def _ffmpeg() -> str:
    try:
        return imageio_ffmpeg.get_ffmpeg_exe()
    except RuntimeError:
        raise CoexError(
            "there is no ffmpeg to write videos with: reinstall imageio-ffmpeg, or install ffmpeg"
        ) from None
