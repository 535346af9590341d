"""What methods found and what they cost: the second table of a page about several runs."""

from collections.abc import Callable, Sequence
from html import escape
from statistics import median

from coex.report.comparison import Group, common_steps, score_of
from coex.report.run import Run
from coex.runs.progress import count, duration, number


def table(groups: list[Group], score: float | None = None) -> str:
    """One row a method: medians over its seeds. Without a score to reach, it is half of the best one on the page."""
    if score is None:
        scores = [found.middle for group in groups if (found := score_of(group, common_steps(groups))) is not None]
        score = max(scores, default=0.0) / 2
    rows = "".join(_row(group, score) for group in groups)
    return (
        f"<p>Medians over seeds. A return of {number(score)} is reached where the mean of 40 episodes first is; "
        "memory is the most that the learning process held, without the emulators’ processes.</p>"
        '<div class="scroll"><table class="scores"><thead><tr><th>method</th><th>rooms</th><th>states counted</th>'
        f"<th>steps a second</th><th>memory</th><th>return of {number(score)} after</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def time_to(run: Run, score: float) -> tuple[float, float] | None:
    """The steps and seconds after which the mean return of 40 episodes first was `score`; None: it was not."""
    for point in run.points:
        value = point.get("return_mean40")
        if isinstance(value, int | float) and value >= score and point.get("episodes", 0) >= 1:
            return float(point["step"]), float(point["seconds"])
    return None


def _row(group: Group, score: float) -> str:
    times = [time_to(run, score) for run in group.runs if run.points]
    reached = [time for time in times if time is not None]
    when = "–"
    if reached and score > 0:
        steps, seconds = (median(part) for part in zip(*reached, strict=True))
        when = f"{count(int(steps))} steps, {duration(seconds)} <small>{len(reached)} of {len(times)} seeds</small>"
    cells = [
        _median(group.runs, lambda run: run.last("rooms/true"), lambda rooms: f"{rooms:.0f}"),
        _median(group.runs, lambda run: run.last("counts/states"), lambda states: f"{states:,.0f}"),
        _median(group.runs, _rate, lambda rate: f"{rate:,.0f}"),
        _median(group.runs, _memory, lambda size: f"{size / 1e6:,.0f} MB"),
        when,
    ]
    name = f'<th><i class="c{group.colour}"></i>{escape(group.label)}</th>'
    return f"<tr>{name}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _median(runs: Sequence[Run], find: Callable[[Run], float | None], show: Callable[[float], str]) -> str:
    found = [value for run in runs if (value := find(run)) is not None]
    return show(median(found)) if found else "–"


def _rate(run: Run) -> float | None:
    seconds = run.last("seconds")
    return run.step / seconds if seconds else None


def _memory(run: Run) -> float | None:
    size = (run.summary or {}).get("peak_memory")
    return float(size) if isinstance(size, int | float) else None
