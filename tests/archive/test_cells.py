"""What tells saved games apart beside their place: what is seen away from the player."""

import numpy as np

from coex.archive.archive import Archive, Cell, Entry
from coex.archive.ways import Way
from tests.archive.test_bursts import agent_for


def test_what_lies_away_from_the_player_tells_cells_apart_and_the_player_does_not(hall: str) -> None:
    for tells in (True, False):
        with agent_for(hall, slots=1, tell_things=tells) as agent:
            encoder = agent.explorer._encoder
            frames = np.full((4, 84, 84), 40, np.uint8)
            frames[1, 40:46, 40:46] = 200  # the player, turned about
            frames[2, 2:8, 2:8] = 90  # a key elsewhere
            frames[3, 2:8, 2:8] = 91  # of another colour
            cells = np.tile([0, 4, 4], (4, 1))
            things = encoder._look(cells, np.ones(4, bool), frames, np.full((4, 2), 42.0)).things.tolist()
            assert things[0] == things[1]
            assert len(set(things)) == (3 if tells else 1)


def test_checkpoints_from_before_know_of_no_things() -> None:
    archive = Archive()
    archive.entries[Cell(1, 7, 3, 4)] = Entry(Way(0), 100.0, b"", is_safe=True, visits=1)
    state = archive.state_dict()
    state["cells"] = state["cells"][:, :4]
    archive.load_state_dict(state)
    assert list(archive.entries) == [Cell(1, 7, 3, 4, things=0)]
