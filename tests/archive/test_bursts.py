"""Bursts and searches: every one counts, and going back costs what the setting says."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from coex.archive.archive import Cell, Entry
from coex.archive.cells import Seen
from coex.archive.search import Search
from coex.archive.ways import Way
from coex.config.presets import make_config
from coex.training.archive_agent import ArchiveAgent, make_pool


@contextmanager
def agent_for(game: str, method: str = "archive", slots: int = 4, **learner: Any) -> Iterator[ArchiveAgent]:
    config = make_config(game, method, {"num_envs": slots, "num_workers": 0, "learner": learner})
    with make_pool(config) as pool:
        seeds = np.random.SeedSequence(0).spawn(4)
        yield ArchiveAgent(config, pool, seeds, torch.device("cpu"))


@pytest.mark.parametrize("is_safe", [True, False])
def test_a_burst_that_dies_at_its_first_step_is_a_visit(hall: str, is_safe: bool) -> None:
    """The hall's time is up after 60 steps; a saved game that was never seen to live is dropped."""
    learner = {"root_share": 0.0, "warmup_share": 0.0, "burst_steps": 20}
    with agent_for(hall, **learner) as agent:
        entries = agent.explorer.archive.entries
        cells = [Cell(0, 0, column, 4) for column in range(3)]
        for cell in cells:
            entries[cell] = Entry(Way(0).then(b"\x01" * 59), 0.0, b"", is_safe, visits=1)
        agent.explorer.explore()
        assert agent.explorer.steps == 4 * 60
        if is_safe:
            assert sum(entries[cell].visits for cell in cells) == 3 + 4
        else:
            assert len(entries) == 2
            assert agent.explorer.misplaced == 1


@pytest.mark.parametrize("returns", ["restore", "replay"])
def test_a_search_from_a_real_start_goes_back_as_it_is_told(returns: str) -> None:
    with agent_for("montezuma", "archive-ram", returns=returns, burst_steps=40) as agent:
        teacher = agent.teacher
        search = Search(teacher.real_start(5), teacher._config, budget=600)
        steps = []
        play = teacher.tracer._pool.play_each

        def watched(plans: Any) -> Any:
            results = list(play(plans))
            steps.extend(
                (played.steps - len(played), len(plan.start.actions))
                for plan, played in zip(plans, results, strict=True)
            )
            return results

        teacher.tracer._pool.play_each = watched  # type: ignore[method-assign]
        teacher.tracer.search([search])
        assert search.solution is None
        assert len(steps) > 5
        assert any(before for _, before in steps)
        assert all(replayed == (before if returns == "replay" else 0) for replayed, before in steps)


def test_a_learned_cells_game_is_replaced_by_one_of_the_same_score_or_a_higher() -> None:
    """400 and 500 points are one level of progress."""
    with agent_for("montezuma", replace_chance=0.3, slots=1) as agent:
        explorer, cell = agent.explorer, Cell(0, 9, 4, 4)
        explorer.archive.entries[cell] = Entry(Way(0).then(bytes(9)), 500.0, b"", is_safe=True, visits=1)
        better = {
            score: [explorer._is_better(cell, score, 5, is_safe=True) for _ in range(500)] for score in (400, 500, 511)
        }
        assert np.mean(better[500]) == pytest.approx(0.3, abs=0.08)
        assert all(better[511])
        assert not any(better[400])


def test_where_every_step_of_a_way_is_paid_for_a_shorter_one_is_better(hall: str) -> None:
    with agent_for(hall, slots=1) as agent:
        explorer, cell = agent.explorer, Cell(0, 0, 4, 4)
        explorer.archive.entries[cell] = Entry(Way(0).then(bytes(9)), 0.0, b"", is_safe=True, visits=1)
        assert [explorer._is_better(cell, 0.0, length, is_safe=True) for length in (8, 9, 10)] == [True, False, False]


@pytest.mark.parametrize(
    ("rooms", "columns", "stays"),
    [
        ([3, 3, 7, 7], [4, 4, 4, 4], True),  # it left the room, as games saved at a door do
        ([7, 7, 7, 7], [4, 4, 4, 4], False),
        ([3, 3, 3, 3], [4, 5, 5, 5], True),
        ([3, 3, 3, 3], [6, 6, 7, 4], False),
    ],
)
def test_a_saved_game_that_is_not_seen_where_its_cell_says_is_dropped(
    rooms: list[int], columns: list[int], stays: bool
) -> None:
    with agent_for("montezuma", slots=1) as agent:
        explorer, cell = agent.explorer, Cell(3, 0, 4, 4)
        for column in (1, 2, 4):
            explorer.archive.entries[cell._replace(column=column)] = Entry(Way(0), 0.0, b"", is_safe=True, visits=1)
        cells = np.stack([rooms, columns, [4] * 4], axis=-1)
        seen = Seen(cells, np.ones(4, bool), np.zeros((4, 196), np.uint8), np.zeros(4, np.int64))
        explorer._check_origin(cell, explorer.archive.entries[cell], 4, is_lost=False, seen=seen)
        assert (cell in explorer.archive.entries) == stays
        assert explorer.misplaced == 1 - stays
