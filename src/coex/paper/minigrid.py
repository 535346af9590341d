"""Not in the paper: a task of hard exploration that is learned in minutes, by A2C with and without bonuses.

Two rooms and a door between them, the goal in the second: without a bonus one episode in a hundred meets it. Every
episode has the same layout, as in an Atari game.
"""

from dataclasses import replace

from coex.paper.curves_a2c import RENDER
from coex.paper.study import Row, Study

GAME = "gym:MiniGrid-MultiRoom-N2-S4-v0"
ONE_LAYOUT = {"env.levels": "1"}

STUDY = Study(
    "minigrid",
    "A2C methods on a MiniGrid of two rooms",
    (GAME,),
    (
        Row("A2C", "a2c", ONE_LAYOUT),
        Row("A2C+Pixel-SimHash", "a2c+simhash", ONE_LAYOUT),
        Row("A2C+CoEX (x, y)", "a2c+coex", ONE_LAYOUT | {"bonus.state": "xy"}),
        Row("A2C+CoEX (c)", "a2c+coex", ONE_LAYOUT | {"bonus.state": "c"}),
        Row("A2C+CoEX (x, y, c)", "a2c+coex", ONE_LAYOUT | {"bonus.state": "xyc"}),
        Row("A2C+CoEX (x, y, c, R)", "a2c+coex", ONE_LAYOUT),
    ),
    RENDER,
    steps=200_000,
    seeds=3,
)

PPO_STUDY = replace(
    STUDY,
    name="minigrid-ppo",
    title="PPO methods on a MiniGrid of two rooms",
    rows=(
        Row("PPO", "ppo", ONE_LAYOUT),
        Row("PPO+CoEX (x, y)", "ppo+coex", ONE_LAYOUT | {"bonus.state": "xy"}),
        Row(
            "PPO+CoEX (x, y), two values",
            "ppo+coex",
            ONE_LAYOUT | {"bonus.state": "xy", "learner.two_value_heads": "true"},
        ),
    ),
)
