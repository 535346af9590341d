"""Sparsemax against answers worked out by hand and against the reference package."""

import entmax
import pytest
import torch

from coex.method.sparsemax import sparsemax


def test_hand_computed_answers() -> None:
    scores = torch.tensor([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.5, 0.0, -2.0], [1000.2, 1000.0, 0.0]])
    expected = torch.tensor([[1 / 3, 1 / 3, 1 / 3], [1.0, 0.0, 0.0], [0.75, 0.25, 0.0], [0.6, 0.4, 0.0]])
    torch.testing.assert_close(sparsemax(scores), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2])
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_agrees_with_entmax_forward_and_backward(dim: int, scale: float) -> None:
    torch.manual_seed(0)
    ours = (scale * torch.randn(7, 81, 5)).requires_grad_()
    theirs = ours.detach().clone().requires_grad_()
    upstream = torch.randn(7, 81, 5)

    actual, expected = sparsemax(ours, dim), entmax.sparsemax(theirs, dim)
    torch.testing.assert_close(actual, expected)
    (actual_gradient,) = torch.autograd.grad(actual, ours, upstream)
    (expected_gradient,) = torch.autograd.grad(expected, theirs, upstream)
    torch.testing.assert_close(actual_gradient, expected_gradient)


def test_gradcheck() -> None:
    torch.manual_seed(0)
    scores = torch.randn(4, 9, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(sparsemax, scores)


def test_is_a_distribution_even_with_ties() -> None:
    scores = torch.randint(-2, 3, (200, 81)).float()
    probabilities = sparsemax(scores)
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(200))
    assert (probabilities >= 0).all()


def test_not_a_number_stays_in_its_row() -> None:
    probabilities = sparsemax(torch.tensor([[1.0, float("nan")], [0.0, 2.0]]))
    assert probabilities[0].isnan().all()
    assert probabilities[1].tolist() == [0.0, 1.0]


def test_leaves_its_input_alone() -> None:
    scores = torch.randn(3, 81)
    before = scores.clone()
    sparsemax(scores)
    assert torch.equal(scores, before)
