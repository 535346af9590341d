"""What is compared: one entry a row of the table."""

from dataclasses import dataclass, field
from typing import Any

GAME = "MontezumaRevenge"


@dataclass(frozen=True)
class Peer:
    """A run of Stable-Baselines3 (SB3); `arguments` go to the algorithm's constructor as they are."""

    algorithm: str
    environments: int
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The peer's name in the table."""
        return f"SB3 {self.algorithm}"


@dataclass(frozen=True)
class Row:
    """One of our methods beside one peer; `options` are further options of `coex train`."""

    name: str
    method: str
    peer: Peer
    options: tuple[str, ...] = ()
    # How often the update sees each sample: with acting, it fixes the policy network's work a step.
    epochs: int = 1


# OpenAI baselines' A2C settings, in the form that RL Baselines3 Zoo gives them for Atari.
SB3_A2C = Peer("A2C", environments=16, arguments={"n_steps": 5, "ent_coef": 0.01, "vf_coef": 0.25})
# RL Baselines3 Zoo's PPO settings for Atari, with 4 epochs of 4 minibatches, as ours by default.
SB3_PPO = Peer(
    "PPO",
    environments=8,
    arguments={
        "n_steps": 128,
        "n_epochs": 4,
        "batch_size": 256,
        "learning_rate": 2.5e-4,
        "clip_range": 0.1,
        "ent_coef": 0.01,
        "vf_coef": 0.5,
    },
)
# The peer's environment has no-ops, and no sticky actions.
PPO_OPTIONS = ("--envs", "8", "--sticky", "0", "--set", "env.max_noops=30")

ROWS = (
    Row(name="a2c", method="a2c", peer=SB3_A2C, options=("--envs", "16")),
    # Beside the same plain peer: what CoEX costs is ours to pay.
    Row(name="a2c+coex", method="a2c+coex", peer=SB3_A2C, options=("--envs", "16")),
    Row(name="ppo", method="ppo", peer=SB3_PPO, options=PPO_OPTIONS, epochs=4),
    Row(name="ppo+coex", method="ppo+coex", peer=SB3_PPO, options=PPO_OPTIONS, epochs=4),
)
