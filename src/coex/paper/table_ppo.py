"""Table 3 (tbl:ppo_performance): PPO with and without CoEX, with sticky actions."""

from coex.paper.study import Row, Study
from coex.paper.tables import draw_table
from coex.results import published

PPO = Row("PPO", "ppo", published=published.PPO, steps=published.PPO_STEPS)
PPO_COEX = Row("PPO+CoEX", "ppo+coex", published=published.PPO_COEX, steps=published.PPO_STEPS)

STUDY = Study(
    "table-ppo",
    "Table 3: PPO methods",
    published.GAMES,
    (PPO, PPO_COEX),
    draw_table,
    steps=published.PPO_STEPS,
)
