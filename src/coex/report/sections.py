"""The parts of the page about one run."""

from html import escape
from typing import Any

from coex.config.presets import changed_settings
from coex.config.settings import flat_settings
from coex.report.charts import Line, Mark, chart
from coex.report.maps import RoomMaps
from coex.report.repeat import train_command
from coex.report.run import Run
from coex.runs.progress import count, duration, number

# Title, unit, and the metrics that share a chart, with their labels.
CURVES: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("Reward", "mean of a step, unclipped", {"reward/mean": ""}),
    ("Localisation error", "cells of the 9×9 grid, by RAM", {"adm/distance": ""}),
    (
        "Rooms: clusters against RAM",
        "adjusted Rand index",
        {"rooms/ari_long": "last 5,000 observations", "rooms/ari": "last 100"},
    ),
    ("Rooms found", "count", {"rooms/clusters": "clusters", "rooms/true": "by RAM"}),
    ("States visited", "different ψ(s)", {"counts/states": ""}),
    ("Bonus", "mean of a step, before its weight", {"bonus/mean": ""}),
    ("Policy entropy", "nats", {"entropy": ""}),
    ("Does the value fit?", "explained variance", {"explained_variance": ""}),
    (
        "Does the network look?",
        "standard deviation over states",
        {"network/policy_spread": "of log π", "network/spread": "of the last hidden layer"},
    ),
    ("Dead units, cut gradients", "share", {"network/dead_units": "dead units", "cut_gradients": "cut gradients"}),
    ("Throughput", "agent steps a second", {"steps_per_second": ""}),
)
_MARKS = {"adm/distance": [Mark(1.0, "one cell")]}


Card = tuple[str, str, str]  # a figure, what it is, and a remark


def headline(run: Run) -> str:
    """The figures to know first."""
    last, paper = run.last, paper_mark(run)
    cards: list[Card] = [
        (number(last("max_return_mean40")), "best mean return of 40 episodes", paper[0].label if paper else ""),
        (count(run.step), "agent steps", f"{count(run.step * run.config.env.frame_skip)} frames"),
    ]
    if (episodes := last("episodes")) is not None:
        recent = f"last 40: mean return {number(last('return_mean40'))}" if episodes else ""
        cards.append((f"{episodes:,.0f}", "episodes", recent))
    if (distance := last("adm/distance")) is not None:
        cards.append((f"{distance:.2f}", "cells off", "the agent’s place, against RAM"))
    cards += _rooms_card(last("rooms/clusters"), last("rooms/true")) + _states_card(run)
    if seconds := last("seconds"):
        cards.append((f"{run.step / seconds:,.0f}", "steps a second", f"{duration(seconds)} in all"))
    body = "".join(
        f"<div><b>{figure}</b><span>{name}</span><small>{note}</small></div>" for figure, name, note in cards
    )
    return f'<div class="cards">{body}</div>'


def _rooms_card(clusters: float | None, true: float | None) -> list[Card]:
    if clusters is not None:
        return [(f"{clusters:.0f}", "rooms found", "clusters" if true is None else f"RAM says {true:.0f}")]
    return [] if true is None else [(f"{true:.0f}", "rooms found", "by RAM")]


def _states_card(run: Run) -> list[Card]:
    if run.visits is not None and len(run.visits.counts):
        once = int((run.visits.counts == 1).sum())
        return [(f"{len(run.visits.counts):,}", "states visited", f"{once:,} of them once")]
    states = run.last("counts/states")
    return [] if states is None else [(f"{states:,.0f}", "states visited", "")]


def paper_mark(run: Run, colour: int | None = None) -> list[Mark]:
    """The paper's score of the run's method, for its learning curve."""
    paper = run.published
    if paper is None:
        return []
    return [Mark(paper.score, f"the paper: {number(paper.score)} after {count(paper.steps)} steps", colour)]


def curves(run: Run) -> str:
    """The learning curve, then whatever else was measured."""
    learning = chart(
        "Learning curve",
        "mean return of the last 40 episodes",
        [Line("", *run.series("return_mean40"))],
        paper_mark(run),
        classes="wide",
    )
    others = [
        chart(
            title,
            unit,
            [Line(label, *run.series(key), colour=index) for index, (key, label) in enumerate(keys.items())],
            [mark for key in keys for mark in _MARKS.get(key, [])],
        )
        for title, unit, keys in CURVES
    ]
    return f'<div class="charts">{learning}{"".join(others)}</div>' if run.points else ""


def where_it_has_been(run: Run, prefix: str) -> str:
    """The map of visits, the most visited states and the rarest."""
    if run.visits is None or not len(run.visits.counts):
        return ""
    maps = RoomMaps(run.visits, prefix)
    located = "" if {"x", "y"} <= set(run.visits.letters) else " This ψ has no location, so there is no heat."
    return (
        f"{maps.pictures()}<h3>Map of visits</h3>"
        f'<p class="quiet">Until step {run.visits.step:,}. A cell’s colour is the logarithm of its visits; '
        f"point at one for the number.{located}</p>{maps.rooms()}"
        f"<h3>Most visited states</h3>{maps.states(maps.most_visited)}"
        '<h3>Rarest states</h3><p class="quiet">The newest of those with the fewest visits.</p>'
        f"{maps.states(maps.rarest)}"
    )


def how_to_repeat(run: Run) -> str:
    """The exact command, and every setting."""
    changed = changed_settings(run.config)
    rows = "".join(
        _setting(name, value, name in changed) for name, value in flat_settings(run.config.to_dict()).items()
    )
    seed = "The same command on the same machine gives the same numbers."
    return (
        f'<h3>Repeat this run</h3><pre class="command"><code>{escape(train_command(run.config))}</code></pre>'
        f'<p class="quiet">{seed} The run is in <code>{escape(str(run.path))}</code>.</p>'
        f"<details><summary>All settings</summary>"
        f'<p class="quiet">Those that differ from the method’s own are marked.</p>'
        f'<table class="settings"><tbody>{rows}</tbody></table></details>'
    )


def _setting(name: str, value: Any, is_changed: bool) -> str:
    mark = ' class="changed"' if is_changed else ""
    return f"<tr{mark}><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>"


def notes(run: Run) -> str:
    """What is missing or damaged."""
    lines = run.notes()
    return f'<ul class="notes">{"".join(f"<li>{escape(line)}</li>" for line in lines)}</ul>' if lines else ""


def status(run: Run) -> str:
    return f'<span class="status {run.status.replace(" ", "-")}">{run.status}</span>'
