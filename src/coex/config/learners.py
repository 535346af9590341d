"""Settings of the learners, and of the rewards they are given."""

from dataclasses import dataclass
from typing import Literal

from coex.config.checks import check_settings

Precision = Literal["float32", "bfloat16"]


RewardUnit = Literal["one", "largest"]


@dataclass(frozen=True)
class RewardConfig:
    """The learner's reward is β₁·clip(r, −1, 1) + β₂·bonus, r divided by the largest so far if that is the unit."""

    extrinsic_weight: float = 1.0  # β₁
    bonus_weight: float = 1.0  # β₂
    clip: float = 1.0  # 0: rewards are not clipped
    unit: RewardUnit = "one"  # largest: clipped rewards are divided by the size of the largest so far

    def __post_init__(self) -> None:
        check_settings(self, weights="extrinsic_weight bonus_weight clip")


@dataclass(frozen=True)
class A2CConfig:
    """The paper's appendix B; what it leaves open is OpenAI baselines'."""

    num_steps: int = 5  # of each environment in a rollout
    gamma: float = 0.99  # discount
    gae_lambda: float = 1.0  # 1: returns of `num_steps` steps; less: generalised advantage estimates
    optimizer: Literal["rmsprop", "adam"] = "rmsprop"  # rmsprop: TensorFlow's form
    learning_rate: float = 7e-4  # at the start
    decay_learning_rate: bool = True  # linearly to 0 over the run's `schedule_steps`
    rmsprop_alpha: float = 0.99  # of its running squares
    rmsprop_epsilon: float = 1e-5  # inside the root
    adam_epsilon: float = 1e-5  # beside the root
    entropy_weight: float = 0.01  # of the policy's entropy in the loss
    log_entropy: bool = False  # the loss has the logarithm of the entropy, weighed for three actions and more for more
    value_weight: float = 0.5  # of the value's half squared error in the loss
    max_grad_norm: float = 0.5  # a gradient of a larger norm is cut to it
    normalise_rewards: bool = False  # in units of the standard deviation of their discounted sum
    normalise_advantages: bool = False  # in units of their recent root mean square
    centre_observations: bool = False  # the network sees what differs from the mean picture so far
    precision: Precision = "float32"  # bfloat16: less exact, and faster on processors that multiply in it

    def __post_init__(self) -> None:
        check_settings(
            self,
            counts="num_steps",
            positive="learning_rate rmsprop_epsilon adam_epsilon max_grad_norm",
            weights="entropy_weight value_weight",
            shares="gamma gae_lambda rmsprop_alpha",
        )


@dataclass(frozen=True)
class PPOConfig:
    """The paper's appendix B; what it leaves open is OpenAI baselines'."""

    num_steps: int = 128  # of each environment in a rollout
    num_epochs: int = 4  # passes over a rollout
    num_minibatches: int = 4  # gradient steps of a pass
    gamma: float = 0.99  # discount
    gae_lambda: float = 0.95  # of generalised advantage estimates
    learning_rate: float = 1e-5  # Adam's
    decay_learning_rate: bool = False  # linearly to 0 over the run's `schedule_steps`
    adam_epsilon: float = 1e-5  # beside the root
    clip_range: float = 0.1  # how far an action's probability may move before its gradient stops
    max_kl: float = 0.0  # ends a rollout's passes once a minibatch finds the policy further from its start; 0: never
    entropy_weight: float = 0.01  # of the policy's entropy in the loss
    value_weight: float = 1.0  # of the values' half squared errors in the loss
    max_grad_norm: float = 0.5  # a gradient of a larger norm is cut to it
    normalise_rewards: bool = True  # in units of the standard deviation of their discounted sum
    normalise_advantages: bool = True  # to mean 0 and standard deviation 1, over a rollout
    centre_observations: bool = False  # the network sees what differs from the mean picture so far
    precision: Precision = "float32"  # bfloat16: less exact, and faster on processors that multiply in it
    two_value_heads: bool = False  # the bonus gets a value of its own, which episodes' ends do not cut off
    bonus_gamma: float = 0.99  # of that value

    def __post_init__(self) -> None:
        check_settings(
            self,
            counts="num_steps num_epochs num_minibatches",
            positive="learning_rate adam_epsilon clip_range max_grad_norm",
            weights="entropy_weight value_weight max_kl",
            shares="gamma gae_lambda bonus_gamma",
        )
