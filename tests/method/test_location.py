"""Attention smoothed over time, against a plain loop, and the place it names."""

import numpy as np
import torch
from numpy.typing import NDArray

from coex.method.locator import locate, smooth_attention


class TestSmoothing:
    def literal(
        self,
        attention: NDArray[np.float32],
        first: NDArray[np.float32],
        restart: dict[tuple[int, int], NDArray[np.float32]],
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        smoothed, mean = np.zeros_like(attention), first.copy()
        for t in range(attention.shape[0]):
            for n in range(attention.shape[1]):
                weight = attention[t, n].max()
                mean[n] = (1 - weight) * mean[n] + weight * attention[t, n]
                smoothed[t, n] = mean[n]
                if (t, n) in restart:
                    mean[n] = restart[t, n]
        return smoothed, mean

    def test_agrees_with_a_plain_loop_and_carries_over(self) -> None:
        rng = np.random.default_rng(0)
        attention = rng.dirichlet(np.full(81, 0.02), (7, 3)).astype(np.float32)
        first = rng.dirichlet(np.full(81, 0.02), 3).astype(np.float32)
        restart = rng.dirichlet(np.full(81, 0.02), 3).astype(np.float32)
        ends = [(1, 0), (3, 2), (4, 0)]
        expected, expected_carried = self.literal(attention, first, dict(zip(ends, restart, strict=True)))

        inputs = (
            torch.from_numpy(attention),
            torch.from_numpy(first),
            torch.tensor(ends),
            torch.from_numpy(restart),
        )
        smoothed, carried = smooth_attention(*inputs)
        np.testing.assert_allclose(smoothed, expected, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(carried, expected_carried, rtol=1e-5, atol=1e-7)

        head = smooth_attention(inputs[0][:2], inputs[1], inputs[2][:1], inputs[3][:1])
        tail = smooth_attention(inputs[0][2:], head.carried, inputs[2][1:] - torch.tensor([2, 0]), inputs[3][1:])
        assert torch.cat([head.attention, tail.attention]).equal(smoothed)
        assert tail.carried.equal(carried)

    def test_certain_attention_forgets_the_past(self) -> None:
        certain, vague = torch.eye(81)[[7]], torch.full((1, 81), 1 / 81)
        smoothed = smooth_attention(certain[None], vague, torch.zeros(0, 2, dtype=torch.long), torch.zeros(0, 81))
        assert smoothed.attention[0].equal(certain)
        assert smoothed.carried.equal(certain)

    def test_inputs_are_left_alone(self) -> None:
        attention, carried = torch.rand(3, 2, 81), torch.rand(2, 81)
        before = attention.clone(), carried.clone()
        smooth_attention(attention, carried, torch.tensor([[0, 1]]), torch.rand(1, 81))
        assert attention.equal(before[0])
        assert carried.equal(before[1])


def test_location_is_column_then_row() -> None:
    assert locate(torch.eye(81)[[0, 8, 9 * 2 + 5, 80]]).tolist() == [[0, 0], [8, 0], [5, 2], [8, 8]]
