"""Contingency-aware exploration: agents that learn what they control, and explore with it.

Everything in `__all__` is public and follows semantic versioning; the rest may change with any version.
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# torch's OpenMP threads otherwise spin while they wait and starve the emulators. It is read when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

if TYPE_CHECKING:
    from coex.analysis.trained import TrainedAgent as TrainedAgent
    from coex.analysis.trained import load as load
    from coex.bonuses import Bonus as Bonus
    from coex.bonuses import BonusContext as BonusContext
    from coex.bonuses import Inspection as Inspection
    from coex.bonuses import Rewarded as Rewarded
    from coex.config.bonuses import ADMConfig as ADMConfig
    from coex.config.bonuses import ClusterConfig as ClusterConfig
    from coex.config.bonuses import CoexConfig as CoexConfig
    from coex.config.presets import make_config as make_config
    from coex.config.run import RunConfig as RunConfig
    from coex.envs.game_config import GameConfig as GameConfig
    from coex.envs.gymnasium_vector import GymnasiumVectorEnv as GymnasiumVectorEnv
    from coex.envs.gymnasium_vector import make_vec as make_vec
    from coex.envs.vector import VectorEnv as VectorEnv
    from coex.errors import CoexError as CoexError
    from coex.errors import UsageError as UsageError
    from coex.method.adm import AttentiveDynamicsModel as AttentiveDynamicsModel
    from coex.method.bonus import CoexBonus as CoexBonus
    from coex.method.counts import VisitCounts as VisitCounts
    from coex.method.locator import ADMLocator as ADMLocator
    from coex.method.rooms import RoomClusters as RoomClusters
    from coex.rollouts.rollout import Transitions as Transitions
    from coex.training.explorer import Explorer as Explorer
    from coex.training.loop import train as train

# Where each name lives: a name is imported when it is first asked for, so that `import coex` loads nothing else.
_HOMES = {
    "ADMConfig": "config.bonuses",
    "ADMLocator": "method.locator",
    "AttentiveDynamicsModel": "method.adm",
    "Bonus": "bonuses",
    "BonusContext": "bonuses",
    "ClusterConfig": "config.bonuses",
    "CoexBonus": "method.bonus",
    "CoexConfig": "config.bonuses",
    "CoexError": "errors",
    "Explorer": "training.explorer",
    "GameConfig": "envs.game_config",
    "GymnasiumVectorEnv": "envs.gymnasium_vector",
    "Inspection": "bonuses",
    "Rewarded": "bonuses",
    "RoomClusters": "method.rooms",
    "RunConfig": "config.run",
    "TrainedAgent": "analysis.trained",
    "Transitions": "rollouts.rollout",
    "UsageError": "errors",
    "VectorEnv": "envs.vector",
    "VisitCounts": "method.counts",
    "load": "analysis.trained",
    "make_config": "config.presets",
    "make_vec": "envs.gymnasium_vector",
    "train": "training.loop",
}
__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'coex' has no attribute {name!r}")
    return getattr(importlib.import_module(f"coex.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
