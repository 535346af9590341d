"""Which runs a cell is made of, and its score at any budget."""

import re

import pytest

from coex.config.presets import METHODS, make_config
from coex.errors import UsageError
from coex.paper.curves import MAX_POINTS, RunKey, curve_path, find_curves, key_of, measure, read_curve, write_curve
from coex.paper.missing import make_run_config
from coex.paper.studies import STUDIES
from coex.paper.study import Request
from coex.paper.table1 import A2C, COEX
from coex.paper.table1 import STUDY as TABLE1
from coex.paper.table2 import STUDY as TABLE2


def cell(tmp_path, steps=100_000_000, row=A2C, study=TABLE1):
    return measure(study, row, "Freeway", steps, tmp_path)


def test_a_run_is_named_by_what_differs_from_the_preset():
    assert key_of(make_config("freeway", "a2c")).path.as_posix() == "Freeway/a2c/1000000/s0"
    config = make_config(
        "gym:MiniGrid-Empty-5x5-v0", "a2c+coex",
        {"seed": 3, "total_steps": 800, "num_workers": 0, "bonus": {"state": "c", "adm": {"cell_loss": False}}},
    )  # fmt: skip
    name = "MiniGrid-Empty-5x5-v0/a2c+coex-psi-c-no-cell-loss/800/s3"
    assert key_of(config).path.as_posix() == name
    assert key_of(make_config("hero", "a2c", preset="paper")).variant == "a2c-paper"
    unnamed = {key_of(make_config("hero", "a2c", {"schedule_steps": steps})).variant for steps in (99, 98)}
    assert len(unnamed) == 2
    assert all(re.fullmatch(r"a2c-[0-9a-f]{8}", name) for name in unnamed)


def test_rows_and_their_runs_have_the_same_name():
    for study in STUDIES.values():
        for row in study.our_rows():
            for game in study.games:
                if row.method in METHODS:
                    key = RunKey(game, row.variant(game), 800, 1)
                    assert key_of(make_run_config(row, key, Request((game,), 800, 1))) == key


def test_scores_at_budgets(tmp_path, keep_curve):
    assert cell(tmp_path) is None
    keep_curve("Freeway", "a2c", 1_000, 0, slope=1.0)
    assert (cell(tmp_path).value, cell(tmp_path).steps, cell(tmp_path).seeds) == (10, 1_000, 1)
    half = cell(tmp_path, steps=500)
    assert (half.value, half.steps) == (5, 500)
    assert cell(tmp_path, steps=499).value == 4  # the points are 100 steps apart
    assert cell(tmp_path, steps=50).value is None  # no point so early
    keep_curve("Freeway", "a2c", 1_000, 1, slope=3.0)
    assert (cell(tmp_path).value, cell(tmp_path).low, cell(tmp_path).seeds) == (20, None, 2)
    keep_curve("Freeway", "a2c", 1_000, 2, slope=5.0)
    three = cell(tmp_path)
    assert (three.value, three.seeds) == (30, 3)
    assert 10 <= three.low < 30 < three.high <= 50


def test_a_run_to_the_end_of_its_last_rollout_counts_whole(tmp_path, keep_curve):
    keep_curve("Freeway", "a2c", 1_000, 0, slope=1.0, reached=1_040)
    assert (cell(tmp_path).value, cell(tmp_path).steps) == (10, 1_000)


def test_budgets_and_unfinished_runs(tmp_path, keep_curve):
    keep_curve("Freeway", "a2c", 1_000, 0, slope=1.0)
    keep_curve("Freeway", "a2c", 2_000, 0, slope=7.0, reached=200)
    assert cell(tmp_path).value == 10  # the run that has come farther
    keep_curve("Freeway", "a2c", 2_000, 0, slope=7.0, reached=1_500)
    assert (cell(tmp_path).value, cell(tmp_path).steps) == (70, 1_500)
    assert cell(tmp_path, steps=1_000).value == 10  # made for this budget, rather than on its way to another
    keep_curve("Freeway", "a2c", 2_000, 1, slope=9.0)
    assert (cell(tmp_path).value, cell(tmp_path).seeds) == (90, 1)  # finished seeds are not held back by others


def test_table_2_reads_a_run_at_half_and_at_its_end(tmp_path, keep_curve):
    keep_curve("Freeway", COEX.variant("Freeway"), 1_000, 0, slope=1.0)
    half, whole = (cell(tmp_path, row=row, study=TABLE2) for row in TABLE2.rows[:2])
    assert (half.value, half.steps) == (5, 500)
    assert (whole.value, whole.steps) == (10, 1_000)


def test_long_curves_are_thinned_and_keep_their_end(tmp_path):
    points = [{"step": 80 * i, "return_mean40": None if i < 5 else i / 3} for i in range(1, 1_001)]
    path = curve_path(RunKey("Freeway", "a2c", 80_000, 2), tmp_path)
    write_curve(path, points)
    curve = read_curve(path)
    assert len(curve.points) == MAX_POINTS
    assert (curve.points[0]["step"], curve.reached, curve.seed, curve.budget) == (80, 80_000, 2, 80_000)
    assert curve.points[0]["return_mean40"] is None
    assert curve.points[-1]["return_mean40"] == pytest.approx(1_000 / 3, rel=1e-5)


@pytest.mark.parametrize("text", ["", "step\n", "step\nmany\n", "return\n1\n", "step\n\n,\n"])
def test_a_damaged_curve_is_named(tmp_path, text):
    path = curve_path(RunKey("Freeway", "a2c", 800, 0), tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(UsageError, match=r"s0\.csv is not a curve"):
        find_curves(tmp_path, "Freeway", "a2c", 800)
