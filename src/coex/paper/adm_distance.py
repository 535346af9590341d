"""Figure 3 (fig:dynamics): how far the located cell is from the player while A2C+CoEX learns.

The paper gives no numbers, but says: 1 or 2 cells on average, and more for a while in a new room. Beside our losses
stand the paper's own (`coex.method.adm.PLAIN`).
"""

from functools import partial

from coex.paper.figures import draw_curves
from coex.paper.study import PLAIN_LOSSES, Row, Study

STUDY = Study(
    "adm-distance",
    "Figure 3: distance of the ADM's location during training (the paper: typically 1 or 2 cells)",
    ("MontezumaRevenge", "Seaquest", "Hero", "Venture"),
    (
        Row("A2C+CoEX", "a2c+coex"),
        Row("A2C+CoEX, the paper's learner", "a2c+coex", preset="paper"),
        Row("A2C+CoEX, the paper's learner and losses", "a2c+coex", PLAIN_LOSSES, preset="paper"),
    ),
    partial(draw_curves, metric="adm/distance", ylabel="distance, cells of the 9×9 grid"),
)
