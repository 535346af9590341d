"""Settings of the bonuses that come with this package."""

from dataclasses import dataclass, field
from typing import Literal

from coex.config.checks import check_settings
from coex.config.grid import LARGEST_PICTURE, STRIDES, Grid, even_grid, model_grid, picture_size
from coex.envs import RAM_SHAPE, Shape, ram
from coex.errors import UsageError


@dataclass(frozen=True)
class ADMConfig:
    """The attention, the terms of Eq. 5 and how they are optimised."""

    grid: int = 9  # cells in a row and in a column: fewer for a larger player, more for a smaller one
    stride: int = 16  # pixels from cell to cell, of which a cell sees 32: 8, 16, 24 or 32
    attention: Literal["sparsemax", "softmax"] = "sparsemax"  # of Eq. 3
    action_loss: bool = True  # L_action of Eq. 5
    cell_loss: bool = True  # L_cell of Eq. 5
    entropy_loss: bool = True  # the entropy of Eq. 5
    entropy_weight: float = 0.001  # λ_ent
    learning_rate: float = 1e-3  # Adam's
    minibatch: int = 128  # transitions a gradient step, at most; a rollout that is no larger is one
    epochs: int = 1  # passes over a rollout
    propensity_clip: float = 5.0  # of `propensity_weights`; 0: every transition counts alike, as in the paper
    min_policy_entropy: float = 0.2  # share of a uniform policy's: with less, no step; 0: always one, as in the paper
    changed_cells: bool = True  # L_cell only where the picture changed; False: in all cells, as in the paper
    joystick: bool = False  # Atari's 18 actions are guessed as directions and a button; False: as 18, as in the paper
    contrast: float = 300.0  # Eq. 2's φ_t − φ_{t−1} becomes asinh(contrast · that); 0: the plain one, as in the paper
    initialisation: Literal["smooth", "orthogonal"] = "smooth"  # of the encoder
    leak: float = 0.1  # of softmax's gradient into sparsemax's, which is 0 once attention rests on one cell; 0: none
    found_at: float = 1.5  # times as many right guesses as by chance: the player is found, and the policy may learn
    found_by: int = 75_000  # steps after which the policy learns in any case; 0: from the start
    pixel_mean: float = 60.0  # pixels less this
    pixel_std: float = 50.0  # divided by this

    def __post_init__(self) -> None:
        check_settings(
            self,
            counts="minibatch epochs",
            positive="learning_rate pixel_std",
            weights="entropy_weight propensity_clip min_policy_entropy contrast leak found_at found_by",
        )
        if self.stride not in STRIDES:
            raise UsageError(f"stride takes one of {', '.join(map(str, STRIDES))}, not {self.stride}")
        if self.grid < 2 or self.picture_size > LARGEST_PICTURE:
            most = (LARGEST_PICTURE - picture_size(1, self.stride)) // self.stride + 1
            raise UsageError(f"grid takes 2 to {most} with a stride of {self.stride}, not {self.grid}")
        if not (self.action_loss or self.cell_loss):
            raise UsageError("action_loss and cell_loss are both off: nothing would be learned")

    @property
    def picture_size(self) -> int:
        """Returns the side, in pixels, of the picture that the model looks at."""
        return picture_size(self.grid, self.stride)

    @property
    def view(self) -> str:
        """Returns the name of that picture."""
        return f"rgb{self.picture_size}"


# The paper's losses.
PLAIN = ADMConfig(propensity_clip=0.0, min_policy_entropy=0.0, changed_cells=False, contrast=0.0, leak=0.0)


@dataclass(frozen=True)
class ClusterConfig:
    """`projection_scale` 1 gives the embedding a Glorot-uniform layer gives of pixels in [0, 1].

    What the scale changes, and why it is 0.7: `coex rooms all --calibrate`, docs/results.md.
    """

    threshold: float = 0.7  # τ; 0: chosen from the first 2,000 observations
    embedding_size: int = 64  # numbers that a frame is projected to
    projection_scale: float = 0.7  # 1: as a Glorot-uniform layer's
    seed: int = 0  # of the projection

    def __post_init__(self) -> None:
        check_settings(self, counts="embedding_size", positive="projection_scale", weights="threshold seed")


@dataclass(frozen=True)
class CoexConfig:
    """ψ(s) and where its parts come from."""

    state: str = "xycR"  # any of x, y (location), c (room), R (score so far)
    locator: Literal["adm", "ram", "random"] = "adm"  # ram: the truth; random: the control of appendix F
    rooms: Literal["clusters", "ram"] = "clusters"  # where c comes from; ram: the truth
    adm: ADMConfig = field(default_factory=ADMConfig)  # the model's settings
    clusters: ClusterConfig = field(default_factory=ClusterConfig)  # the rooms' settings

    def __post_init__(self) -> None:
        check_settings(self)
        unknown = sorted(set(self.state) - set("xycR"))
        if unknown or not self.state or len(set(self.state)) != len(self.state):
            raise UsageError(f"state takes letters of xycR, each once (such as xyc), not {self.state!r}")

    def views(self, game: str) -> dict[str, Shape]:
        """Returns the pictures that the bonus looks at; raises UsageError where it needs a truth that a game lacks."""
        needs_truth = (self.needs_location and self.locator == "ram") or ("c" in self.state and self.rooms == "ram")
        if needs_truth and game not in ram.RAM_GAMES:
            raise UsageError(f"{game} has no RAM truth; these games have it: {', '.join(ram.RAM_GAMES)}")
        wanted: dict[str, tuple[bool, Shape]] = {
            self.adm.view: (self.needs_adm, (self.adm.picture_size, self.adm.picture_size, 3)),
            "rgb84": (self.needs_clusters, (84, 84, 3)),
            "ram": (needs_truth, RAM_SHAPE),
        }
        return {name: shape for name, (is_wanted, shape) in wanted.items() if is_wanted}

    @property
    def grid(self) -> Grid:
        """Returns the grid that x and y are cells of."""
        return even_grid(self.adm.grid) if self.locator == "ram" else model_grid(self.adm.grid, self.adm.stride)

    @property
    def needs_location(self) -> bool:
        return not set(self.state).isdisjoint("xy")

    @property
    def needs_adm(self) -> bool:
        return self.needs_location and self.locator == "adm"

    @property
    def needs_clusters(self) -> bool:
        return "c" in self.state and self.rooms == "clusters"


@dataclass(frozen=True)
class SimHashConfig:
    """The length of the binary code; the paper's is 128."""

    bits: int = 128  # of the hash, a multiple of 64

    def __post_init__(self) -> None:
        if self.bits < 1 or self.bits % 64:
            raise UsageError(f"bits must be a multiple of 64, not {self.bits}")

    def views(self, game: str) -> dict[str, Shape]:
        """Returns the picture that is hashed."""
        return {"grey52": (52, 52)}
