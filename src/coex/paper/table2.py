"""Table 2 (tbl:exp_performance): CoEX at half of its budget and at all of it, beside other exploration methods.

The others' scores are their papers', each with a learner of its own; our rows of their bonuses have CoEX's learner.
"""

from coex.paper.study import Row, Study
from coex.paper.tables import draw_table
from coex.results import published

ROWS = (
    Row("A2C+CoEX, half", "a2c+coex", published=published.A2C_COEX_50M, steps=50_000_000),
    Row("A2C+CoEX", "a2c+coex", published=published.A2C_COEX),
    Row("DDQN+", published=published.DDQN_PLUS, steps=25_000_000),
    Row("A3C+", published=published.A3C_PLUS, steps=50_000_000),
    Row("A2C+CTS", "a2c+cts"),
    Row("TRPO-AE-SimHash", published=published.TRPO_AE_SIMHASH, steps=50_000_000),
    Row("A2C+AE-SimHash", "a2c+ae-simhash"),
    Row("Sarsa-φ-EB", published=published.SARSA_PHI_EB, steps=25_000_000),
    Row("A2C+φ-EB", "a2c+phi-eb"),
    Row("DQN-PixelCNN", published=published.DQN_PIXELCNN, steps=37_500_000),
    Row("A2C+PixelCNN", "a2c+pixelcnn"),
    Row("Curiosity-Driven", published=published.CURIOSITY_DRIVEN, steps=25_000_000),
    Row("A2C+curiosity", "a2c+curiosity"),
)
# The table shows what was printed.
NOTES = (
    "DQN-PixelCNN's 5501 on Qbert is its source's score on Solaris, a column off; the source has none on Qbert.",
    "A3C+'s 142 on Montezuma's Revenge is with episodes that end with a life; without, as CoEX plays, it is 1,127.",
    "PPO's score on Montezuma's Revenge is 1,797 in the paper's text; the source it names (RND) has 2,497.",
)

STUDY = Study("table2", "Table 2: other exploration methods", published.GAMES, ROWS, draw_table, notes=NOTES)
