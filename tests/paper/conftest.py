"""Curves made up for the tables and figures."""

from collections.abc import Callable
from pathlib import Path

import pytest

from coex.paper.curves import RunKey, curve_path, write_curve

KeepCurve = Callable[..., Path]


@pytest.fixture
def keep_curve(tmp_path: Path) -> KeepCurve:
    """A run's curve under `tmp_path`: its score is `slope` for each of 10 points, the last one at `reached`."""

    def keep(game: str, variant: str, budget: int, seed: int, slope: float, reached: int = 0) -> Path:
        end = reached or budget
        points = [
            {"step": end * i // 10, "return_mean40": slope * i, "max_return_mean40": slope * i, "adm/distance": 5 / i}
            for i in range(1, 11)
        ]
        path = curve_path(RunKey(game, variant, budget, seed), tmp_path)
        write_curve(path, points)
        return path

    return keep
