"""Curves of the analyses, drawn from the result files beside them."""

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt


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
