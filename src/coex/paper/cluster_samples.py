"""Figure 7 (fig:cluster_samples): what A2C+CoEX takes for one room: 3 random observations of each cluster."""

import dataclasses
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from coex.analysis.agreement import Reservoirs
from coex.config.bonuses import CoexConfig
from coex.envs.views import Frame
from coex.errors import UsageError
from coex.paper.agents import open_agent
from coex.paper.study import Request, Study, game_slug
from coex.paper.table1 import COEX
from coex.paper.tables import NOT_RUN
from coex.runs.checkpoints import CheckpointStore
from coex.runs.progress import count
from coex.runs.resume import read_newest, run_config

SAMPLES, MAX_CLUSTERS = 3, 12
_OBSERVATIONS = 8_000  # that are looked at
_DPI = 90


@dataclass(frozen=True)
class Samples:
    """Pictures of a run's clusters at one of its steps, those it saw most often first."""

    step: int
    frames: Frame  # (C, 3, 84, 84, 3); black where a cluster had fewer
    sizes: NDArray[np.int64]  # (C,) observations in each, of those that were looked at

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            np.savez_compressed(file, **dataclasses.asdict(self))

    @classmethod
    def load(cls, path: Path) -> "Samples":
        try:
            with np.load(path, allow_pickle=False) as stored:
                return cls(int(stored["step"]), stored["frames"], stored["sizes"])
        except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile):
            raise UsageError(f"{path} does not hold samples of clusters: remove it, or restore it") from None


def draw_samples(study: Study, request: Request) -> list[Path]:
    """`<name>.png`, and the pictures themselves, so that it can be drawn again without the runs."""
    found, written = {}, []
    for game in request.games:
        path = request.out / "clusters" / f"{game_slug(game)}.npz"
        samples = Samples.load(path) if path.exists() else None
        run, step = _farthest_run(game, request)
        if run and (samples is None or samples.step < step):
            samples = take_samples(run)
            samples.save(path)
            written.append(path)
        if samples:
            found[game] = samples
    request.out.mkdir(parents=True, exist_ok=True)
    picture = request.out / f"{study.stem(request.games)}.png"
    _draw(study.title, request.games, found, picture)
    return [picture, *written]


def take_samples(run: Path, observations: int = _OBSERVATIONS) -> Samples:
    """Lets the agent of the newest checkpoint go on for a while, in memory only, and looks at what it clusters."""
    saved = read_newest(CheckpointStore(run), lambda text: print(f"coex: {text}", file=sys.stderr))
    config = run_config(run)
    if saved is None or not isinstance(config.bonus, CoexConfig) or not config.bonus.needs_clusters:
        raise UsageError(f"{run} has no clusters to look at: it needs a checkpoint of a method with rooms")
    kept = Reservoirs(SAMPLES, seed=0)
    with open_agent(config) as (_, agent):
        agent.load_state_dict(saved.state["agent"])
        while kept.sizes.total() < observations:
            rollout, states = agent.watch()
            frames = rollout.next_view("rgb84").flatten(0, 1)  # (T·N, 84, 84, 3)
            kept.add(states["c"].ravel(), frames.numpy())
    chosen = [cluster for cluster, _ in kept.sizes.most_common(MAX_CLUSTERS)]
    black = np.zeros(frames.shape[1:], np.uint8)
    pictures = [np.stack((kept.frames[cluster] + [black] * SAMPLES)[:SAMPLES]) for cluster in chosen]
    return Samples(saved.manifest.step, np.stack(pictures), np.array([kept.sizes[cluster] for cluster in chosen]))


def _farthest_run(game: str, request: Request) -> tuple[Path | None, int]:
    """The run of A2C+CoEX with the latest checkpoint, and its step."""
    runs = (request.runs / game_slug(game) / COEX.variant(game)).glob("*/s*")
    steps = {run: max(CheckpointStore(run).steps(), default=0) for run in sorted(runs)}
    return max(steps.items(), key=lambda item: item[1], default=(None, 0))


def _draw(title: str, games: tuple[str, ...], found: dict[str, Samples], path: Path) -> None:
    heights = [2.95 if game in found else 0.3 for game in games]  # inches
    figure, grid = plt.subplots(
        len(games), figsize=(11, sum(heights) + 0.4), height_ratios=heights, layout="constrained", squeeze=False
    )
    for axes, game in zip(grid.flat, games, strict=True):
        axes.axis("off")
        axes.set_anchor("W")
        samples = found.get(game)
        if samples is None:
            axes.text(0, 0.5, f"{game}: {NOT_RUN}", fontsize="small", transform=axes.transAxes, va="center")
            continue
        rows = samples.frames.transpose(1, 2, 0, 3, 4).reshape(SAMPLES * 84, -1, 3)  # a column is a cluster
        axes.imshow(rows, interpolation="nearest")
        sizes = ", ".join(map(str, samples.sizes.tolist()))
        axes.set_title(
            f"{game} after {count(samples.step)} steps; observations in each: {sizes}", fontsize="small", loc="left"
        )
    figure.suptitle(title, fontsize="medium")
    figure.savefig(path, dpi=_DPI)
    plt.close(figure)


STUDY = Study(
    "cluster-samples",
    "Figure 7: random observations of each cluster (a column), those seen most often first",
    ("Venture", "Hero", "PrivateEye", "MontezumaRevenge"),
    (COEX,),
    draw_samples,
)
