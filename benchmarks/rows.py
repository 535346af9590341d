"""What is compared: one entry a row of the table."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import groupby
from operator import attrgetter
from typing import Any

GAME = "MontezumaRevenge"


@dataclass(frozen=True)
class Peer:
    """Another training loop, run by `module` with `options`; `arguments` are its algorithm's settings."""

    label: str  # its column in the table
    module: str
    algorithm: str
    environments: int
    arguments: dict[str, Any] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    package: str | None = None  # what it needs and may do without: then its column says so

    @property
    def is_installed(self) -> bool:
        return self.package is None or find_spec(self.package) is not None


@dataclass(frozen=True)
class Row:
    """One of our methods beside its peers; `options` are further options of `coex train`."""

    name: str
    method: str
    peers: Sequence[Peer]
    options: tuple[str, ...] = ()
    # How often the update sees each sample: with acting, it fixes the policy network's work a step.
    epochs: int = 1
    precision: str = "float32"  # of the policy network's products; the peers' are float32


def make_peers(algorithm: str, environments: int, arguments: dict[str, Any]) -> tuple[Peer, ...]:
    """Stable-Baselines3 (SB3), and a bare loop on ALE's own vector environment and on EnvPool."""
    lean = "benchmarks.lean"
    return (
        Peer("SB3", "benchmarks.peer", algorithm, environments, arguments),
        Peer("lean, ALE", lean, algorithm, environments, arguments, ("--simulator", "ale")),
        Peer("lean, EnvPool", lean, algorithm, environments, arguments, ("--simulator", "envpool"), "envpool"),
    )


# OpenAI baselines' A2C settings, in the form that RL Baselines3 Zoo gives them for Atari.
A2C_PEERS = make_peers("A2C", environments=16, arguments={"n_steps": 5, "ent_coef": 0.01, "vf_coef": 0.25})
# RL Baselines3 Zoo's PPO settings for Atari, with 4 epochs of 4 minibatches, as ours by default.
PPO_PEERS = make_peers(
    "PPO",
    environments=8,
    arguments={
        "n_steps": 128,
        "n_epochs": 4,
        "batch_size": 256,
        "learning_rate": 2.5e-4,
        "gae_lambda": 0.95,
        "clip_range": 0.1,
        "ent_coef": 0.01,
        "vf_coef": 0.5,
    },
)
# The peers' environments have no-ops, and no sticky actions; the peers make every pass.
PPO_OPTIONS = ("--envs", "8", "--sticky", "0", "--set", "env.max_noops=30", "--set", "learner.max_kl=0")

PLAIN_ROWS = (
    Row(name="a2c", method="a2c", peers=A2C_PEERS, options=("--envs", "16")),
    # Beside the same plain peers: what CoEX costs is ours to pay.
    Row(name="a2c+coex", method="a2c+coex", peers=A2C_PEERS, options=("--envs", "16")),
    Row(name="ppo", method="ppo", peers=PPO_PEERS, options=PPO_OPTIONS, epochs=4),
    Row(name="ppo+coex", method="ppo+coex", peers=PPO_PEERS, options=PPO_OPTIONS, epochs=4),
)
# Each once more with the option that most gains from a processor that multiplies in bfloat16.
ROWS = tuple(
    replace(row, name=row.name + suffix, precision=precision)
    for _, block in groupby(PLAIN_ROWS, attrgetter("peers"))
    for rows in [list(block)]
    for suffix, precision in (("", "float32"), (" in bfloat16", "bfloat16"))
    for row in rows
)
