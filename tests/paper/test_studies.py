"""What the studies' rows set is what they say."""

from coex.bonuses.coex import CoexConfig
from coex.config import parse_assignments
from coex.methods import make_config
from coex.paper.study import PLAIN_LOSSES
from coex.representation.adm import PLAIN


def test_the_papers_losses_are_the_plain_ones() -> None:
    settings = parse_assignments([f"{name}={value}" for name, value in PLAIN_LOSSES.items()])
    bonus = make_config("seaquest", "a2c+coex", settings).bonus
    assert isinstance(bonus, CoexConfig)
    assert bonus.adm == PLAIN
