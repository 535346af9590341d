"""Table 2 (tbl:exp_performance): CoEX at half of its budget and at all of it, beside other exploration methods."""

from coex.paper.study import Row, Study
from coex.paper.tables import draw_table
from coex.results import published

ROWS = (
    Row("A2C+CoEX, half", "a2c+coex", published=published.A2C_COEX_50M, steps=50_000_000),
    Row("A2C+CoEX", "a2c+coex", published=published.A2C_COEX),
    Row("DDQN+", published=published.DDQN_PLUS, steps=25_000_000),
    Row("A3C+", published=published.A3C_PLUS, steps=50_000_000),
    Row("TRPO-AE-SimHash", published=published.TRPO_AE_SIMHASH, steps=50_000_000),
    Row("Sarsa-φ-EB", published=published.SARSA_PHI_EB, steps=25_000_000),
    Row("DQN-PixelCNN", published=published.DQN_PIXELCNN, steps=37_500_000),
    Row("Curiosity-Driven", published=published.CURIOSITY_DRIVEN, steps=25_000_000),
)

STUDY = Study("table2", "Table 2: other exploration methods", published.GAMES, ROWS, draw_table)
