"""Bonuses made for a test."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from coex.bonuses import Bonus
from coex.config.presets import make_config
from coex.training.make import make_bonus

MakeBonus = Callable[..., Any]


@pytest.fixture(name="new_bonus")
def new_bonus_fixture() -> MakeBonus:
    """Makes a bonus by name with some settings, always from the same seed."""

    def make(name: str, **settings: Any) -> Bonus:
        config = make_config("montezuma", f"a2c+{name}", {"bonus": settings})
        torch.manual_seed(1)
        bonus = make_bonus(config, 6, np.random.SeedSequence(1), torch.device("cpu"))
        assert bonus is not None
        return bonus

    return make
