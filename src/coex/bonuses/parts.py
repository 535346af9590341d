"""What several bonuses are made of: running moments, the unit of a reward, what an episode met, encoders, steps."""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from coex.bonuses import EXPLODED
from coex.core.optim import guarded_step
from coex.errors import CoexError
from coex.rollouts.rollout import Transitions

_FIRST_COUNT = 1e-4  # what the starting moments, 0 and 1, weigh (Burda et al. 2018b, code)
LEAK = 0.2  # of the leaky ReLUs: TensorFlow's default, which OpenAI's networks have


@contextlib.contextmanager
def seeded(seed: np.random.SeedSequence) -> Iterator[None]:
    """Draws torch's numbers from a seed of its own within, and leaves the generator as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(seed.generate_state(1)[0]))
        yield


class Moments:
    """Running mean and variance of (M, *shape) numbers."""

    def __init__(self, shape: tuple[int, ...] = ()) -> None:
        self.mean, self.variance = torch.zeros(shape, dtype=torch.float64), torch.ones(shape, dtype=torch.float64)
        self.count = _FIRST_COUNT

    @property
    def std(self) -> Tensor:
        return self.variance.sqrt()

    def update(self, numbers: Tensor) -> None:
        """Takes in (M, *shape) numbers: two sets as one, by their variances and the distance of their means."""
        numbers = numbers.double()
        share = len(numbers) / (self.count + len(numbers))
        distance = numbers.mean(0) - self.mean
        variance = numbers.var(0, correction=0)
        self.variance = (1 - share) * self.variance + share * variance + share * (1 - share) * distance**2
        self.mean = self.mean + share * distance
        self.count += len(numbers)

    def state_dict(self) -> dict[str, Any]:
        return {"mean": self.mean, "variance": self.variance, "count": self.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.mean, self.variance, self.count = state["mean"], state["variance"], state["count"]


class RewardFilter:
    """Rewards in units of the standard deviation of their discounted sum R̃_t = γ R̃_{t−1} + r_t (Burda et al. 2018).

    The sum runs forward in time, in each environment, through the ends of episodes and rollouts, as published.
    """

    def __init__(self, gamma: float) -> None:
        self._gamma = gamma
        self._sums: Tensor | None = None  # (N,)
        self._moments = Moments()

    def scaled(self, rewards: Tensor) -> Tensor:
        """Takes in (T, N) rewards and then returns them in the unit, float32; neither centred nor clipped."""
        self._moments.update(self.sums(rewards).flatten())
        return (rewards.double() / self._moments.std).float()

    def sums(self, rewards: Tensor) -> Tensor:
        """Moves the sums on by (T, N) rewards → (T, N)."""
        last = torch.zeros(rewards.shape[1], dtype=torch.float64) if self._sums is None else self._sums
        history = []
        for reward in rewards.double():
            last = self._gamma * last + reward
            history.append(last)
        self._sums = last
        return torch.stack(history)

    def state_dict(self) -> dict[str, Any]:
        return {"sums": self._sums, "moments": self._moments.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._sums = state["sums"]
        self._moments.load_state_dict(state["moments"])


class EpisodeMemory:
    """The keys that each environment has met in its present episode."""

    def __init__(self) -> None:
        self._met: list[set[bytes]] = []

    def first_visits(
        self, reached: Sequence[bytes], rollout: Transitions, shown: Sequence[bytes] | None = None
    ) -> NDArray[np.bool_]:
        """(T, N) whether a step led to a key that its episode had not met, of the keys that the T·N steps led to.

        Of `shown`, the (T + 1)·N keys of `Transitions.views`, those that episodes begin with count as met.
        """
        steps, envs = rollout.actions.shape
        ends = set(map(tuple, rollout.final_index.tolist()))

        def begin(t: int, n: int) -> set[bytes]:
            return set() if shown is None else {shown[t * envs + n]}

        if not self._met:
            self._met = [begin(0, n) for n in range(envs)]
        first = np.zeros((steps, envs), np.bool_)
        for t in range(steps):
            for n, met in enumerate(self._met):
                key = reached[t * envs + n]
                first[t, n] = key not in met
                met.add(key)
                if (t, n) in ends:
                    self._met[n] = begin(t + 1, n)
        return first

    def forget(self) -> None:
        """Forgets all keys: the environments have begun new episodes."""
        self._met = []

    def state_dict(self) -> dict[str, Any]:
        size = max((len(key) for met in self._met for key in met), default=1)  # all are as long
        keys = [np.frombuffer(b"".join(sorted(met)), np.uint8).reshape(-1, size) for met in self._met]
        return {"keys": keys}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._met = [{key.tobytes() for key in keys} for keys in state["keys"]]


class Fit:
    """A network and its optimiser, Adam or another: guarded steps without a bound on the norm, and one state."""

    def __init__(
        self, network: nn.Module, learning_rate: float, make: Callable[..., torch.optim.Optimizer] | None = None
    ) -> None:
        self.network = network
        self._parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
        make = make or partial(torch.optim.Adam, fused=True)
        self._optimizer = make(self._parameters, lr=learning_rate)

    def step(self, loss: Tensor) -> float:
        """Takes one step and returns the loss; raises CoexError for one that is no number, or that has exploded.

        A bonus that is in units of its own deviation does not show it.
        """
        if (size := loss.item()) > EXPLODED:
            raise CoexError(f"a model has diverged: its loss is {size:g}")
        guarded_step(self._optimizer, loss, self._parameters, math.inf)
        return size

    def state_dict(self) -> dict[str, Any]:
        return {"network": self.network.state_dict(), "optimizer": self._optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])


def conv_layers(channels: int) -> list[nn.Module]:
    """OpenAI's convolutions over (B, channels, 84, 84) → (B, 3136)."""
    layers: list[nn.Module] = []
    for inputs, outputs, size, stride in ((channels, 32, 8, 4), (32, 64, 4, 2), (64, 64, 3, 1)):
        layers += [nn.Conv2d(inputs, outputs, size, stride), nn.LeakyReLU(LEAK)]
    return [*layers, nn.Flatten()]


def orthogonal(weight: Tensor) -> None:
    """Draws an orthogonal matrix, of gain √2."""
    nn.init.orthogonal_(weight, math.sqrt(2))


def initialise(network: nn.Module, draw: Callable[[Tensor], Any] = orthogonal) -> None:
    """Draws the weights of a network's layers; biases are 0."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            draw(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


class PairBlock(NamedTuple):
    """Some steps of a rollout: what one gradient step learns from."""

    frames: Tensor  # (t + 1, N, …) uint8
    actions: Tensor  # (t, N)
    final_index: Tensor  # (k, 2) of the steps that ended an episode
    final_frames: Tensor  # (k, …)


def blocks(rollout: Transitions, view: str, minibatch: int) -> Iterator[PairBlock]:
    """Yields a rollout's steps in order, as many whole rows at a time as `minibatch` transitions hold."""
    steps, envs = rollout.actions.shape
    height = max(1, minibatch // envs)
    for top in range(0, steps, height):
        bottom = min(top + height, steps)
        inside = (rollout.final_index[:, 0] >= top) & (rollout.final_index[:, 0] < bottom)
        index = rollout.final_index[inside] - torch.tensor([top, 0])
        frames, finals = rollout.views[view][top : bottom + 1], rollout.final_views[view][inside]
        yield PairBlock(frames, rollout.actions[top:bottom], index, finals)


def encode_pairs(encode: Callable[[Tensor], Tensor], block: PairBlock) -> tuple[Tensor, Tensor]:
    """Encodes each picture once → features (t, N, d) of those that the steps left, and of those that they reached.

    Where a step ended an episode it reached the true last picture, not the first of the next.
    """
    frames, finals = block.frames.flatten(0, 1), block.final_frames
    features = encode(torch.cat([frames, finals]) if len(finals) else frames)
    rows = features[: len(frames)].unflatten(0, block.frames.shape[:2])  # (t + 1, N, d)
    reached = rows[1:]
    if len(finals):
        reached = reached.index_put(tuple(block.final_index.unbind(1)), features[len(frames) :])
    return rows[:-1], reached
