"""Figure 5 (fig:ppo_coex): learning curves of PPO and PPO+CoEX."""

from coex.paper.curves_a2c import RENDER
from coex.paper.study import Study
from coex.paper.table_ppo import PPO, PPO_COEX
from coex.results.published import GAMES, PPO_STEPS

STUDY = Study(
    "curves-ppo", "Figure 5: learning curves of PPO and PPO+CoEX", GAMES, (PPO, PPO_COEX), RENDER, steps=PPO_STEPS
)
