"""A tree comes back as it was: types, bits, and the order in memory."""

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from coex.runs.checkpoints.tree import ARRAYS, STATE, TENSORS, read_tree, take_snapshot


def round_trip(tree: Any) -> Any:
    return read_tree(take_snapshot(tree).files())


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, -1, 2**127 + 1, 0.1, -0.0, 1e-310, float("inf"), "text ∞", [], {}, (), [1, [2.5, None]],
        (3, (1, 2), None), {"a": {"b": [1]}}, {1: "int", "1": "text"}, {"$": "ours", "name": "x"},
    ],
)  # fmt: skip
def test_plain_values_keep_their_types(value: Any) -> None:
    (back,) = round_trip([value])
    assert back == value
    assert repr(back) == repr(value)


def test_not_a_number_stays_so() -> None:
    assert np.isnan(round_trip({"x": float("nan")})["x"])


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.int32, np.int64, np.float32, np.float64, np.bool_])
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3, 4)])
def test_arrays_are_exact(dtype: type, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    back = round_trip({"inner": [array]})["inner"][0]
    assert back.dtype == dtype
    assert back.shape == shape
    assert back.tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool])
def test_tensors_are_exact(dtype: torch.dtype) -> None:
    for tensor in (torch.tensor(3).to(dtype), torch.zeros(0, 4, dtype=dtype), torch.arange(24).view(2, 3, 4).to(dtype)):
        back = round_trip({"x": tensor})["x"]
        assert back.dtype == dtype
        assert torch.equal(back, tensor)


def test_tensors_keep_their_order_in_memory() -> None:
    weights = torch.randn(8, 4, 3, 5).to(memory_format=torch.channels_last)
    back = round_trip({"x": weights, "y": weights.t_() if weights.ndim == 2 else weights.permute(3, 1, 0, 2)})
    assert torch.equal(back["x"], weights)
    assert back["x"].stride() == weights.stride()
    assert back["y"].stride() == weights.permute(3, 1, 0, 2).stride()


def test_a_snapshot_does_not_follow_the_original() -> None:
    array, tensor, numbers = np.zeros(3), torch.zeros(3), [1.0]
    snapshot = take_snapshot({"array": array, "tensor": tensor, "numbers": numbers})
    array += 1
    tensor += 1
    numbers.append(2.0)
    back = read_tree(snapshot.files())
    assert back["array"].tolist() == back["tensor"].tolist() == [0.0, 0.0, 0.0]
    assert back["numbers"] == [1.0]


def test_an_optimisers_state_goes_on_identically() -> None:
    def make() -> tuple[nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(0)
        network = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return network, torch.optim.Adam(network.parameters(), 0.1)

    def step(network: nn.Module, optimizer: torch.optim.Optimizer, seed: int) -> None:
        pictures = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(seed))
        optimizer.zero_grad()
        network(pictures).square().mean().backward()
        optimizer.step()

    one, other = make(), make()
    step(*one, 1)
    state = round_trip([part.state_dict() for part in one])
    for part, saved in zip(other, state, strict=True):
        part.load_state_dict(saved)
    for seed in (2, 3):
        step(*one, seed)
        step(*other, seed)
    assert torch.equal(one[0].weight, other[0].weight)  # type: ignore[arg-type]


def test_generators_of_torch_numpy_and_python_come_back() -> None:
    numpy = np.random.default_rng(3)
    torch_generator = torch.Generator().manual_seed(3)
    tree = {
        "numpy": numpy.bit_generator.state,
        "torch": torch_generator.get_state(),
        "python": random.Random(3).getstate(),
    }
    expected = (numpy.random(5).tolist(), torch.rand(5, generator=torch_generator).tolist(), random.Random(3).random())
    back = round_trip(tree)
    numpy.bit_generator.state = back["numpy"]
    torch_generator.set_state(back["torch"])
    python = random.Random()
    python.setstate(back["python"])
    assert (
        numpy.random(5).tolist(),
        torch.rand(5, generator=torch_generator).tolist(),
        python.random(),
    ) == expected


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", np.array(["text"]), np.array([object()]), object(), np.int64(3)])
def test_what_has_no_form_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="at x/0"):
        take_snapshot({"x": [value]})


@pytest.mark.parametrize("name", [STATE, ARRAYS, TENSORS])
@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"{}", b"[1]", b"PK\3\4", b'{"$": "tensor", "name": "x"}'])
def test_files_that_hold_no_tree_are_a_value_error(name: str, content: bytes) -> None:
    files = take_snapshot({"a": np.zeros(3), "t": torch.zeros(3)}).files() | {name: content}
    try:
        read_tree(files)
    except ValueError:
        return
    assert name == STATE
    assert content in (b"{}", b"[1]")  # a tree, though another one
