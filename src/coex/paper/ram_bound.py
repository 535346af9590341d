"""Figure 6 (fig:a2c_exp_ram): CoEX beside its upper bound, the location and the room from RAM."""

from coex.paper.curves_a2c import RENDER
from coex.paper.study import Study
from coex.paper.table1 import A2C, COEX, COEX_RAM
from coex.results.published import GAMES

STUDY = Study("ram-bound", "Figure 6: A2C+CoEX and its upper bound from RAM", GAMES, (A2C, COEX, COEX_RAM), RENDER)
