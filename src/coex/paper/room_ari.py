"""Figure 4 (fig:ari_curve): agreement of clusters and rooms while A2C+CoEX learns, over 100 observations."""

from functools import partial

from coex.paper.figures import draw_curves
from coex.paper.study import Row, Study

STUDY = Study(
    "room-ari",
    "Figure 4: adjusted Rand index of clusters against rooms, 100 recent observations",
    ("MontezumaRevenge", "Venture", "Hero", "PrivateEye"),
    (Row("A2C+CoEX", "a2c+coex"),),
    partial(draw_curves, metric="rooms/ari", ylabel="adjusted Rand index"),
)
