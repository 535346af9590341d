"""What the studies' rows set is what they say."""

import dataclasses
import itertools
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from coex.cli import main
from coex.config.bonuses import PLAIN, CoexConfig
from coex.config.presets import make_config
from coex.config.settings import parse_assignments
from coex.paper import field
from coex.paper.curves import RunKey, curve_path, key_of, write_curve
from coex.paper.missing import planned_runs
from coex.paper.study import PLAIN_LOSSES, Request

QUEUE = Path(__file__).parents[2] / "results/queue-compare.txt"


def test_the_papers_losses_are_the_plain_ones() -> None:
    settings = parse_assignments([f"{name}={value}" for name, value in PLAIN_LOSSES.items()])
    bonus = make_config("seaquest", "a2c+coex", settings, "paper").bonus
    assert isinstance(bonus, CoexConfig)
    assert bonus.adm == dataclasses.replace(PLAIN, found_by=0)


def queued(capsys: pytest.CaptureFixture[str], runs: Path) -> Iterator[list[str]]:
    """The arguments of every run that the queue of comparisons asks for."""
    for line in QUEUE.read_text().splitlines():
        if not line.startswith("#"):
            arguments = shlex.split(line.replace("runs/compare", str(runs)))
            assert main([*arguments[1:], "--list"]) == 0
            yield from (shlex.split(found)[1:] for found in capsys.readouterr().out.splitlines())


def test_the_long_comparisons_are_what_the_field_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = set()
    for arguments in queued(capsys, tmp_path):
        named = dict(zip(arguments[2::2], arguments[3::2], strict=False))
        sets = [value for name, value in itertools.pairwise(arguments) if name == "--set"]
        settings = parse_assignments(sets) | {"total_steps": named["--steps"], "seed": named["--seed"]}
        keys.add(key_of(make_config(arguments[1], named["--method"], settings)))
    shown: set[RunKey] = set()
    for study in field.STUDIES:
        shown |= {key for _, key in planned_runs(study, Request(study.games, study.steps, study.seeds))}
    assert keys == shown


def test_the_field_has_a_panel_and_two_lines_a_bonus(tmp_path: Path) -> None:
    study = field.STUDIES[0]
    request = Request(study.games, study.steps, study.seeds, out=tmp_path)
    nothing = study.render(study, request)[0].read_bytes()
    for row in study.rows[:3]:
        points = [{"step": 20_000 * k, "return_mean40": k / 10, "max_return_mean40": k / 10} for k in range(1, 11)]
        write_curve(curve_path(RunKey(study.games[0], row.variant(study.games[0]), 200_000, 0), tmp_path), points)
    picture, markdown, _ = study.render(study, request)
    assert picture.read_bytes() != nothing
    assert "| a2c+coex | ours, default preset | 1 · 200k × 1 |" in markdown.read_text()
    assert markdown.read_text().count("not run") == len(study.rows) - 3
