"""Bonuses against other people's packages: scikit-learn, and torchrl and Tianshou where they are installed."""

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import DotProduct
from sklearn.naive_bayes import BernoulliNB, CategoricalNB
from sklearn.preprocessing import StandardScaler

from coex.bonuses.cts import ContextTrees
from coex.bonuses.e3b import Ellipses
from coex.bonuses.icm import VIEW
from coex.bonuses.parts import Moments, blocks, encode_pairs
from coex.bonuses.phi_eb import FeatureDensity


def log_density(model, seen, picture):
    """What a naive Bayes classifier of a single class, fitted on what was seen, gives a picture."""
    return model.fit(seen, np.zeros(len(seen))).predict_joint_log_proba(picture[None])[0, 0]


def test_phi_ebs_density_is_bernoulli_naive_bayes() -> None:
    """Smoothed by ½, it is the estimator of Krichevsky and Trofimov for every feature."""
    features = np.random.default_rng(0).random((30, 12)) < 0.3
    before, after = FeatureDensity(12).learn(features)
    for n in range(1, 30):
        model = BernoulliNB(alpha=0.5, binarize=None)
        assert before[n] == pytest.approx(log_density(model, features[:n], features[n]))
        assert after[n] == pytest.approx(log_density(model, features[: n + 1], features[n]))


def test_ctss_estimator_is_categorical_naive_bayes() -> None:
    """Smoothed by ⅛ of a visit a symbol, for each pixel: trees without depth."""
    frames = np.random.default_rng(1).integers(0, 8, (20, 3, 4)).astype(np.uint8)
    before, after = ContextTrees(3, 4, 8, 0).learn(frames)
    flat = frames.reshape(20, 12)
    for n in range(1, 20):
        model = CategoricalNB(alpha=1 / 8, min_categories=8)
        assert before[n] == pytest.approx(log_density(model, flat[:n], flat[n]))
        assert after[n] == pytest.approx(log_density(model, flat[: n + 1], flat[n]))


def test_e3bs_bonus_is_a_gaussian_processs_variance() -> None:
    """Of the kernel φᵀφ with noise λ: its variance is λφᵀ(λI + Σφφᵀ)⁻¹φ."""
    features = np.random.default_rng(2).normal(size=(15, 4))
    reached = torch.from_numpy(features).float()[:, None]
    no_ends = torch.zeros((0, 2), dtype=torch.int64)
    bonus = Ellipses(0.1).bonus(torch.zeros_like(reached), reached, no_ends, reached[:0, 0])[:, 0]
    for n in range(1, 15):
        process = GaussianProcessRegressor(DotProduct(0.0, "fixed"), alpha=0.1, optimizer=None)
        deviation = process.fit(features[:n], np.zeros(n)).predict(features[n][None], return_std=True)[1][0]
        assert bonus[n].item() == pytest.approx(deviation**2 / 0.1, rel=1e-3)


def test_the_pixels_moments_are_standard_scalers() -> None:
    numbers, scaler, moments = np.random.default_rng(3).normal(5, 3, (60, 7)), StandardScaler(), Moments((7,))
    for part in np.split(numbers, [10, 25]):
        moments.update(torch.from_numpy(part))
        scaler.partial_fit(part)
    np.testing.assert_allclose(moments.mean, scaler.mean_, rtol=1e-4)
    np.testing.assert_allclose(moments.variance, scaler.var_, rtol=1e-3)


def test_icms_errors_and_guesses_are_tianshous(new_bonus, make_rollout) -> None:
    discrete = pytest.importorskip("tianshou.utils.net.discrete", reason="Tianshou is large: pip install tianshou")
    ours, rollout = new_bonus("icm").model, make_rollout(4)
    theirs = discrete.IntrinsicCuriosityModule(
        feature_net=torch.nn.Identity(), feature_dim=288, action_dim=6, hidden_sizes=(256,)
    )
    theirs.forward_model.model.load_state_dict(ours.dynamics.state_dict())
    theirs.inverse_model.model.load_state_dict(ours.inverse.state_dict())
    (block,) = blocks(rollout, VIEW, 1_000)
    left, reached = (features.flatten(0, 1).detach() for features in encode_pairs(ours.encode, block))
    errors, logits = theirs(left, block.actions.flatten(), reached)
    prediction = ours(block)
    torch.testing.assert_close(prediction.errors.flatten(), errors.detach())
    loss = 0.8 * torch.nn.functional.cross_entropy(logits, block.actions.flatten()) + 0.2 * errors.mean()
    torch.testing.assert_close(prediction.loss, loss)


def test_rnds_errors_and_loss_are_torchrls(new_bonus, make_rollout) -> None:
    objectives = pytest.importorskip("torchrl.objectives.rnd", reason="torchrl is large: pip install torchrl")
    from tensordict import TensorDict

    ours, rollout = new_bonus("rnd", predictor={"warmup": 0}).distillation, make_rollout(4)
    frames = rollout.next_view("policy")[..., -1].flatten(0, 1)
    seen = TensorDict({"next": {"observation": ours._normalised(frames)}}, [15])
    for reduction, expected in (("none", ours.errors(frames)), ("mean", None)):
        loss = objectives.RNDLoss(ours.predictor, ours.target, reduction=reduction, update_fraction=1.0)
        found = loss(seen)["loss_predictor"].detach()
        torch.testing.assert_close(found, ours.errors(frames).mean() if expected is None else expected)
