"""Settings of the archive of saved games, and of the policy that it teaches."""

from dataclasses import dataclass
from typing import Literal

from coex.config.checks import check_settings
from coex.config.learners import Precision


@dataclass(frozen=True)
class ArchiveConfig:
    """How saved games are explored from, and how a policy is taught by what that finds."""

    explore_steps: int = 200_000  # of exploring; what is left of the run teaches the policy
    warmup_share: float = 0.2  # of them: uniform play from real starts, by which the location is learned first
    returns: Literal["restore", "replay"] = "restore"  # replay: an archived place is gone to by playing its actions
    burst_steps: int = 100  # played from one saved game
    keep_action: float = 0.9  # chance that a random step repeats the action of the last: corridors are long
    root_share: float = 0.02  # of bursts that begin at a real start
    num_roots: int = 5  # real starts that bursts begin at
    safe_steps: int = 10  # a saved game whose life lasted so many steps more is preferred
    agree_steps: int = 2  # steps with the same learned cell before it is believed
    replace_chance: float = 0.3  # that a learned cell's game is replaced by another of the same score
    cell_pixels: int = 8  # of the true cells
    tell_things: bool = False  # what is seen away from the player tells cells apart: where nothing else moves by itself
    fit_epochs: int = 2  # passes of the attentive dynamics model over what was played
    same_place: float = 2.5  # mean difference of grey around the player, below which two pictures show one place
    shorten_steps: int = 40_000  # spent on taking detours out of the best way, at most
    num_starts: int = 6  # real starts from which the best way is found again before the policy is taught
    demonstrate_steps: int = 100_000  # spent on finding it again, at most
    search_steps: int = 2_500  # spent on one search for the next reward, at most
    search_length: int = 600  # steps from a search's start to its reward, at most
    max_wait: int = 40  # steps that a search waits before it follows what is known
    stuck_steps: int = 300  # without a new place end a game that the policy plays
    max_game_steps: int = 4_000  # end such a game
    repairs_per_game: int = 2  # failures of such a game that are searched from
    repair_back: int = 60  # steps before a failure that a search begins at, at most
    cut_steps: int = 1_200  # spent on taking detours out of what a search found, at most
    own_steps: int = 450  # a stretch of its own that is imitated takes at most so many
    first_updates: int = 900  # gradient steps before the first game
    num_updates: int = 600  # gradient steps a round
    batch_size: int = 256  # transitions a gradient step
    learning_rate: float = 5e-4  # Adam's, falling to 0 in the last third of a round
    adam_epsilon: float = 1e-5  # beside the root
    max_grad_norm: float = 0.5  # a gradient of a larger norm is cut to it
    gamma: float = 0.99  # discount of the value: a reward t steps ahead is worth gamma ** t
    memory: int = 60_000  # transitions that are imitated; the oldest go first
    centre_observations: bool = True  # the network sees what differs from the mean picture so far
    precision: Precision = "bfloat16"  # float32: more exact, and slower on processors that multiply in bfloat16

    decay_learning_rate = False  # over the run: it falls within each round

    def __post_init__(self) -> None:
        check_settings(
            self,
            counts="explore_steps burst_steps num_roots cell_pixels batch_size num_updates memory "
            "search_steps search_length stuck_steps max_game_steps agree_steps max_wait repair_back",
            positive="learning_rate adam_epsilon max_grad_norm same_place",
            weights="safe_steps fit_epochs shorten_steps demonstrate_steps cut_steps num_starts repairs_per_game "
            "own_steps first_updates",
            shares="warmup_share keep_action root_share replace_chance gamma",
        )

    @property
    def warmup_steps(self) -> int:
        return int(self.warmup_share * self.explore_steps)
