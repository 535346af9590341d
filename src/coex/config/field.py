"""Settings of the bonuses that the paper is compared with, and of those in use today; sources: docs/bonuses.md."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from coex.config.bonuses import CoexConfig
from coex.config.checks import check_settings
from coex.envs import Shape
from coex.envs.views import POLICY_SHAPE
from coex.errors import UsageError


@dataclass(frozen=True)
class PredictorConfig:
    """A network that learns to give what a fixed random one gives."""

    learning_rate: float = 1e-4  # Adam's
    epochs: int = 4  # passes over a rollout
    minibatch: int = 1_024  # pictures a gradient step, at most
    keep: float = 0.0  # share of the pictures that a pass learns from; 0: 32 environments' worth, at most all
    warmup: int = 819_200  # steps of random play before, which only the pixels' mean and deviation learn from
    clip: float = 5.0  # pixels are at most so many standard deviations from their mean

    def __post_init__(self) -> None:
        check_settings(self, counts="epochs minibatch", positive="learning_rate clip", weights="warmup", shares="keep")


@dataclass(frozen=True)
class RNDConfig:
    """Random network distillation (Burda et al. 2018b)."""

    gamma: float = 0.99  # discount of the sum whose standard deviation is the bonus's unit
    predictor: PredictorConfig = field(default_factory=PredictorConfig)  # the networks' settings

    def __post_init__(self) -> None:
        check_settings(self, shares="gamma")

    def views(self, game: str) -> dict[str, Shape]:
        """Returns the picture that is looked at: its newest frame is the policy's too."""
        return {"policy": POLICY_SHAPE}


@dataclass(frozen=True)
class ICMConfig:
    """The intrinsic curiosity module (Pathak et al. 2017)."""

    learning_rate: float = 1e-4  # Adam's
    forward_share: float = 0.2  # β: of the forward model's loss; the inverse model's has the rest
    epochs: int = 1  # passes over a rollout
    minibatch: int = 512  # transitions a gradient step, at most

    def __post_init__(self) -> None:
        check_settings(self, counts="epochs minibatch", positive="learning_rate", shares="forward_share")

    def views(self, game: str) -> dict[str, Shape]:
        """Returns the small stack of grey frames that is encoded."""
        return {"grey42x4": (42, 42, 4)}


@dataclass(frozen=True)
class CuriosityConfig:
    """Large-scale curiosity (Burda et al. 2018a)."""

    features: Literal["inverse", "random"] = "inverse"  # learned by telling actions, or never
    learning_rate: float = 1e-4  # Adam's
    epochs: int = 3  # passes over a rollout
    minibatch: int = 2_048  # transitions a gradient step, at most
    warmup: int = 10_000  # steps of random play before, which fix the pixels' mean and deviation
    gamma: float = 0.99  # discount of the sum whose standard deviation is the bonus's unit

    def __post_init__(self) -> None:
        check_settings(self, counts="epochs minibatch", positive="learning_rate", weights="warmup", shares="gamma")

    def views(self, game: str) -> dict[str, Shape]:
        """Returns the policy's picture, which is encoded."""
        return {"policy": POLICY_SHAPE}


@dataclass(frozen=True)
class NovelDConfig:
    """NovelD (Zhang et al. 2021): rising novelty, once an episode."""

    alpha: float = 0.5  # share of the former picture's novelty that is taken off
    bits: int = 128  # of the hash by which pictures are told apart within an episode, a multiple of 64
    predictor: PredictorConfig = field(default_factory=PredictorConfig)  # of the novelty: the networks' settings

    def __post_init__(self) -> None:
        check_settings(self, weights="alpha")
        if self.bits < 1 or self.bits % 64:
            raise UsageError(f"bits must be a multiple of 64, not {self.bits}")

    def views(self, game: str) -> dict[str, Shape]:
        """Returns the picture whose novelty is measured, and the one that is hashed."""
        return {"policy": POLICY_SHAPE, "grey52": (52, 52)}


@dataclass(frozen=True)
class E3BConfig:
    """Elliptical episodic bonuses (Henaff et al. 2022)."""

    ridge: float = 0.1  # λ: an episode begins with the covariance λI
    features: int = 256  # that a picture is encoded to, learned by telling actions
    learning_rate: float = 1e-4  # Adam's
    epochs: int = 1  # passes over a rollout
    minibatch: int = 512  # transitions a gradient step, at most
    normalise: bool = True  # the bonus is in units of its running standard deviation

    def __post_init__(self) -> None:
        check_settings(self, counts="features epochs minibatch", positive="ridge learning_rate")

    def views(self, game: str) -> dict[str, Shape]:
        """Returns the policy's picture, which is encoded."""
        return {"policy": POLICY_SHAPE}


@dataclass(frozen=True)
class CoexE3BConfig(CoexConfig):
    """CoEX's bonus times E3B's (after Henaff et al. 2023)."""

    e3b: E3BConfig = field(default_factory=E3BConfig)  # as of the bonus e3b

    def views(self, game: str) -> dict[str, Shape]:
        """Returns the pictures that both look at."""
        return super().views(game) | self.e3b.views(game)


@dataclass(frozen=True)
class CoexNovelDConfig(CoexConfig):
    """NovelD's criterion on CoEX's counts (after Zhang et al. 2020, 2021)."""

    alpha: float = 0.5  # share of the former state's 1/√N that is taken off

    def __post_init__(self) -> None:
        super().__post_init__()
        check_settings(self, weights="alpha")


@dataclass(frozen=True)
class PhiEBConfig:
    """φ-exploration-bonus (Martin et al. 2017): pseudo-counts of binary features."""

    tiles: int = 14  # along a side of the picture; 84 must be a multiple of it
    colour_bits: int = 2  # of red, of green and of blue: a feature is that a colour is in a tile

    def __post_init__(self) -> None:
        if self.tiles < 1 or 84 % self.tiles:
            raise UsageError(f"tiles must divide 84, as 14 does, not {self.tiles}")
        if not 1 <= self.colour_bits <= 4:
            raise UsageError(f"colour_bits must be from 1 to 4, not {self.colour_bits}")

    def views(self, game: str) -> dict[str, Shape]:
        """Returns the picture that is cut into tiles."""
        return {"rgb84": (84, 84, 3)}


@dataclass(frozen=True)
class CTSConfig:
    """Pseudo-counts of context tree switching (Bellemare et al. 2016)."""

    levels: int = 8  # of grey, a power of 2, at most 8
    depth: int = 4  # of the trees: how many of the pixels to the left, above, above left and above right are consulted

    def __post_init__(self) -> None:
        if self.levels not in (2, 4, 8):
            raise UsageError(f"levels must be 2, 4 or 8, not {self.levels}")
        if not 0 <= self.depth <= 4:
            raise UsageError(f"depth must be from 0 to 4, not {self.depth}")

    def views(self, game: str) -> dict[str, Shape]:
        """Returns the small grey picture whose density is modelled."""
        return {"grey42": (42, 42)}


@dataclass(frozen=True)
class AESimHashConfig:
    """Counts of a binary autoencoder's codes (Tang et al. 2017)."""

    bits: int = 64  # of the key, a multiple of 64
    code: int = 512  # units of the autoencoder's code, a multiple of bits: a bit of the key is the majority of a group
    channels: int = 96  # of its convolutions
    noise: float = 0.3  # half the width of the noise on the code in training
    penalty: float = 10.0  # λ: of a code that is neither 0 nor 1
    learning_rate: float = 3e-4  # Adam's
    minibatch: int = 32  # pictures a gradient step, over which layers are normalised: at least 2
    pool: int = 1_000_000  # newest pictures that it learns from
    train_every: int = 300_000  # steps from training to training; the first one comes after as many
    block: int = 100  # minibatches after which training looks at its loss
    patience: int = 7  # such looks without a gain of 1e-4, and training ends
    max_blocks: int = 0  # of one training; 0: as many as it takes

    def __post_init__(self) -> None:
        check_settings(
            self,
            counts="code channels pool train_every block patience",
            positive="learning_rate",
            weights="penalty max_blocks",
            shares="noise",
        )
        if self.bits < 1 or self.bits % 64:
            raise UsageError(f"bits must be a multiple of 64, not {self.bits}")
        if self.minibatch < 2:
            raise UsageError(f"minibatch must be at least 2, not {self.minibatch}")
        if self.code % self.bits:
            raise UsageError(f"code must be a multiple of bits, {self.bits}, not {self.code}")

    def views(self, game: str) -> dict[str, Shape]:
        """Returns the picture that is encoded."""
        return {"grey52": (52, 52)}


@dataclass(frozen=True)
class PixelCNNConfig:
    """Pseudo-counts of a convolutional density (Ostrovski et al. 2017)."""

    scale: float = 0.1  # c: of the prediction gain, which also falls with the root of the steps so far
    learning_rate: float = 1e-3  # RMSProp's
    chunk: int = 1  # pictures a gradient step; more than 1 is not the paper's
    limit: float = 10.0  # of the bonus

    def __post_init__(self) -> None:
        check_settings(self, counts="chunk", positive="scale learning_rate limit")

    def views(self, game: str) -> dict[str, Shape]:
        """Returns the small grey picture whose density is modelled."""
        return {"grey42": (42, 42)}


# What the paper's many steps and large machines allow, and a small one does not.
_SMALL = PredictorConfig(epochs=1, warmup=10_000)
_SMALL_AE = AESimHashConfig(channels=32, pool=20_000, train_every=20_000, max_blocks=3)

# name: what it rewards, its settings for a game and a preset, the class, and its published weight where β₁ is 1.
FIELD: dict[str, tuple[str, Callable[[str, bool], Any], str, float]] = {
    "rnd": (
        "pictures on which a learned network fails to foretell a random one (Burda et al. 2018b)",
        lambda game, is_paper: RNDConfig() if is_paper else RNDConfig(predictor=_SMALL),
        "rnd:RNDBonus",
        0.5,
    ),
    "icm": (
        "steps whose outcome is not foretold, in features that tell the action (Pathak et al. 2017)",
        lambda game, is_paper: ICMConfig(),
        "icm:ICMBonus",
        0.01,
    ),
    "curiosity": (
        "steps whose outcome is not foretold, in features that tell the action (Burda et al. 2018a)",
        lambda game, is_paper: CuriosityConfig() if is_paper else CuriosityConfig(epochs=1),
        "curiosity:CuriosityBonus",
        0.01,
    ),
    "curiosity-random": (
        "steps whose outcome is not foretold, in random features (Burda et al. 2018a)",
        lambda game, is_paper: CuriosityConfig(features="random", epochs=3 if is_paper else 1),
        "curiosity:CuriosityBonus",
        0.01,
    ),
    "noveld": (
        "pictures more novel than the one before, once an episode (Zhang et al. 2021)",
        lambda game, is_paper: NovelDConfig() if is_paper else NovelDConfig(predictor=_SMALL),
        "noveld:NovelDBonus",
        0.05,
    ),
    "e3b": (
        "features unlike those of the episode so far (Henaff et al. 2022)",
        lambda game, is_paper: E3BConfig(),
        "e3b:E3BBonus",
        1.0,
    ),
    "phi-eb": (
        "rare colours in rare places, by pseudo-counts of features (Martin et al. 2017)",
        lambda game, is_paper: PhiEBConfig(),
        "phi_eb:PhiEBBonus",
        0.05,
    ),
    "cts": (
        "rare pictures, by pseudo-counts of a density of pixels (Bellemare et al. 2016)",
        lambda game, is_paper: CTSConfig(),
        "cts:CTSBonus",
        0.05,
    ),
    "ae-simhash": (
        "rare pictures, by the code of a learned autoencoder (Tang et al. 2017)",
        lambda game, is_paper: AESimHashConfig() if is_paper else _SMALL_AE,
        "ae_simhash:AESimHashBonus",
        0.01,
    ),
    "pixelcnn": (
        "rare pictures, by pseudo-counts of a convolutional density (Ostrovski et al. 2017)",
        lambda game, is_paper: PixelCNNConfig(),
        "pixelcnn:PixelCNNBonus",
        1.0,
    ),
    "pixelcnn-chunks": (
        "the same, learned from 16 pictures at a time, which is not the paper's",
        lambda game, is_paper: PixelCNNConfig(chunk=16),
        "pixelcnn:PixelCNNBonus",
        1.0,
    ),
}
