"""Figure 10 (fig:a2c_exp_additional_1): learning curves of the ablation of ψ."""

from coex.paper.curves_a2c import RENDER
from coex.paper.study import Study
from coex.paper.table_psi import ROWS
from coex.results.published import GAMES

STUDY = Study("curves-psi", "Figure 10: learning curves of the ablation of ψ", GAMES, ROWS, RENDER)
