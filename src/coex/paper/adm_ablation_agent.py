"""Figure 9 (fig:a2c_exp_ablation_adm_joint): A2C+CoEX with the ADM's losses left out."""

from coex.paper.curves_a2c import RENDER
from coex.paper.study import NO_CELL_LOSS, NO_ENTROPY_LOSS, Row, Study
from coex.paper.table1 import COEX

STUDY = Study(
    "adm-ablation-agent",
    "Figure 9: A2C+CoEX under different losses of the ADM",
    ("MontezumaRevenge", "Freeway", "Seaquest"),
    (
        Row("action", "a2c+coex", NO_CELL_LOSS | NO_ENTROPY_LOSS),
        Row("action, cell", "a2c+coex", NO_ENTROPY_LOSS),
        Row("action, entropy", "a2c+coex", NO_CELL_LOSS),
        Row("action, cell, entropy", "a2c+coex", published=COEX.published),
    ),
    RENDER,
)
