"""When a run says that its network sees nothing."""

import io
from pathlib import Path

import pytest

from coex.config.presets import make_config
from coex.runs.log import is_blind
from coex.runs.progress import Progress
from coex.training.loop import train

SEES = {"step": 60_000, "held_steps": 0.0, "network/spread": 0.1, "network/policy_spread": 0.8}
BLIND = SEES | {"network/spread": 0.02, "network/policy_spread": 0.006}


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        (SEES, False),
        (BLIND, True),
        (BLIND | {"step": 40_000}, False),  # too early to tell
        (BLIND | {"held_steps": 20_000.0}, False),  # its policy has learned for 40,000 steps only
        (BLIND | {"network/spread": 0.2}, False),  # sees, and has not decided yet
    ],
)
def test_a_blind_network_is_told_by_what_it_does_not_tell_apart(point: dict[str, float], expected: bool) -> None:
    assert is_blind(point) == expected


def test_it_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coex.runs.log._PATIENCE", 80)
    monkeypatch.setattr("coex.runs.log._BLIND_SPREAD", 100.0)
    said = io.StringIO()
    config = make_config("freeway", "a2c", {"total_steps": 160, "num_envs": 4, "num_workers": 0, "log_every_steps": 40})
    train(config, tmp_path / "run", Progress(160, 4, quiet=True, stream=said))
    [line] = said.getvalue().splitlines()
    assert " 80 steps" in line
