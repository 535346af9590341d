"""Figure 2 (fig:learning_curve): learning curves of A2C and A2C+CoEX."""

from functools import partial

from coex.paper.figures import draw_curves
from coex.paper.study import Study
from coex.paper.table1 import A2C, COEX
from coex.published import GAMES

RENDER = partial(draw_curves, ylabel="mean return of 40 episodes")

STUDY = Study("curves-a2c", "Figure 2: learning curves of A2C and A2C+CoEX", GAMES, (A2C, COEX), RENDER)
