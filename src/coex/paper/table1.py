"""Table 1 (tbl:a2c_performance): A2C, its baselines, CoEX and CoEX with the truth from RAM."""

from coex.paper.study import Row, Study
from coex.paper.tables import draw_table
from coex.results import published

A2C = Row("A2C", "a2c", published=published.A2C)
SIMHASH = Row("A2C+Pixel-SimHash", "a2c+simhash", published=published.A2C_SIMHASH)
COEX = Row("A2C+CoEX", "a2c+coex", published=published.A2C_COEX)
COEX_RAM = Row("A2C+CoEX+RAM", "a2c+coex-ram", published=published.A2C_COEX_RAM)

STUDY = Study("table1", "Table 1: A2C methods", published.GAMES, (A2C, SIMHASH, COEX, COEX_RAM), draw_table)
