"""Games' names as people write them."""

import pytest

from coex.envs import resolve_game
from coex.errors import UsageError


@pytest.mark.parametrize(
    ("written", "game"),
    [
        ("montezuma", "MontezumaRevenge"),
        ("MontezumaRevenge", "MontezumaRevenge"),
        ("montezuma-revenge", "MontezumaRevenge"),
        ("Montezuma's Revenge".replace("'s", ""), "MontezumaRevenge"),
        ("MontezumaRevengeNoFrameskip-v4", "MontezumaRevenge"),
        ("ALE/Hero-v5", "Hero"),
        ("private_eye", "PrivateEye"),
        ("Q*bert", "Qbert"),
        ("gym:MiniGrid-DoorKey-6x6-v0", "gym:MiniGrid-DoorKey-6x6-v0"),
    ],
)
def test_names_are_accepted_as_people_write_them(written: str, game: str) -> None:
    assert resolve_game(written) == game


@pytest.mark.parametrize(
    ("written", "closest"),
    [("monezuma", "MontezumaRevenge"), ("seequest", "Seaquest"), ("f", "Freeway, Frostbite")],
)
def test_an_unknown_name_gets_the_closest_ones(written: str, closest: str) -> None:
    with pytest.raises(UsageError, match=f"closest: {closest}"):
        resolve_game(written)


def test_nothing_is_no_name() -> None:
    for name in ("", "gym:"):
        with pytest.raises(UsageError):
            resolve_game(name)
