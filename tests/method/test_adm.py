"""The attentive dynamics model against a plain NumPy reading of the paper's Eqs. 2 to 5."""

import math
from collections.abc import Callable

import ale_py
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from coex.config.bonuses import ADMConfig
from coex.method import adm
from coex.method.adm import (
    AttentiveDynamicsModel,
    action_logits,
    adm_losses,
    changed_cells,
    forward_rollout,
    normalised_entropy,
    propensity_weights,
)
from coex.method.locator import locate

NO_FINALS = torch.zeros(0, 2, dtype=torch.long), torch.zeros(0, 160, 160, 3, dtype=torch.uint8)


def random_frames(*shape: int, seed: int = 0) -> Tensor:
    """Frames made of few random tiles, so that some cells are equal, as on a real screen."""
    generator = torch.Generator().manual_seed(seed)
    tiles = torch.randint(0, 256, (3, 16, 16, 3), dtype=torch.uint8, generator=generator)
    layout = torch.randint(0, 3, (*shape, 10, 10), generator=generator)
    return tiles[layout].transpose(-4, -3).reshape(*shape, 160, 160, 3)


def make_model(num_actions: int = 4, config: ADMConfig = ADMConfig()) -> AttentiveDynamicsModel:
    torch.manual_seed(0)
    model = AttentiveDynamicsModel(num_actions, config)
    for head in (model.cell_head, model.attention_head):
        nn.init.normal_(head[-1].weight)  # far from uniform, so that mistakes show
    return model


def numpy_mlp(head: nn.Sequential, x: NDArray[np.float64]) -> NDArray[np.float64]:
    for layer in head:
        if isinstance(layer, nn.Linear):
            x = layer.weight.detach().double().numpy() @ x + layer.bias.detach().double().numpy()
        else:
            x = np.maximum(x, 0)
    return x


def numpy_sparsemax(z: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = z.min() - 1, z.max()
    for _ in range(200):  # the threshold by bisection
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(z - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(z - low, 0)


def numpy_nll(logits: NDArray[np.float64], action: int) -> float:
    return float(np.log(np.exp(logits - logits[action]).sum()))


class TestModel:
    def test_shapes_follow_the_leading_dimensions(self) -> None:
        model = make_model(num_actions=6)
        features = model.encode(random_frames(2, 3))
        assert features.shape == (2, 3, 81, 16)
        assert model.attend(features).shape == (2, 3, 81)
        assert model.cell_logits(features, features).shape == (2, 3, 81, 6)

    def test_encoder_sees_standardised_pixels(self) -> None:
        model, frames = make_model(), random_frames(2)
        pixels = (frames.permute(0, 3, 1, 2).float() - 60) / 50
        expected = model.encoder(pixels).permute(0, 2, 3, 1).flatten(1, 2)
        torch.testing.assert_close(model.encode(frames), expected, atol=1e-4, rtol=1e-4)

    def test_a_cell_sees_its_own_32_pixels_only(self) -> None:
        model, frames = make_model(), random_frames(1)
        changed = frames.clone()
        changed[0, 16 * 3 + 31, 16 * 5] += 100  # the bottom left pixel of what cell (3, 5) sees
        differs = (model.encode(frames) != model.encode(changed)).any(-1).view(9, 9)
        assert differs.nonzero().tolist() == [[3, 4], [3, 5], [4, 4], [4, 5]]

    def test_attention_is_a_distribution_of_the_chosen_kind(self) -> None:
        features = make_model().encode(random_frames(3))
        sparse = make_model(config=ADMConfig(attention="sparsemax")).attend(features)
        soft = make_model(config=ADMConfig(attention="softmax")).attend(features)
        torch.testing.assert_close(sparse.sum(-1), torch.ones(3))
        torch.testing.assert_close(soft.sum(-1), torch.ones(3))
        assert (sparse == 0).any()
        assert (soft > 0).all()

    @pytest.mark.parametrize("leak", [0.0, 0.1])
    def test_attention_that_rests_on_one_cell_can_still_move(
        self, leak: float, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scores = torch.zeros(1, 81).index_fill(1, torch.tensor([5]), 2.0).requires_grad_()
        monkeypatch.setattr(adm, "_on_distinct_rows", lambda head, rows: scores.unsqueeze(-1))
        attention = make_model(config=ADMConfig(leak=leak)).attend(torch.zeros(1, 81, 16))
        assert torch.equal(attention, torch.zeros(1, 81).index_fill(1, torch.tensor([5]), 1.0))
        towards = torch.zeros(1, 81).index_fill(1, torch.tensor([40]), 1.0)  # more attention there would be better
        (attention * towards).sum().backward()
        probabilities = scores.detach().softmax(-1)
        expected = leak * probabilities * (towards - probabilities[0, 40])
        torch.testing.assert_close(scores.grad, expected)

    def test_gradients_are_those_of_heads_run_on_every_cell(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def gradients() -> list[Tensor]:
            model = make_model().double()  # in single precision the sums' order would show
            frames = random_frames(3, 2).index_fill(0, torch.tensor([2]), 7)
            frames = torch.cat([frames, frames[-1:]])  # and many cells that do not change
            rollout = forward_rollout(model, frames, *NO_FINALS)
            logits = model.cell_logits(rollout.previous, rollout.current)
            adm_losses(logits, rollout.attention, torch.tensor([[0, 1], [2, 3], [1, 1]]), ADMConfig()).total.backward()
            return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]

        shared = gradients()
        monkeypatch.setattr(adm, "_on_distinct_rows", lambda head, rows: head(rows))
        for actual, expected in zip(shared, gradients(), strict=True):
            torch.testing.assert_close(actual, expected, atol=1e-9, rtol=1e-9)

    def test_gradients_repeat_themselves_to_the_last_bit(self) -> None:
        model, frames = make_model(18), random_frames(6, 16)  # A2C's size: torch works on it with several threads

        def gradients() -> list[Tensor]:
            rollout = forward_rollout(model, frames, *NO_FINALS)
            logits = model.cell_logits(rollout.previous, rollout.current)
            losses = adm_losses(logits, rollout.attention, torch.arange(80).view(5, 16) % 18, ADMConfig())
            return list(torch.autograd.grad(losses.total, list(model.parameters())))

        first = gradients()
        for _ in range(20):
            assert all(torch.equal(one, other) for one, other in zip(first, gradients(), strict=True))


class TestLosses:
    @pytest.mark.parametrize("contrast", [0.0, 300.0])
    def test_equations_2_to_5_in_numpy(self, contrast: float) -> None:
        config = ADMConfig(entropy_weight=0.5, contrast=contrast)
        model = make_model(4, config)
        previous, current = model.encode(random_frames(2, 3)).detach()
        actions = torch.tensor([0, 3, 1])
        attention = model.attend(current)
        losses = adm_losses(model.cell_logits(previous, current), attention, actions, config)

        totals = []
        for b in range(3):
            before, after = previous[b].double().numpy(), current[b].double().numpy()
            difference = np.arcsinh(contrast * (after - before)) if contrast else after - before
            inputs = np.concatenate([difference, after], axis=-1)  # (81, 32)
            e = np.stack([numpy_mlp(model.cell_head, row) for row in inputs])
            alpha = numpy_sparsemax(np.concatenate([numpy_mlp(model.attention_head, after[c]) for c in range(81)]))
            action = numpy_nll(alpha @ e, int(actions[b]))
            cell = sum(numpy_nll(e[c], int(actions[b])) for c in range(81))
            negative_entropy = sum(p * np.log(p) for p in alpha if p > 0)
            totals.append(action + cell + 0.5 * negative_entropy)
            np.testing.assert_allclose(attention[b].detach(), alpha, atol=1e-4)
            np.testing.assert_allclose(losses.action[b], action, rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(losses.cell[b], cell, rtol=1e-4)
            np.testing.assert_allclose(losses.entropy[b], negative_entropy, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(losses.total.item(), np.mean(totals), rtol=1e-4)

    def test_knowing_nothing(self) -> None:
        losses = adm_losses(torch.zeros(2, 81, 18), torch.full((2, 81), 1 / 81), torch.tensor([4, 7]), ADMConfig())
        torch.testing.assert_close(losses.action, torch.full((2,), math.log(18)))
        torch.testing.assert_close(losses.cell, torch.full((2,), 81 * math.log(18)))
        torch.testing.assert_close(losses.entropy, torch.full((2,), -math.log(81)))

    def test_attention_on_one_cell_has_no_entropy_and_a_finite_gradient(self) -> None:
        attention = torch.zeros(1, 81).index_fill(1, torch.tensor([5]), 1.0).requires_grad_()
        losses = adm_losses(torch.randn(1, 81, 4), attention, torch.tensor([2]), ADMConfig())
        assert losses.entropy.item() == 0
        losses.total.backward()
        assert attention.grad is not None
        assert attention.grad.isfinite().all()

    def test_action_logits_are_the_attended_cells(self) -> None:
        attention = torch.zeros(1, 81)
        attention[0, 3], attention[0, 80] = 0.25, 0.75
        logits = torch.randn(1, 81, 4)
        torch.testing.assert_close(action_logits(attention, logits), 0.25 * logits[:, 3] + 0.75 * logits[:, 80])

    @pytest.mark.parametrize(
        ("config", "terms"),
        [
            (ADMConfig(cell_loss=False, entropy_loss=False), (1, 0, 0)),
            (ADMConfig(entropy_loss=False), (1, 1, 0)),
            (ADMConfig(cell_loss=False), (1, 0, 0.001)),
            (ADMConfig(), (1, 1, 0.001)),
        ],
    )
    def test_ablations_leave_terms_out(self, config: ADMConfig, terms: tuple[float, ...]) -> None:
        losses = adm_losses(torch.randn(5, 81, 4), torch.rand(5, 81), torch.randint(4, (5,)), config)
        expected = terms[0] * losses.action + terms[1] * losses.cell + terms[2] * losses.entropy
        torch.testing.assert_close(losses.total, expected.mean())

    def test_masked_transitions_do_not_count(self) -> None:
        logits, attention, actions = torch.randn(4, 81, 3), torch.rand(4, 81), torch.tensor([0, 1, 2, 0])
        mask = torch.tensor([True, False, True, True])
        masked = adm_losses(logits, attention, actions, ADMConfig(), mask=mask).total
        left_out = adm_losses(logits[mask], attention[mask], actions[mask], ADMConfig()).total
        torch.testing.assert_close(masked, left_out)
        assert adm_losses(logits, attention, actions, ADMConfig(), mask=torch.zeros(4).bool()).total == 0

    def test_only_the_named_cells_have_a_loss_of_their_own(self) -> None:
        logits, attention, actions = torch.randn(2, 81, 3), torch.rand(2, 81), torch.tensor([0, 1])
        cells = torch.zeros(2, 81, dtype=torch.bool)
        cells[0, 7] = cells[0, 80] = cells[1, 3] = True
        losses = adm_losses(logits, attention, actions, ADMConfig(), cells=cells)
        nll = [numpy_nll(logits[b, c].double().numpy(), b) for b, c in ((0, 7), (0, 80), (1, 3))]
        np.testing.assert_allclose(losses.cell, [nll[0] + nll[1], nll[2]], rtol=1e-5)
        torch.testing.assert_close(losses.action, adm_losses(logits, attention, actions, ADMConfig()).action)

    def test_a_weight_of_two_counts_twice(self) -> None:
        logits, attention, actions = torch.randn(2, 81, 3), torch.rand(2, 81), torch.tensor([0, 1])
        weighted = adm_losses(logits, attention, actions, ADMConfig(), weights=torch.tensor([1.0, 2.0])).total
        twice = torch.tensor([0, 1, 1])
        repeated = adm_losses(logits[twice], attention[twice], actions[twice], ADMConfig()).total
        torch.testing.assert_close(weighted, repeated)


def test_changed_cells_are_those_with_a_changed_pixel() -> None:
    frames = random_frames(2, 3)
    frames[1] = frames[0]
    frames[1, 0, 40, 100] = 255 - frames[0, 0, 40, 100]  # one pixel
    frames[1, 1, 100:116, 20:30] = random_frames(1, seed=1)[0, :16, :10]
    with torch.no_grad():
        changed = changed_cells(*make_model().encode(frames)).view(3, 9, 9)
    differs = (frames[0] != frames[1]).any(-1)  # (3, 160, 160)
    for i, j in np.ndindex(9, 9):
        pixels = differs[:, 16 * i : 16 * i + 32, 16 * j : 16 * j + 32].flatten(1).any(1)
        seen = differs[:, 16 * i : 16 * i + 31, 16 * j : 16 * j + 31].flatten(1).any(1)  # the convolutions stop there
        assert (changed[:, i, j] <= pixels).all()
        assert (changed[:, i, j] >= seen).all()
    assert not changed[2].any()
    assert changed[0].sum() == 4  # receptive fields overlap


def test_in_a_smooth_encoder_a_step_shows_more_alike_in_the_next_place() -> None:
    frames = torch.zeros(25, 160, 160, 3, dtype=torch.uint8)
    for k, frame in enumerate(frames):
        frame[90:92, 66 + k] = 200  # a dot that goes to the right

    def similarity(initialisation: str) -> float:
        cosines = []
        for seed in range(10):
            torch.manual_seed(seed)
            model = AttentiveDynamicsModel(4, ADMConfig(initialisation=initialisation))  # type: ignore[arg-type]
            with torch.no_grad():
                features = model.encode(frames)[:, 4 * 9 + 4]  # (25, 16)
            steps = nn.functional.normalize(features.diff(dim=0), dim=-1)
            cosines.append((steps[1:] * steps[:-1]).sum(-1).mean().item())
        return float(np.mean(cosines))

    assert similarity("smooth") > similarity("orthogonal") + 0.3


class TestPropensityWeights:
    def test_known_answer(self) -> None:
        # (1/4)/π = 0.5, 1 and 25, of which the last is cut to 5.5: their mean is 7/3.
        weights = propensity_weights(torch.tensor([0.5, 0.25, 0.01]).log(), num_actions=4, clip=5.5)
        torch.testing.assert_close(weights, torch.tensor([0.5, 1.0, 5.5]) * 3 / 7)

    def test_uniform_policy_and_zero_clip_change_nothing(self) -> None:
        assert propensity_weights(torch.full((5, 2), -math.log(18)), 18, 5.0).allclose(torch.ones(5, 2))
        assert propensity_weights(torch.randn(5, 2), 18, 0.0).equal(torch.ones(5, 2))


class TestDoubt:
    def test_known_answers(self) -> None:
        assert normalised_entropy(torch.full((5, 2), -math.log(18)), 18) == pytest.approx(1.0)
        assert normalised_entropy(torch.zeros(5, 2), 18) == 0.0
        assert normalised_entropy(torch.tensor([0.5, 0.25]).log(), 4) == pytest.approx(0.75)  # 1 and 2 bits of 2

    def test_it_estimates_the_entropy_of_the_policy(self) -> None:
        policy = torch.tensor([0.9, 0.08, 0.02])
        actions = torch.multinomial(policy, 100_000, replacement=True, generator=torch.Generator().manual_seed(0))
        entropy = torch.distributions.Categorical(policy).entropy().item()
        assert normalised_entropy(policy.log()[actions], 3) == pytest.approx(entropy / math.log(3), rel=0.02)

    def test_a_single_action_leaves_none(self) -> None:
        assert normalised_entropy(torch.zeros(5, 2), 1) == 0.0


class TestRollout:
    def test_pairs_are_consecutive_frames_or_end_in_the_final_frame(self) -> None:
        model, frames, final = make_model(), random_frames(4, 2), random_frames(1, seed=9)
        rollout = forward_rollout(model, frames, torch.tensor([[1, 0]]), final)
        reached = frames[1:].clone()
        reached[1, 0] = final[0]
        close = {"atol": 1e-4, "rtol": 1e-4}
        torch.testing.assert_close(rollout.previous, model.encode(frames[:-1]), **close)
        torch.testing.assert_close(rollout.current, model.encode(reached), **close)
        torch.testing.assert_close(rollout.attention, model.attend(model.encode(reached)), **close)
        torch.testing.assert_close(rollout.restart, model.attend(model.encode(frames[2, :1])), **close)
        assert rollout.attention.requires_grad
        assert not rollout.restart.requires_grad

    def test_each_frame_is_encoded_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        model, encoded = make_model(), 0
        encode: Callable[[Tensor], Tensor] = model.encode

        def count(frames: Tensor) -> Tensor:
            nonlocal encoded
            encoded += frames.flatten(0, -4).shape[0]
            return encode(frames)

        monkeypatch.setattr(model, "encode", count)
        forward_rollout(model, random_frames(4, 2), torch.tensor([[1, 0]]), random_frames(1))
        assert encoded == 4 * 2 + 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"attention": "hardmax"}, "attention .*sparsemax.*'hardmax'"),
        ({"action_loss": False, "cell_loss": False}, "action_loss .*cell_loss"),
        ({"entropy_weight": -1.0}, "entropy_weight .* -1"),
        ({"learning_rate": 0.0}, "learning_rate .* 0"),
        ({"learning_rate": math.nan}, "learning_rate .* nan"),
        ({"propensity_clip": -0.1}, "propensity_clip .* -0.1"),
        ({"min_policy_entropy": -0.1}, "min_policy_entropy .* -0.1"),
        ({"pixel_std": 0.0}, "pixel_std .* 0"),
        ({"contrast": -1.0}, "contrast .* -1"),
        ({"leak": -1.0}, "leak .* -1"),
        ({"initialisation": "zeros"}, "initialisation .*smooth.*'zeros'"),
    ],
)
def test_bad_settings_are_refused_in_one_line(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        ADMConfig(**settings)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


class SquareWorld:
    """Two squares on a patterned floor: the action moves the first, chance moves the second."""

    MOVES = np.array([(0, 0), (0, -8), (0, 8), (-8, 0), (8, 0)])

    def __init__(self, num_envs: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.floor = np.kron(self.rng.integers(0, 90, (20, 20, 3)), np.ones((8, 8, 1))).astype(np.uint8)
        self.corners = self.rng.integers(0, 144, (2, num_envs, 2))  # (y, x)

    def frames(self) -> NDArray[np.uint8]:
        frames = np.repeat(self.floor[None], self.corners.shape[1], 0)
        for corners, colour in zip(self.corners, [(250, 220, 60), (60, 220, 250)], strict=True):
            for frame, (y, x) in zip(frames, corners, strict=True):
                frame[y : y + 16, x : x + 16] = colour
        return frames

    def rollout(self, steps: int) -> tuple[Tensor, Tensor, NDArray[np.float64]]:
        """Frames (T + 1, N, …), actions (T, N) and the true location (T, N, 2) in cells."""
        frames, actions, locations = [self.frames()], [], []
        for _ in range(steps):
            moves = self.rng.integers(0, 5, self.corners.shape[:2])
            self.corners = np.clip(self.corners + self.MOVES[moves], 0, 144)
            frames.append(self.frames())
            actions.append(moves[0])
            locations.append((self.corners[0, :, ::-1] + 8) * 9 / 160)
        return torch.from_numpy(np.stack(frames)), torch.from_numpy(np.stack(actions)), np.stack(locations)


def test_finds_the_square_it_controls() -> None:
    torch.manual_seed(0)
    world, model = SquareWorld(num_envs=16, seed=0), AttentiveDynamicsModel(num_actions=5)
    optimizer = torch.optim.Adam(model.parameters(), lr=model.config.learning_rate)
    distances = []
    for _ in range(50):
        frames, actions, truth = world.rollout(steps=5)
        rollout = forward_rollout(model, frames, *NO_FINALS)
        logits = model.cell_logits(rollout.previous, rollout.current)
        optimizer.zero_grad()
        adm_losses(logits, rollout.attention, actions, model.config).total.backward()
        optimizer.step()
        predicted = locate(rollout.attention).numpy() + 0.5
        distances.append(np.linalg.norm(predicted - truth, axis=-1).mean())
    assert np.mean(distances[:5]) > 2
    assert np.mean(distances[-5:]) < 0.7  # cells are 1 wide, and the square may stand between two


def test_an_action_of_the_joystick_is_the_sum_of_its_controls() -> None:
    model = make_model(18, ADMConfig(joystick=True))
    features = torch.randn(2, 3, 81, 16, generator=torch.Generator().manual_seed(0))
    names = [action.name for action in ale_py.Action][:18]
    logits = dict(zip(names, model.cell_logits(*features).unbind(-1), strict=True))  # (3, 81) each
    assert not logits["NOOP"].any()
    parts = {name: [c for c in ("UP", "RIGHT", "LEFT", "DOWN", "FIRE") if c in name] for name in names}
    assert {len(controls) for controls in parts.values()} == {0, 1, 2, 3}
    for name, controls in parts.items():
        torch.testing.assert_close(logits[name], sum((logits[control] for control in controls), logits["NOOP"]))


@pytest.mark.parametrize(("actions", "joystick"), [(6, True), (18, False)])
def test_other_actions_have_a_logit_of_their_own(actions: int, joystick: bool) -> None:
    model = make_model(actions, ADMConfig(joystick=joystick))
    features = torch.randn(2, 1, 81, 16, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        before = model.cell_logits(*features)
        model.cell_head[-1].bias[0] += 1
        change = model.cell_logits(*features) - before
    torch.testing.assert_close(change, torch.eye(actions)[0].expand_as(change))


def test_equal_rows_give_the_same_gradient_every_time() -> None:
    """With so many rows torch uses several threads; a sum of equal rows' gradients must not depend on their order."""
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(500, 16, generator=generator)
    rows = values[torch.randint(500, (40_000,), generator=generator)]
    weights = torch.randn(40_000, 18, generator=generator)
    head = nn.Sequential(nn.Linear(16, 18))
    gradients = set()
    for _ in range(10):
        inputs = rows.clone().requires_grad_()
        (adm._on_distinct_rows(head, inputs) * weights).sum().backward()
        assert inputs.grad is not None
        gradients.add(inputs.grad.numpy().tobytes())
    assert len(gradients) == 1
