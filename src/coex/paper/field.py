"""Not in the paper: the bonuses side by side, one learner and one protocol for all, a panel each.

The runs are those of `coex compare` (results/queue-compare.txt), taken in by `coex paper --add`.
"""

from pathlib import Path

from coex.config.presets import BONUSES
from coex.paper.figures import draw_panels
from coex.paper.minigrid import FOUR_ROOMS
from coex.paper.study import Request, Row, Study, layout
from coex.paper.tables import draw_table

_NAMES = [name for name in BONUSES if not name.endswith("-ram")]
_STEPS, _ATARI_STEPS = 200_000, 500_000
LAYOUTS = (5, 6, 7)  # 5 is the one that settings were chosen on


def _render(study: Study, request: Request) -> list[Path]:
    return [*draw_panels(study, request, ylabel="mean return of 40 episodes"), *draw_table(study, request)]


def _on_layout(number: int) -> Study:
    def row(learner: str, bonus: str) -> Row:
        state = {"bonus.state": "xy"} if bonus.startswith("coex") else {}  # one picture holds all rooms
        return _row(learner, bonus, layout(number) | state, _STEPS)

    rows = tuple(row(learner, bonus) for learner in ("a2c", "ppo") for bonus in ("", *_NAMES))
    title = f"All bonuses on a MiniGrid of four rooms, layout {number}"
    return Study(f"field-layout-{number}", title, (FOUR_ROOMS,), rows, _render, steps=_STEPS, seeds=3)


def _on_atari(game: str) -> Study:
    rows = tuple(_row("a2c", bonus, {}, _ATARI_STEPS) for bonus in ("", *_NAMES) if bonus != "pixelcnn-chunks")
    title = f"All bonuses on {game}"
    return Study(f"field-{game}", title, (game,), rows, _render, steps=_ATARI_STEPS, seeds=1)


def _row(learner: str, bonus: str, settings: dict[str, str], steps: int) -> Row:
    method = f"{learner}+{bonus}" if bonus else learner
    return Row(method, method, settings, steps=steps)


STUDIES = (*map(_on_layout, LAYOUTS), *map(_on_atari, ("Freeway", "MontezumaRevenge")))
