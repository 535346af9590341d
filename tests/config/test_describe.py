"""Every setting is explained where it is defined."""

import pytest

from coex.cli import main
from coex.config.describe import describe
from coex.config.presets import METHODS, make_config, paper_preset


@pytest.mark.parametrize("method", METHODS)
def test_every_setting_has_a_meaning(method: str) -> None:
    rows = describe(make_config("hero", method), make_config("hero", method, preset=paper_preset(method)))
    assert [name for name, _, _, meaning in rows if not meaning] == []
    names = [name for name, *_ in rows]
    assert len(names) == len(set(names))


def test_the_list_has_the_papers_value_where_it_differs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings", "a2c+coex", "--game", "hero"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert "(paper: rmsprop)" in lines["learner.optimizer"]
    assert "paper" not in lines["learner.gamma"]
    assert main(["settings", "dqn"]) == 2
