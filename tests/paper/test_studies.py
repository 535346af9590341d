"""What the studies' rows set is what they say."""

from coex.config.bonuses import PLAIN, CoexConfig
from coex.config.presets import make_config
from coex.config.settings import parse_assignments
from coex.paper.study import PLAIN_LOSSES


def test_the_papers_losses_are_the_plain_ones() -> None:
    settings = parse_assignments([f"{name}={value}" for name, value in PLAIN_LOSSES.items()])
    bonus = make_config("seaquest", "a2c+coex", settings).bonus
    assert isinstance(bonus, CoexConfig)
    assert bonus.adm == PLAIN
