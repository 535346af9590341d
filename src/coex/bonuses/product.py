"""CoEX's counts over the whole run, times E3B's novelty within the episode (global × episodic: Henaff et al. 2023)."""

from typing import Any

from coex.bonuses import Bonus, BonusContext, Inspection, Metrics, Rewarded
from coex.bonuses.e3b import E3BBonus
from coex.config.field import CoexE3BConfig
from coex.method.bonus import CoexBonus
from coex.rollouts.rollout import Transitions


class CoexE3BBonus(Bonus):
    """1/√N(ψ) · φᵀC⁻¹φ."""

    def __init__(self, config: CoexE3BConfig, context: BonusContext) -> None:
        coex_seed, e3b_seed = context.seed.spawn(2)
        self.coex = CoexBonus(config.coex, context._replace(seed=coex_seed))
        self.e3b = E3BBonus(config.e3b, context._replace(seed=e3b_seed))

    @property
    def ready(self) -> bool:
        return self.coex.ready

    def reward(self, rollout: Transitions) -> Rewarded:
        counted, novel = self.coex.reward(rollout), self.e3b.reward(rollout)
        return counted._replace(bonus=counted.bonus * novel.bonus, memo=counted)

    def update(self, rollout: Transitions, rewarded: Rewarded) -> Metrics:
        return self.coex.update(rollout, rewarded.memo) | self.e3b.update(rollout, rewarded)

    def snapshot(self) -> dict[str, Any]:
        return self.coex.snapshot()

    def forget_episodes(self) -> None:
        self.coex.forget_episodes()
        self.e3b.forget_episodes()

    def inspect(self, step: Transitions) -> Inspection:
        return self.coex.inspect(step)

    def state_dict(self) -> dict[str, Any]:
        return {"coex": self.coex.state_dict(), "e3b": self.e3b.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.coex.load_state_dict(state["coex"])
        self.e3b.load_state_dict(state["e3b"])
