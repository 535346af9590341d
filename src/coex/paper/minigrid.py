"""Not in the paper: tasks of hard exploration that are learned in minutes, with and without bonuses.

Four rooms in a row with closed doors between them, and the goal in the last: random play met it in none of 1,000
episodes. Every episode has the same layout, as in an Atari game. The score is below 1 until the last step, so R says
nothing here.
"""

from dataclasses import replace

from coex.paper.curves_a2c import RENDER
from coex.paper.study import FINE_ROOMS, LAYOUT, TWO_VALUES, Row, Study

FOUR_ROOMS = "gym:MiniGrid-MultiRoom-N4-S5-v1"
# All four rooms are in one picture, in which an open door changes less than the player's place: with the default of 0.7
# there is one cluster, with FINE_ROOMS there are about as many as places.

STUDY = Study(
    "minigrid",
    "A2C methods on a MiniGrid of four rooms",
    (FOUR_ROOMS,),
    (
        Row("A2C", "a2c", LAYOUT),
        Row("A2C+Pixel-SimHash", "a2c+simhash", LAYOUT),
        Row("A2C+CoEX (x, y)", "a2c+coex", LAYOUT | {"bonus.state": "xy"}),
        Row("A2C+CoEX (c)", "a2c+coex", LAYOUT | FINE_ROOMS | {"bonus.state": "c"}),
        Row("A2C+CoEX (x, y, c)", "a2c+coex", LAYOUT | FINE_ROOMS | {"bonus.state": "xyc"}),
    ),
    RENDER,
    steps=200_000,
    seeds=3,
)

PPO_STUDY = replace(
    STUDY,
    name="minigrid-ppo",
    title="PPO methods on a MiniGrid of four rooms",
    rows=(
        Row("PPO", "ppo", LAYOUT),
        Row("PPO+CoEX (x, y)", "ppo+coex", LAYOUT | {"bonus.state": "xy"}),
        Row(
            "PPO+CoEX (x, y), two values",
            "ppo+coex",
            LAYOUT | TWO_VALUES | {"bonus.state": "xy"},
        ),
    ),
)
