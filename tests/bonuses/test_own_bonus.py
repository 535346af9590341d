"""The bonus of docs/own-bonus.md keeps the contract, and is the ψ = (c, R) that it says it is."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from coex.config.bonuses import CoexConfig
from coex.method.bonus import CoexBonus
from tests.bonuses import test_contract as contract

PAGE = Path(__file__).parent.parent.parent / "docs" / "own-bonus.md"


@pytest.fixture
def make():
    names: dict = {}
    exec(compile(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0], str(PAGE), "exec"), names)
    return names["RoomBonus"]


@pytest.mark.parametrize(
    "promise",
    [
        contract.test_rewards_are_finite_and_in_shape,
        contract.test_rare_is_worth_more_than_common,
        contract.test_the_rollout_is_left_alone,
        contract.test_the_same_seed_gives_the_same_numbers,
        contract.test_a_restored_bonus_goes_on_identically,
    ],
)
def test_it_keeps_the_contract(promise, request):
    promise(**{name: request.getfixturevalue(name) for name in inspect.signature(promise).parameters})


def test_it_is_coex_without_a_location(make, make_rollout):
    ours = make()
    theirs = CoexBonus(
        CoexConfig(state="cR"), "gym:Any-v0", 6, np.random.SeedSequence(0), torch.device("cpu")
    )  # fmt: skip
    for seed in range(4):
        assert torch.equal(ours.reward(make_rollout(seed)), theirs.reward(make_rollout(seed)))
