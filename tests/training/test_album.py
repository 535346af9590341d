"""One picture of every room."""

import numpy as np
import torch

from coex.training import album
from coex.training.album import RoomAlbum


def newest(rollout, t, n):
    return rollout.views["policy"][t + 1, n, ..., -1].numpy()


def test_rooms_are_shown_as_last_seen_in_their_1st_2nd_and_4th_rollout(make_rollout):
    rollouts = [make_rollout(seed) for seed in range(4)]
    for rollout in rollouts:
        rollout.final_index = torch.zeros((0, 2), dtype=torch.int64)
    rooms = np.zeros((5, 3), np.int64)
    rooms[2, 1] = 7
    kept = RoomAlbum()
    seen = []
    for rollout in rollouts:
        kept.add(rooms, rollout)
        seen.append((kept.frames[0], kept.frames[7]))
    for index, shown in enumerate([0, 1, 1, 3]):
        np.testing.assert_array_equal(seen[index][0], newest(rollouts[shown], 4, 2))
        np.testing.assert_array_equal(seen[index][1], newest(rollouts[shown], 2, 1))


def test_an_episodes_end_is_shown_not_the_next_beginning(make_rollout):
    rollout = make_rollout()
    t, n = rollout.final_index[0].tolist()
    rooms = np.zeros((5, 3), np.int64)
    rooms[t, n] = 1
    kept = RoomAlbum()
    kept.add(rooms, rollout)
    np.testing.assert_array_equal(kept.frames[1], rollout.final_views["policy"][0, ..., -1].numpy())


def test_the_state_goes_on_as_if_it_had_not_been_saved(make_rollout):
    rooms = np.arange(15).reshape(5, 3) % 4
    whole, first, second = RoomAlbum(), RoomAlbum(), RoomAlbum()
    for seed in range(3):
        whole.add(rooms, make_rollout(seed))
        (first if seed < 2 else second).add(rooms, make_rollout(seed))
        if seed == 1:
            second.load_state_dict(first.state_dict())
    for name, value in whole.state_dict().items():
        np.testing.assert_array_equal(value, second.state_dict()[name])
    empty = RoomAlbum()
    empty.load_state_dict(RoomAlbum().state_dict())
    assert not empty.frames


def test_no_more_rooms_than_a_checkpoint_should_hold(make_rollout, monkeypatch):
    monkeypatch.setattr(album, "MOST_ROOMS", 4)
    kept = RoomAlbum()
    kept.add(np.arange(15).reshape(5, 3), make_rollout())
    assert sorted(kept.frames) == [0, 1, 2, 3]
