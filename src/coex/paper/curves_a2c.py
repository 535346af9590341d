"""Figure 2 (fig:learning_curve): learning curves of A2C and A2C+CoEX; and, not there, of all methods of Table 1."""

from functools import partial

from coex.paper.figures import draw_curves
from coex.paper.study import Study
from coex.paper.table1 import A2C, COEX, COEX_RAM, SIMHASH
from coex.results.published import GAMES

RENDER = partial(draw_curves, ylabel="mean return of 40 episodes")

STUDY = Study("curves-a2c", "Figure 2: learning curves of A2C and A2C+CoEX", GAMES, (A2C, COEX), RENDER)

ALL_METHODS = Study(
    "curves-table1",
    "Learning curves of the methods of Table 1",
    ("Freeway", "MontezumaRevenge"),
    (A2C, SIMHASH, COEX, COEX_RAM),
    RENDER,
)
