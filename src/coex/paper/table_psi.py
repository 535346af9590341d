"""Table 6 (tbl:a2c_additional_performance): which parts of ψ(s) = (x, y, c, R) are needed."""

from coex.paper.study import Row, Study
from coex.paper.table1 import COEX
from coex.paper.tables import draw_table
from coex.results import published

# The paper has no c in these games (tbl:hyper-a2c). Where c is all there is, or stands with R alone, it stays.
_ONE_ROOM = ("Freeway", "Frostbite", "Qbert", "Seaquest")
_XY = {game: {"bonus.state": "xy"} for game in _ONE_ROOM}

ROWS = (
    Row("A2C", "a2c", published=published.PSI_NONE),
    Row("A2C+CoEX (c)", "a2c+coex", {"bonus.state": "c"}, published=published.PSI_C),
    Row("A2C+CoEX (c, R)", "a2c+coex", {"bonus.state": "cR"}, published=published.PSI_CR),
    Row("A2C+CoEX (x, y, c)", "a2c+coex", {"bonus.state": "xyc"}, _XY, published=published.PSI_XYC),
    Row("A2C+CoEX (x, y, c, R)", "a2c+coex", published=COEX.published),
)

STUDY = Study("table-psi", "Table 6: ablation of the state representation ψ", published.GAMES, ROWS, draw_table)
