"""What is measured beside the bonus: against RAM, and never seen by the agent."""

import numpy as np
import pytest

from coex.config.presets import make_config
from coex.envs import RAM_SHAPE
from coex.training.diagnostics import Diagnostics, diagnostic_views

GAME = "MontezumaRevenge"


def states(rollout, letters="xyc"):
    shape = tuple(rollout.actions.shape)
    return {letter: np.arange(rollout.num_transitions).reshape(shape) % 3 for letter in letters}


def test_location_and_rooms_are_compared_with_the_truth(make_rollout):
    diagnostics, rollout = Diagnostics(GAME), make_rollout()
    metrics = diagnostics.observe(rollout, states(rollout))
    assert metrics.keys() <= {"adm/distance"}
    assert diagnostics.snapshot(has_clusters=True).keys() == {
        "rooms/true",
        "rooms/reached",
        "rooms/ari",
        "rooms/ari_long",
    }
    assert diagnostics.snapshot(has_clusters=False).keys() == {"rooms/true", "rooms/reached"}


@pytest.mark.parametrize("letters", ["", "c", "R"])
def test_there_is_no_distance_without_a_location(letters, make_rollout):
    rollout = make_rollout()
    assert Diagnostics(GAME).observe(rollout, states(rollout, letters)) == {}


def test_rooms_are_told_of_a_bonus_without_states_too(make_rollout):
    diagnostics = Diagnostics(GAME)
    diagnostics.observe(make_rollout(), {})
    assert diagnostics.snapshot(has_clusters=False)["rooms/true"] > 0
    assert not diagnostics.album.frames


def test_a_world_without_ram_is_not_measured(make_rollout):
    diagnostics, rollout = Diagnostics("gym:Any-v0"), make_rollout()
    assert diagnostics.observe(rollout, states(rollout)) == {}
    assert diagnostics.snapshot(has_clusters=True) == {}


def test_ram_is_looked_at_only_where_there_is_something_to_compare():
    assert diagnostic_views(make_config("montezuma", "a2c+coex")) == {"ram": RAM_SHAPE}
    assert diagnostic_views(make_config("montezuma", "a2c")) == {}
    assert diagnostic_views(make_config("pong", "a2c+coex")) == {}
    assert diagnostic_views(make_config("gym:CartPole-v1", "a2c+coex")) == {}


def test_its_state_goes_on_as_if_it_had_not_been_saved(make_rollout):
    whole, first, second = Diagnostics(GAME), Diagnostics(GAME), Diagnostics(GAME)
    for seed in range(3):
        rollout = make_rollout(seed)
        whole.observe(rollout, states(rollout))
        (first if seed < 2 else second).observe(rollout, states(rollout))
        if seed == 1:
            second.load_state_dict(first.state_dict())
    assert whole.snapshot(has_clusters=True) == second.snapshot(has_clusters=True)
