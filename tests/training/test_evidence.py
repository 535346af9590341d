"""Distances to the truth in RAM."""

import numpy as np

from coex.envs import ram
from coex.training.evidence import location_errors


def private_eye(x: int, height: int, thrown: int, faces_left: bool) -> np.ndarray:
    memory = np.zeros(ram.RAM_BYTES, np.uint8)
    memory[63], memory[86], memory[97], memory[91] = x, height, thrown, 8 * faces_left
    return memory


def test_the_error_is_the_distance_to_the_centre_of_the_players_cell() -> None:
    memory = np.zeros((2, ram.RAM_BYTES), np.uint8)
    memory[:, 14] = (60, 100)  # Freeway's chicken: its box is (44, 193 - byte, 7, 8)
    centre = np.stack([np.full(2, (44 + 3.5) * 9 / 160), (np.array([133, 93]) + 4) * 9 / 210], axis=-1)
    locations = np.array([[2, 5], [7, 0]])
    np.testing.assert_allclose(
        location_errors("Freeway", locations, memory), np.hypot(*(locations + 0.5 - centre).T), rtol=1e-12
    )


def test_the_nearer_of_the_player_and_his_car_counts() -> None:
    memory = private_eye(x=80, height=20, thrown=100, faces_left=False)
    driver = np.array([84, 62.5]) * (9 / 160, 9 / 210)
    car = np.array([87, 168.5]) * (9 / 160, 9 / 210)
    for cell in ([4, 2], [4, 7]):
        wanted = min(np.hypot(*(np.array(cell) + 0.5 - place)) for place in (driver, car))
        np.testing.assert_allclose(location_errors("PrivateEye", np.array([cell]), memory[None]), wanted)
    assert wanted < 1, "the car is that close to the lower cell, the driver is not"


def test_the_car_turns_about_its_driver() -> None:
    left, right = (ram.controlled_boxes("PrivateEye", private_eye(80, 20, 0, faces)) for faces in (True, False))
    np.testing.assert_array_equal(left[0], right[0])
    assert (left[1, 0], right[1, 0]) == (71, 77)
