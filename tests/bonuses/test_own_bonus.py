"""The bonus of docs/own-bonus.md: it keeps the contract, is what it says it is, and is a method like any other."""

import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from coex.bonuses import BonusContext
from coex.cli import main
from coex.config.bonuses import CoexConfig
from coex.method.bonus import CoexBonus
from coex.runs.directory import read_metrics
from tests.bonuses import test_contract as contract

PAGE = Path(__file__).parent.parent.parent / "docs" / "own-bonus.md"
METHOD = "a2c+myrooms:RoomBonus"


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The page's code as a module that can be imported."""
    (tmp_path / "myrooms.py").write_text(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0])
    monkeypatch.syspath_prepend(tmp_path)
    yield "myrooms"
    sys.modules.pop("myrooms", None)


@pytest.fixture
def make(module):
    bonus_class = __import__(module).RoomBonus
    context = BonusContext("gym:Any-v0", 6, np.random.SeedSequence(0), torch.device("cpu"))
    return lambda: bonus_class(bonus_class.Config(), context)


@pytest.mark.parametrize(
    "promise",
    [
        contract.test_rewards_are_finite_and_in_shape,
        contract.test_rare_is_worth_more_than_common,
        contract.test_the_rollout_is_left_alone,
        contract.test_the_same_seed_gives_the_same_numbers,
        contract.test_a_restored_bonus_goes_on_identically,
        contract.test_inspecting_changes_nothing,
    ],
)
def test_it_keeps_the_contract(promise, request):
    promise(**{name: request.getfixturevalue(name) for name in inspect.signature(promise).parameters})


def test_it_is_coex_without_a_location(make, make_rollout):
    ours = make()
    context = BonusContext("gym:Any-v0", 6, np.random.SeedSequence(0), torch.device("cpu"))
    theirs = CoexBonus(CoexConfig(state="cR"), context)
    for seed in range(4):
        assert torch.equal(ours.reward(make_rollout(seed)).bonus, theirs.reward(make_rollout(seed)).bonus)


def test_it_trains_resumes_films_and_reports(module, tmp_path, capsys):
    run, whole = tmp_path / "run", tmp_path / "whole"
    shared = f"--method {METHOD} --envs 2 --workers 0 --set bonus.threshold=0.6 --set schedule_steps=80 --quiet"
    assert main(f"train freeway {shared} --steps 40 --out {run}".split()) == 0
    assert main(f"resume {run} --steps 80 --quiet".split()) == 0
    assert main(f"train freeway {shared} --steps 80 --out {whole}".split()) == 0
    resumed, straight = ([point["policy_loss"] for point in read_metrics(path)][-1] for path in (run, whole))
    assert resumed == straight
    assert "counts/states" in read_metrics(run)[-1]
    assert main(f"eval {run} --episodes 1 --envs 1 --workers 0".split()) == 0
    assert main(f"video {run} --seconds 1".split()) == 0
    assert main(f"report {run} --no-video".split()) == 0
    assert METHOD in (run / "report.html").read_text()


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("a2c+nowhere:Bonus", "nowhere:Bonus"),
        ("a2c+myrooms:Nothing", "myrooms:Nothing"),
        ("a2c+myrooms:RoomConfig", "has no settings"),
        ("dqn+myrooms:RoomBonus", "unknown method"),
    ],
)
def test_a_bonus_that_is_not_there_is_named(method, message, module, tmp_path, capsys):
    assert main(["train", "freeway", "--method", method, "--out", str(tmp_path / "run")]) == 2
    assert message in capsys.readouterr().err
