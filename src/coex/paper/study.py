"""What a table or figure of the paper is: the runs it needs, what was published, and how it is drawn."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from coex.results.published import A2C_STEPS, SEEDS, Scores


@dataclass(frozen=True)
class Row:
    """One method of a table or figure: what the paper published of it, and how we run it."""

    label: str
    method: str = ""  # "": published by others, and not ours to run
    settings: Mapping[str, str] = field(default_factory=dict)  # as --set takes them, where they differ from the preset
    settings_in: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # these instead, in some games
    preset: str = "default"
    published: Scores = field(default_factory=dict)
    steps: int = A2C_STEPS  # of the published figure

    def settings_for(self, game: str) -> Mapping[str, str]:
        return self.settings_in.get(game, self.settings)

    def variant(self, game: str) -> str:
        """The method and its settings as one name: `a2c+coex-psi-c`."""
        return variant_name(self.method, self.preset, self.settings_for(game))


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    games: tuple[str, ...]
    steps: int  # the budget of each run; a table shows scores within it
    seeds: int
    methods: tuple[str, ...] = ()  # (): all of the study's
    runs: Path = Path("runs/paper")
    out: Path = Path("results/paper")
    device: str = "cpu"
    workers: int = -1
    quiet: bool = False


@dataclass(frozen=True)
class Study:
    """One table or figure. `render` writes its files and returns them; `run` is for those that are not plain runs."""

    name: str
    title: str
    games: tuple[str, ...]
    rows: tuple[Row, ...]
    render: Callable[["Study", Request], list[Path]]
    run: Callable[["Study", Request], int] | None = None
    steps: int = A2C_STEPS  # the paper's budget
    seeds: int = SEEDS  # and its seeds
    notes: tuple[str, ...] = ()  # below the table

    def our_rows(self, methods: tuple[str, ...] = ()) -> list[Row]:
        return [row for row in self.rows if row.method and (not methods or row.method in methods)]

    def stem(self, games: tuple[str, ...]) -> str:
        """The name of its files; other games than the paper's get files of their own."""
        others = [game_slug(game) for game in games if game not in self.games]
        return "-".join([self.name, *others])


# What settings are called in file names.
PLAIN_LOSSES = {
    "bonus.adm.changed_cells": "false",
    "bonus.adm.contrast": "0.0",
    "bonus.adm.leak": "0.0",
    "bonus.adm.min_policy_entropy": "0.0",
    "bonus.adm.propensity_clip": "0.0",
}
NO_CELL_LOSS, NO_ENTROPY_LOSS = {"bonus.adm.cell_loss": "false"}, {"bonus.adm.entropy_loss": "false"}


def layout(number: int) -> dict[str, str]:
    """The settings with which every episode of a Gymnasium environment begins in the same layout."""
    return {"env.levels": "1", "env.first_level": str(number)}


LAYOUT = layout(5)
FINE_ROOMS = {"bonus.clusters.threshold": "0.2"}
TWO_VALUES = {"learner.two_value_heads": "true"}
PLAIN_REWARDS = {"reward.unit": "one"}
_NAMES: Mapping[str, Mapping[str, str]] = {
    "paper-losses": PLAIN_LOSSES,
    "no-cell-loss": NO_CELL_LOSS,
    "no-entropy-loss": NO_ENTROPY_LOSS,
    **{f"layout-{number}": layout(number) for number in (5, 6, 7)},
    "fine-rooms": FINE_ROOMS,
    "two-values": TWO_VALUES,
    "plain-rewards": PLAIN_REWARDS,
}


def variant_name(method: str, preset: str, settings: Mapping[str, str]) -> str:
    """A method, its preset and its settings as words; what has no name of its own, as a digest.

    The settings themselves are beside each curve, in its configuration.
    """
    words, rest = [method if preset == "default" else f"{method}-{preset}"], dict(settings)
    if state := rest.pop("bonus.state", None):
        words.append(f"psi-{state}")
    for word, named in _NAMES.items():
        if named.items() <= rest.items():
            words.append(word)
            rest = {name: value for name, value in rest.items() if name not in named}
    if rest:
        text = ",".join(f"{name}={value}" for name, value in sorted(rest.items()))
        words.append(hashlib.sha256(text.encode()).hexdigest()[:8])
    return "-".join(words)


def game_slug(game: str) -> str:
    """A game's name as a directory's."""
    return game.removeprefix("gym:").replace("/", "-").replace(":", "-")
