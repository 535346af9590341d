"""Tables and figures, with and without runs."""

import csv

import pytest

from coex.paper.curves import TableCell
from coex.paper.studies import STUDIES
from coex.paper.study import Request
from coex.paper.tables import format_cell


def request_for(study, out, games=None):
    return Request(games or study.games, study.steps, study.seeds, runs=out / "runs", out=out)


@pytest.mark.parametrize("name", STUDIES)
def test_everything_can_be_drawn_when_nothing_was_run(name, tmp_path):
    study = STUDIES[name]
    paths = study.render(study, request_for(study, tmp_path))
    for path in paths:
        assert path.stem == name
        assert 0 < path.stat().st_size < 300_000
    if paths[0].suffix == ".md":
        lines = [line for line in paths[0].read_text().splitlines() if "| ours, " in line]
        assert len(lines) == len(study.our_rows())
        assert all(line.count("not run") == len(study.games) for line in lines)


def test_cells():
    assert format_cell(None) == "not run"
    assert format_cell(TableCell(34.0, None, None, 1_000_000, 1)) == "34 · 1M × 1"
    assert format_cell(TableCell(6635.2, 6000.0, 7000.0, 500_000, 3)) == "6,635 [6,000, 7,000] · 500k × 3"
    assert format_cell(TableCell(None, None, None, 800, 1)) == "no episode ended · 800 × 1"


def test_a_table_has_ours_under_the_papers(tmp_path, keep_curve):
    study = STUDIES["table1"]
    for seed in range(3):
        keep_curve("Freeway", "a2c", 1_000, seed, slope=seed)
    markdown, table = study.render(study, request_for(study, tmp_path))
    lines = markdown.read_text().splitlines()
    assert "| A2C | paper, 100M | 7.2 | 1,099 | 34,352 | 13 | 574 | 19,620 | 2,401 | 0 |" in lines
    assert "|  | ours, default preset | 10 [0, 20] · 1k × 3 | not run |" in markdown.read_text()
    with table.open() as file:
        rows = {(row["method"], row["game"]): row for row in csv.DictReader(file)}
    assert len(rows) == 4 * 8
    assert (rows["A2C", "Freeway"]["ours"], rows["A2C", "Freeway"]["seeds"]) == ("10.0", "3")
    assert rows["A2C+CoEX", "Freeway"] == {
        "method": "A2C+CoEX", "game": "Freeway", "paper_steps": "100000000", "paper": "34.0",
        "preset": "default", "ours": "", "low": "", "high": "", "steps": "", "seeds": "",
    }  # fmt: skip


def test_a_figure_is_over_the_steps_that_all_seeds_have(tmp_path, keep_curve):
    study = STUDIES["curves-a2c"]
    keep_curve("Freeway", "a2c", 1_000, 0, slope=1.0, reached=800)
    keep_curve("Freeway", "a2c", 1_000, 1, slope=3.0, reached=500)
    picture, table = study.render(study, request_for(study, tmp_path))
    assert picture.read_bytes().startswith(b"\x89PNG")
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert {row["method"] for row in rows} == {"A2C"}
    assert (rows[0]["step"], rows[-1]["step"]) == ("80", "500")
    assert float(rows[-1]["return_mean40"]) == pytest.approx((6.25 + 30) / 2, rel=1e-4)


def test_other_games_have_files_of_their_own(tmp_path, keep_curve):
    study = STUDIES["table-psi"]
    keep_curve("gym:MiniGrid-Empty-5x5-v0", "a2c+coex-psi-c", 1_000, 0, slope=0.05)
    markdown, _ = study.render(study, request_for(study, tmp_path, ("gym:MiniGrid-Empty-5x5-v0",)))
    assert markdown.name == "table-psi-MiniGrid-Empty-5x5-v0.md"
    assert "| A2C+CoEX (c) | paper, 100M | – |" in markdown.read_text()
    assert "|  | ours, default preset | 0.5 · 1k × 1 |" in markdown.read_text()


def test_table_2_has_others_bonuses_with_our_learner_and_says_what_was_misprinted(tmp_path, keep_curve):
    keep_curve("Freeway", "a2c+cts", 1_000_000, 0, slope=2.0)
    study = STUDIES["table2"]
    text = study.render(study, Request(study.games, 1_000_000, 1, out=tmp_path))[0].read_text()
    lines = [[cell.strip() for cell in line.split("|")] for line in text.splitlines()]
    (ours,) = [line for line in lines if line[1:2] == ["A2C+CTS"]]
    assert ours[3] == "20 · 1M × 1"
    (printed,) = [line for line in lines if line[1:2] == ["DQN-PixelCNN"]]
    assert "5,501" in printed
    assert "Solaris" in text
    assert "1,127" in text
    assert "2,497" in text
