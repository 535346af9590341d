"""What a user sees: a line that rewrites itself on a terminal, plain lines elsewhere, nothing when quiet."""

import io

import pytest

from coex.runs.progress import Progress, count, duration, number

POINT = {"step": 50_000, "seconds": 60.0, "steps_per_second": 1_000.0, "return_mean40": 12.5, "episodes": 7}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_one_line_that_rewrites_itself() -> None:
    screen = Terminal()
    progress = Progress(100_000, 4, stream=screen)
    progress.show(POINT)
    progress.show(POINT | {"step": 100_000}, last=True)
    lines = screen.getvalue().split("\r")
    assert len(lines) == 3
    facts = ["50%", "50k steps (200k frames)", "1,000 steps/s", "50s left", "return 12.5 over 7 episodes"]
    assert lines[1].strip().split(" · ") == facts
    assert lines[2].endswith("\n")
    assert "1m00s" in lines[2]


def test_other_outputs_get_a_plain_line_now_and_then() -> None:
    log = io.StringIO()
    progress = Progress(100_000, 4, stream=log)
    for _ in range(5):
        progress.show(POINT)
    progress.show(POINT | {"adm/distance": 1.23, "rooms/clusters": 3, "return_mean40": None}, last=True)
    lines = log.getvalue().splitlines()
    assert len(lines) == 2
    ends = lines[1].split(" · ")[-3:]
    assert [fact in end for fact, end in zip(("– ", "1.2 cells", "3 rooms"), ends, strict=True)] == [True] * 3


def test_an_archive_tells_its_rooms_cells_and_best_score() -> None:
    log = io.StringIO()
    progress = Progress(100_000, 4, stream=log)
    for rooms in (1, 2):
        progress.show(POINT | {"archive/rooms": rooms, "archive/cells": 1_200, "archive/best": 2_500.0}, last=True)
    one, two = log.getvalue().splitlines()
    assert "1 room and 1,200 cells in the archive, best score 2,500" in one
    assert "2 rooms and" in two


def test_a_run_that_stood_still_is_no_reason_to_fall() -> None:
    log = io.StringIO()
    Progress(100_000, 4, stream=log).show(POINT | {"steps_per_second": 0.0})
    assert "0 steps/s · 1m00s" in log.getvalue()


def test_quiet_is_silent() -> None:
    log = io.StringIO()
    progress = Progress(100_000, 4, quiet=True, stream=log)
    progress.say("hello")
    progress.show(POINT, last=True)
    progress.close()
    assert log.getvalue() == ""


@pytest.mark.parametrize(("value", "text"), [(999, "999"), (1_234_567, "1.23M"), (4e8, "400M"), (2e9, "2B")])
def test_counts(value: float, text: str) -> None:
    assert count(value) == text


@pytest.mark.parametrize(("seconds", "text"), [(5, "5s"), (65, "1m05s"), (3_723, "1h02m")])
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(("value", "text"), [(None, "–"), (11_618.2, "11,618"), (0.9564, "0.956"), (-7.5, "-7.5")])
def test_returns(value: float | None, text: str) -> None:
    assert number(value) == text
