"""The policy and value network of the paper's appendix B."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from coex.config.learners import Precision
from coex.core.ranks import Ranks
from coex.envs.views import POLICY_SHAPE, STACK

# Gains of OpenAI baselines: a nearly uniform first policy, values of unit scale.
_HIDDEN_GAIN, _POLICY_GAIN, _VALUE_GAIN = 2**0.5, 0.01, 1.0
_WHITE, _CENTRED_WHITE = 255, 85  # the shade that is 1; what is left of a picture without the mean one is faint


class ActorCritic(nn.Module):
    """A shared trunk over four grey frames, with a head for the policy's logits and one for the values.

    The first value is that of the rewards that an episode's end cuts off; a second one may be of the bonus alone.
    A centred network sees what differs from the mean of all pictures so far, which it is told with `update_mean_frame`.
    In bfloat16 the trunk multiplies with 8 bits instead of 24; weights, heads and gradients' sums stay float32.
    """

    mean: Tensor  # (84, 84) of a centred network
    frames_seen: Tensor  # ()

    def __init__(
        self, num_actions: int, num_values: int = 1, *, centred: bool = False, precision: Precision = "float32"
    ) -> None:
        super().__init__()
        self._centred = centred
        self._precision: Precision = precision
        if centred:
            self.register_buffer("mean", torch.zeros(POLICY_SHAPE[:2]))
            self.register_buffer("frames_seen", torch.zeros((), dtype=torch.float64))
        self.trunk = nn.Sequential(
            nn.Conv2d(STACK, 32, 8, stride=4),  # (B, 32, 20, 20)
            nn.ReLU(inplace=True),
            nn.Conv2d(32, 64, 4, stride=2),  # (B, 64, 9, 9)
            nn.ReLU(inplace=True),
            nn.Conv2d(64, 64, 3, stride=1),  # (B, 64, 7, 7)
            nn.ReLU(inplace=True),
            nn.Flatten(),
            nn.Linear(64 * 7 * 7, 512),
            nn.ReLU(inplace=True),
        )
        self.policy = nn.Linear(512, num_actions)
        self.value = nn.Linear(512, num_values)
        for module in self.trunk:
            if isinstance(module, nn.Conv2d | nn.Linear):
                _initialise(module, _HIDDEN_GAIN)
        _initialise(self.policy, _POLICY_GAIN)
        _initialise(self.value, _VALUE_GAIN)
        # Frames arrive with channels last: keeping that order saves a copy and is the faster one on CPUs.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    @property
    def device(self) -> torch.device:
        return self.value.weight.device

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """(B, 84, 84, 4) uint8 -> logits (B, A), values (B, V)."""
        features = self.features(observations)
        return self.policy(features), self.value(features)

    def features(self, observations: Tensor) -> Tensor:
        """(B, 84, 84, 4) uint8 -> the last hidden layer (B, 512)."""
        first = self.trunk[0]
        assert isinstance(first, nn.Conv2d)
        pixels = observations.permute(0, 3, 1, 2).float()  # (B, 4, 84, 84)
        # Shrinking the first layer's weights is shrinking the pixels to [0, 1], without a pass over them. Taking the
        # mean picture from what the layer makes of them is as good as taking it from them.
        weight = first.weight / (_CENTRED_WHITE if self._centred else _WHITE)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._precision == "bfloat16"):
            hidden = F.conv2d(pixels, weight, first.bias, stride=4)
            if self._centred:
                hidden = hidden - F.conv2d(self.mean.expand(1, STACK, -1, -1), weight, stride=4)
            features: Tensor = self.trunk[1:](hidden)
        return features.float()

    @torch.no_grad()
    def update_mean_frame(self, observations: Tensor, ranks: Ranks = Ranks()) -> None:
        """Puts (T, N, 84, 84, 4) uint8, and as many of each other rank, into a centred network's mean picture.

        Once they are learned from, not before: the policy that learns from them is to be the one that acted.
        """
        if not self._centred:
            return
        frames = observations[..., -1].flatten(0, 1)  # (T·N, 84, 84) the newest of each stack
        total, count = ranks.total(frames.sum(dim=0)), len(frames) * ranks.world_size  # whole numbers: exact
        self.frames_seen += count
        self.mean.lerp_((total.float() / count).to(self.mean.device), count / self.frames_seen.item())


def _initialise(layer: nn.Conv2d | nn.Linear, gain: float) -> None:
    nn.init.orthogonal_(layer.weight, gain)
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)


class SamplingPolicy:
    """Acts by sampling from the network's policy."""

    def __init__(self, network: ActorCritic) -> None:
        self._network = network

    @torch.no_grad()
    def act(self, observations: Tensor, draws: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(N, 84, 84, 4) uint8 and uniform draws (N,) -> (N,) actions, their log π, first values, on the CPU.

        The action is the first whose cumulative probability exceeds the draw.
        """
        logits, values = self._network(observations)
        log_probs = logits.log_softmax(dim=-1).cpu()  # (N, A)
        cumulative = log_probs.exp().cumsum(dim=-1)
        # Rounding may leave the last sum a little below 1: the last action takes what is left.
        actions = (cumulative[:, :-1] <= draws[:, None]).sum(dim=-1)  # (N,)
        return actions, log_probs.gather(1, actions[:, None]).squeeze(1), values[:, 0].cpu()

    @torch.no_grad()
    def value(self, observations: Tensor) -> Tensor:
        values: Tensor = self._network(observations)[1][:, 0] if len(observations) else torch.zeros(0)
        return values
