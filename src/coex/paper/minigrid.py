"""Not in the paper: tasks of hard exploration that are learned in minutes, with and without bonuses.

Every episode has the same layout, as in an Atari game. A2C has two rooms and a door between them, the goal in the
second: random play meets it in one episode of ninety. PPO has four rooms, where random play met it in none of 1,000.
"""

from dataclasses import replace

from coex.paper.curves_a2c import RENDER
from coex.paper.study import Row, Study

TWO_ROOMS = "gym:MiniGrid-MultiRoom-N2-S4-v0"
FOUR_ROOMS = "gym:MiniGrid-MultiRoom-N4-S5-v1"
LAYOUT_0 = {"env.levels": "1"}
LAYOUT_5 = LAYOUT_0 | {"env.first_level": "5"}

STUDY = Study(
    "minigrid",
    "A2C methods on a MiniGrid of two rooms",
    (TWO_ROOMS,),
    (
        Row("A2C", "a2c", LAYOUT_0),
        Row("A2C+Pixel-SimHash", "a2c+simhash", LAYOUT_0),
        Row("A2C+CoEX (x, y)", "a2c+coex", LAYOUT_0 | {"bonus.state": "xy"}),
        Row("A2C+CoEX (c)", "a2c+coex", LAYOUT_0 | {"bonus.state": "c"}),
        Row("A2C+CoEX (x, y, c)", "a2c+coex", LAYOUT_0 | {"bonus.state": "xyc"}),
        Row("A2C+CoEX (x, y, c, R)", "a2c+coex", LAYOUT_0),
    ),
    RENDER,
    steps=200_000,
    seeds=3,
)

PPO_STUDY = replace(
    STUDY,
    name="minigrid-ppo",
    title="PPO methods on a MiniGrid of four rooms",
    games=(FOUR_ROOMS,),
    rows=(
        Row("PPO", "ppo", LAYOUT_5),
        Row("PPO+CoEX (x, y)", "ppo+coex", LAYOUT_5 | {"bonus.state": "xy"}),
        Row(
            "PPO+CoEX (x, y), two values",
            "ppo+coex",
            LAYOUT_5 | {"bonus.state": "xy", "learner.two_value_heads": "true"},
        ),
    ),
)
