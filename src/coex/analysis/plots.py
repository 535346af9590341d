"""Curves of the analyses, drawn from the result files beside them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from numpy.typing import NDArray

from coex.config.grid import Grid
from coex.envs.views import Frame

SHEET_COLUMNS, SHEET_ROWS = 3, 7  # blocks of a cluster each
SHEET_DPI = 100


def draw_localisation(directory: Path) -> Path:
    """All games' curves of the localisation error in one figure, from the JSON files in `directory`."""
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for path in sorted(directory.glob("*.json")):
        result = json.loads(path.read_text())
        steps = [point["step"] for point in result["points"]]
        distances = [point["distance"] for point in result["points"]]
        axes.plot(steps, distances, label=f"{result['game']}, seed {result['seed']}: {distances[-1]:.2f}")
    axes.axhline(1.0, color="grey", linewidth=0.8, linestyle=":")
    axes.set(xlabel="transitions of a random policy", ylabel="distance to the player, in cells", ylim=(0, None))
    axes.set_title("Localisation on held-out transitions (9×9 grid, smoothed attention)")
    axes.legend(fontsize="small", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(directory / "localise.png", dpi=110)
    plt.close(figure)
    return directory / "localise.png"


def draw_clusters(
    path: Path, title: str, clusters: Sequence[dict[str, Any]], samples: Mapping[int, list[Frame]]
) -> None:
    """Samples of the first clusters (the paper's figure in appendix D); bars of one colour: one true room."""
    shown = clusters[: SHEET_COLUMNS * SHEET_ROWS]
    size, gap, bar, caption, header = 84, 2, 5, 20, 34  # pixels
    width = bar + gap + 3 * (size + gap) + 14  # of a block
    height = caption + size + 10
    canvas = np.full((header + height * -(-len(shown) // SHEET_COLUMNS), 10 + width * SHEET_COLUMNS, 3), 255, np.uint8)
    figure = plt.figure(figsize=(canvas.shape[1] / SHEET_DPI, canvas.shape[0] / SHEET_DPI))
    figure.text(10 / canvas.shape[1], 1 - header / 2 / canvas.shape[0], title, fontsize=10, va="center")
    rooms = list(dict.fromkeys(row["room"] for row in shown))
    for index, row in enumerate(shown):
        left, top = 10 + width * (index % SHEET_COLUMNS), header + height * (index // SHEET_COLUMNS)
        colour = plt.get_cmap("tab20")(rooms.index(row["room"]) % 20)
        canvas[top : top + caption + size, left : left + bar] = np.multiply(colour[:3], 255)
        left += bar + gap
        for k, frame in enumerate(samples[row["cluster"]]):
            x = left + k * (size + gap)
            canvas[top + caption : top + caption + size, x : x + size] = frame
        share = "" if row["share"] > 0.9995 else f" ({row['share']:.1%})"
        words = f"cluster {row['cluster']} · room {room_name(row['room'])}{share} · {row['observations']:,} seen"
        figure.text(
            (left + 2) / canvas.shape[1], 1 - (top + caption / 2) / canvas.shape[0], words, fontsize=7, va="center"
        )
    figure.figimage(canvas, zorder=-1)
    figure.savefig(path, dpi=SHEET_DPI)
    plt.close(figure)


def room_name(room: int) -> str:
    """As `coex.envs.ram` numbers them: the room, after the first level with the level in front."""
    return f"{room // 256}:{room % 256}" if room >= 256 else str(room)


def draw_calibration(path: Path, rows: Sequence[dict[str, Any]], in_use: float) -> None:
    """ARI and number of clusters by the projection's scale, for each game the mean and range over seeds."""
    figure, (above, below) = plt.subplots(2, figsize=(7, 6), sharex=True, layout="constrained")
    for game in sorted({row["game"] for row in rows}):
        sweeps = [row for row in rows if row["game"] == game]
        scales = sorted({row["projection_scale"] for row in sweeps})
        for axes, name in ((above, "ari"), (below, "clusters")):
            values = [[row[name] for row in sweeps if row["projection_scale"] == scale] for scale in scales]
            (line,) = axes.plot(scales, [np.mean(seeds) for seeds in values], label=game)
            low, high = map(min, values), map(max, values)
            axes.fill_between(scales, list(low), list(high), color=line.get_color(), alpha=0.15, linewidth=0)
    for axes in (above, below):
        axes.axvline(in_use, color="grey", linewidth=0.8, linestyle=":")
        axes.spines[["top", "right"]].set_visible(False)
    above.set(ylabel="adjusted Rand index", ylim=(-0.02, 1.02))
    above.set_title("Clusters against true rooms, by the scale of the projection (mean and range)")
    above.legend(fontsize="small", frameon=False)
    below.set(xlabel="projection_scale", ylabel="clusters", yscale="log")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_world(
    path: Path, title: str, picture: Frame, grid: Grid, attention: NDArray[np.float64], samples: Sequence[Frame]
) -> None:
    """A picture of a world as the model sees it, what it looks at there, and a sample of each of its rooms."""
    figure = plt.figure(figsize=(9, 3.4), layout="constrained")
    seen, looked, *rest = figure.subplots(1, 3)
    for axes, words in ((seen, "what is seen"), (looked, "what the model looks at")):
        axes.imshow(picture, extent=(0, 1, 1, 0))
        axes.set_title(words, fontsize="medium")
    edge = grid.first - grid.tile / 2
    looked.imshow(
        attention, extent=(edge, 1 - edge, 1 - edge, edge), cmap="hot", alpha=0.6, vmin=0, interpolation="bilinear"
    )
    [rooms] = rest
    if samples:
        shown = [*samples, *(np.full_like(samples[0], 255) for _ in range(-len(samples) % 3))]
        rooms.imshow(np.concatenate([np.concatenate(shown[i : i + 3], 1) for i in range(0, len(shown), 3)]))
    rooms.set_title("its largest rooms", fontsize="medium")
    for axes in (seen, looked, rooms):
        axes.axis("off")
    figure.suptitle(title)
    figure.savefig(path, dpi=110)
    plt.close(figure)
