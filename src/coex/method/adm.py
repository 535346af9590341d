"""The attentive dynamics model: which cell of the screen does the agent control? (section 3.1)

In every cell of a 9×9 grid an inverse dynamics model guesses the action taken between two frames, and it
attends to the cells that guess well. Nothing is padded: cell (i, j) sees the 32×32 pixels at (16·i, 16·j)
and no others. Shapes: … is any leading dimensions, such as (B,) or (T, N); the 81 cells are row-major.
The numbers are those of the default grid and stride; with others there are grid² cells of a larger or smaller picture.
"""

from math import log, sqrt
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from coex.config.bonuses import ADMConfig
from coex.method.patches import distinct_patches
from coex.method.sparsemax import sparsemax

NUM_FEATURES = 16  # K in the paper
_NARROWED = 8  # pixels between the places of the third convolution
_ROUNDING = 1e-5  # the features of equal pixels differ by less; those of a dot that moves a pixel, by about 0.01
_SMOOTH_GAIN = 2.4  # leaves features of the order of 1
# Atari's actions, where a game has all of them, in their order; the button is F.
_JOYSTICK = "- F U R L D UR UL DR DL UF RF LF DF URF ULF DRF DLF"


class AttentiveDynamicsModel(nn.Module):
    """Eqs. 2 and 3. One MLP, shared by all cells, gives action logits; another gives attention.

    With `joystick`, the logit of one of Atari's 18 actions is the sum of those of its directions and of the button: six
    actions steer left, and each of them alone is six times as rare as to steer left.
    """

    def __init__(self, num_actions: int, config: ADMConfig = ADMConfig()) -> None:
        super().__init__()
        self.num_actions = num_actions
        self.config = config
        self._controls: Tensor
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 8, 4, stride=2),  # 160 → 79
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(8, 8, 3, stride=2),  # → 39
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(8, 16, 3, stride=2),  # → 19
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(16, NUM_FEATURES, 3, stride=config.stride // _NARROWED),  # → 9
            nn.LeakyReLU(0.2, inplace=True),
        )
        controls = [[float(control in action) for control in "URLDF"] for action in _JOYSTICK.split(" ")]
        self._has_joystick = config.joystick and num_actions == len(controls)
        self.register_buffer("_controls", torch.tensor(controls), persistent=False)  # (18, 5)
        self.cell_head = _mlp(2 * NUM_FEATURES, 256, 128, len(controls[0]) if self._has_joystick else num_actions)
        self.attention_head = _mlp(NUM_FEATURES, 64, 64, 1)
        _initialise(self)
        self.encoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def encode(self, frames: Tensor) -> Tensor:
        """φ: (…, 160, 160, 3) uint8 → (…, 81, 16)."""
        flat = frames.flatten(0, -4)
        patches = distinct_patches(flat)
        if patches is None:
            hidden = self._narrow(flat)  # (B, 16, 19, 19)
        else:
            # In a strip of patches, the third convolution sees one of them at every other place.
            rows = self._narrow(patches.strips)[:, :, 0, ::2].transpose(1, 2).flatten(0, 1)  # (U, 16)
            hidden = F.embedding(patches.shown, rows).permute(0, 3, 1, 2)
        hidden = self.encoder[6:](hidden)  # (B, 16, 9, 9)
        return hidden.permute(0, 2, 3, 1).reshape(*frames.shape[:-3], self.config.grid**2, NUM_FEATURES)

    def _narrow(self, frames: Tensor) -> Tensor:
        """The first three convolutions: (B, H, W, 3) uint8 → (B, 16, H / 8 − 1, W / 8 − 1)."""
        first, *rest = list(self.encoder)[:6]
        assert isinstance(first, nn.Conv2d) and first.bias is not None
        # Standardising the pixels inside the first convolution is exact, as nothing is padded, and spares two
        # passes over the frames.
        weight = first.weight / self.config.pixel_std
        bias = first.bias - self.config.pixel_mean * weight.sum((1, 2, 3))
        hidden = F.conv2d(frames.permute(0, 3, 1, 2).to(weight.dtype), weight, bias, stride=2)  # stored channels last
        for layer in rest:
            hidden = layer(hidden)
        return hidden

    def attend(self, features: Tensor) -> Tensor:
        """α of Eq. 3: (…, 81, 16) → (…, 81), a distribution over the cells."""
        scores = _on_distinct_rows(self.attention_head, features).squeeze(-1)
        if self.config.attention == "softmax":
            return scores.softmax(-1)
        attention = sparsemax(scores)
        if self.config.leak and attention.requires_grad:
            soft = scores.softmax(-1)
            attention = attention + self.config.leak * (soft - soft.detach())  # adds nothing but its gradient
        return attention

    def cell_logits(self, previous: Tensor, current: Tensor) -> Tensor:
        """e of Eq. 2: the features of consecutive frames, (…, 81, 16) each → (…, 81, |A|)."""
        difference = current - previous
        if self.config.contrast:
            # Steep for the small differences that a small sprite makes, flat for the large ones of large sprites.
            difference = torch.asinh(self.config.contrast * difference)
        logits = _on_distinct_rows(self.cell_head, torch.cat([difference, current], -1))
        return logits @ self._controls.T if self._has_joystick else logits


def _mlp(inputs: int, hidden_1: int, hidden_2: int, outputs: int) -> nn.Sequential:
    layers = [nn.Linear(inputs, hidden_1), nn.ReLU(inplace=True), nn.Linear(hidden_1, hidden_2)]
    return nn.Sequential(*layers, nn.ReLU(inplace=True), nn.Linear(hidden_2, outputs))


def _initialise(model: AttentiveDynamicsModel) -> None:
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            # Small at the outputs, so that attention and guesses start near uniform.
            is_last = module in (model.cell_head[-1], model.attention_head[-1])
            nn.init.orthogonal_(module.weight, 0.1 if is_last else sqrt(2))
            assert module.bias is not None
            nn.init.zeros_(module.bias)
        if isinstance(module, nn.Conv2d) and model.config.initialisation == "smooth":
            _initialise_smoothly(module.weight)


@torch.no_grad()
def _initialise_smoothly(weight: Tensor) -> None:
    """Each kernel a mixture of a blur, a slope from left to right and one from top to bottom.

    Through layers of these a feature changes more steadily with the place of what it sees, so that a step of one pixel
    to the right shows more alike in neighbouring places: the cells have less to learn. With independent weights, the
    changes of two steps in a row mostly point in opposite directions.
    """
    outputs, inputs, size, _ = weight.shape
    # At a stride of 2, each of these gives even and odd pixels the same weight in sum.
    window = torch.tensor([1.0, 3.0, 3.0, 1.0] if size == 4 else [1.0, 2.0, 1.0])
    slope = torch.tensor([-1.0, -1.0, 1.0, 1.0] if size == 4 else [-1.0, 0.0, 1.0])
    kernels = torch.stack([torch.outer(*pair) for pair in ((window, window), (window, slope), (slope, window))])
    kernels /= kernels.abs().sum((1, 2), keepdim=True)  # (3, size, size)
    mixture = nn.init.orthogonal_(torch.empty(outputs, inputs * 3), _SMOOTH_GAIN).view(outputs, inputs, 3)
    weight.copy_(torch.einsum("oik,khw->oihw", mixture, kernels))


def _on_distinct_rows(head: nn.Sequential, rows: Tensor) -> Tensor:
    """`head(rows)`, (…, d) → (…, o), computed once for rows that are equal.

    Most of a screen is the same at the next step and in the next environment: in random play of the paper's
    games 14 to 41 % of the rows are distinct. Equal features come from equal pixels, so whichever of the equal
    rows passes the gradient of them all to the encoder, its parameters receive the same.
    """
    with torch.no_grad():
        # Rows have the same projection onto an arbitrary direction only if they are equal, up to rounding.
        direction = torch.arange(1, rows.shape[-1] + 1, dtype=torch.float64, device=rows.device).sin()
        projections = rows.flatten(0, -2).double() @ direction  # (M,)
        distinct, index = torch.unique(projections, return_inverse=True)  # (D,), (M,)
        # The last of the equal rows, whatever the number of threads: another one would be another rounding.
        rows_in_order = torch.arange(len(index), device=rows.device)
        representative = torch.zeros_like(distinct, dtype=torch.long).scatter_reduce_(0, index, rows_in_order, "amax")
    outputs: Tensor = head(rows.flatten(0, -2)[representative])  # (D, o)
    # As `outputs[index]`, but for the gradient: that would add up in an order that changes from run to run.
    return F.embedding(index, outputs).unflatten(0, rows.shape[:-1])


def action_logits(attention: Tensor, cell_logits: Tensor) -> Tensor:
    """Eq. 4 before the softmax: (…, 81) and (…, 81, |A|) → (…, |A|)."""
    return (attention.unsqueeze(-2) @ cell_logits).squeeze(-2)


class ADMLosses(NamedTuple):
    """`total` is to be minimised; the others are its terms for each transition, for the record."""

    total: Tensor  # ()
    action: Tensor  # (…) L_action
    cell: Tensor  # (…) Σ_ij L_cell
    entropy: Tensor  # (…) −H(α)


def adm_losses(
    cell_logits: Tensor,
    attention: Tensor,
    actions: Tensor,
    config: ADMConfig,
    weights: Tensor | None = None,
    mask: Tensor | None = None,
    cells: Tensor | None = None,
) -> ADMLosses:
    """Eq. 5 for (…, 81, |A|) logits, (…, 81) attention and (…) actions, averaged with (…) weights.

    Transitions where `mask` (…) is False carry no loss, and cells where `cells` (…, 81) is False no L_cell.
    """
    action = _cross_entropy(action_logits(attention, cell_logits), actions)
    cell = _cross_entropy(cell_logits, actions.unsqueeze(-1).expand_as(attention))
    cell = (cell if cells is None else cell * cells).sum(-1)
    # 0·log 0 = 0, with a finite gradient there.
    entropy = (attention * attention.clamp(min=torch.finfo(attention.dtype).tiny).log()).sum(-1)

    # The cells' own losses teach them while attention is wrong; entropy keeps it from collapsing early.
    losses = config.action_loss * action + config.cell_loss * cell
    losses = losses + config.entropy_loss * config.entropy_weight * entropy  # (…)
    weights = torch.ones_like(losses) if weights is None else weights
    weights = weights if mask is None else weights * mask
    total = (weights * losses).sum() / weights.sum().clamp(min=torch.finfo(losses.dtype).tiny)
    return ADMLosses(total, action.detach(), cell.detach(), entropy.detach())


def _cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return -logits.log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)


def propensity_weights(log_probs: Tensor, num_actions: int, clip: float) -> Tensor:
    """(…) log π(a|s) of the actions taken → (…) weights (1/|A|)/π(a|s), at most `clip`, scaled to mean 1.

    With them all actions are about as frequent in every state, so that the model cannot guess the action from
    where things stand, only from what moved. Not in the paper; a clip of 0 turns it off.
    """
    if clip == 0:
        return torch.ones_like(log_probs)
    weights = (-log_probs).exp().div(num_actions).clamp(max=clip)
    return weights / weights.mean()


def normalised_entropy(log_probs: Tensor, num_actions: int) -> float:
    """From (…) log π(a|s) of the actions taken: about 1 for a uniform policy, 0 for one that is sure of them.

    It estimates the policy's entropy, of which log |A| is the most. Actions without doubt are guessed without looking:
    all that a model could learn from them is not to look.
    """
    return -log_probs.mean().item() / log(max(num_actions, 2))


def changed_cells(previous: Tensor, current: Tensor) -> Tensor:
    """Where the picture changed, by the features of consecutive frames: (…, 81, 16) each → (…, 81) bool.

    Nothing else can show the action: what is learned in the other cells, most of the screen, is only which actions
    happened to be taken.
    """
    return (current - previous).detach().abs().amax(-1) > _ROUNDING


class RolloutPass(NamedTuple):
    """What one forward pass over a rollout gives to the bonus (attention) and to the gradient step (all)."""

    previous: Tensor  # (T, N, 81, 16) features of the frame each transition left
    current: Tensor  # (T, N, 81, 16) of the frame it reached
    attention: Tensor  # (T, N, 81) on the frame it reached, with its gradient
    restart: Tensor  # (K, 81) on the first frame after each of the K episodes that ended


def forward_rollout(
    model: AttentiveDynamicsModel, frames: Tensor, final_index: Tensor, final_frames: Tensor
) -> RolloutPass:
    """Encodes each of the (T + 1, N, 160, 160, 3) frames once, though most belong to two transitions.

    Transition (t, n) reaches frames[t + 1, n]. Where it ended an episode, final_index (K, 2) names it and it
    reaches the true last frame, in final_frames (K, 160, 160, 3); frames[t + 1, n] opens the next episode.
    """
    features = model.encode(frames)  # (T + 1, N, 81, 16)
    current = features[1:]
    restart = features.new_zeros(0, features.shape[-2])
    if len(final_index):
        t, n = final_index.unbind(1)
        with torch.no_grad():
            restart = model.attend(current[t, n])  # (K, 81)
        current = current.index_put((t, n), model.encode(final_frames))
    return RolloutPass(features[:-1], current, model.attend(current), restart)
