"""Games' names as people write them."""

import ale_py
import gymnasium
import pytest

from coex.envs import ROMS, is_atari, resolve_game
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
        ("ms-pacman", "MsPacman"),
        ("ALE/MsPacman-v5", "MsPacman"),
        ("space_invaders", "SpaceInvaders"),
        ("up n down", "UpNDown"),
        ("pitfall", "Pitfall"),  # and not Pitfall2
        ("pitfall2", "Pitfall2"),
        ("gym:MiniGrid-DoorKey-6x6-v0", "gym:MiniGrid-DoorKey-6x6-v0"),
    ],
)
def test_names_are_accepted_as_people_write_them(written: str, game: str) -> None:
    assert resolve_game(written) == game


@pytest.mark.parametrize(
    ("written", "closest"),
    [
        ("monezuma", "MontezumaRevenge"),
        ("seequest", "Seaquest"),
        ("f", "FishingDerby, FlagCapture, Freeway, .*Frostbite "),
    ],
)
def test_an_unknown_name_gets_the_closest_ones(written: str, closest: str) -> None:
    with pytest.raises(UsageError, match=f"closest: {closest}"):
        resolve_game(written)


@pytest.mark.parametrize("game", ROMS)
def test_every_game_has_its_names(game: str) -> None:
    for written in (game, game.lower(), ROMS[game], f"ALE/{game}-v5"):
        assert resolve_game(written) == game
        assert is_atari(resolve_game(written))


def test_games_are_named_as_gymnasium_names_them() -> None:
    gymnasium.register_envs(ale_py)
    registered = {id_ for id_ in gymnasium.registry if id_.startswith("ALE/")}
    assert {f"ALE/{game}-v5" for game in ROMS} == registered


@pytest.mark.parametrize("written", ["s", "xyzzy", "space", "montezumas-other-revenge", "7"])
def test_the_answer_to_a_wrong_name_is_short(written: str) -> None:
    with pytest.raises(UsageError) as error:
        resolve_game(written)
    assert len(str(error.value)) < 160


def test_a_game_for_two_says_so() -> None:
    with pytest.raises(UsageError, match="two players"):
        resolve_game("maze-craze")


def test_nothing_is_no_name() -> None:
    for name in ("", "gym:"):
        with pytest.raises(UsageError):
            resolve_game(name)
