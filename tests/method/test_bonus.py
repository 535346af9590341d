"""The batched bonus against Algorithm 1 step by step, and what ψ may be."""

import math
from collections import Counter

import numpy as np
import pytest
import torch

from coex.bonuses import BonusContext
from coex.bonuses.simhash import SimHashBonus
from coex.config.bonuses import ADMConfig, CoexConfig, SimHashConfig
from coex.config.presets import make_config
from coex.errors import UsageError
from coex.method.bonus import CoexBonus

GAME = "MontezumaRevenge"


def make(config: CoexConfig = CoexConfig(), game: str = GAME) -> CoexBonus:
    torch.manual_seed(0)
    return CoexBonus(config, BonusContext(game, 6, np.random.SeedSequence(1), torch.device("cpu")))


class Algorithm1:
    """A literal transcription of Algorithms 1 and 2 for one step of one environment at a time."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self.members: list[list[np.ndarray]] = []
        self.counts: Counter[tuple[int, ...]] = Counter()
        self.smoothed: dict[int, np.ndarray] = {}

    def cluster(self, embedding: np.ndarray) -> int:
        distances = [np.linalg.norm(np.sum(c, axis=0) / len(c) - embedding) for c in self.members]
        if distances and min(distances) <= self.threshold:
            chosen = int(np.argmin(distances))
            self.members[chosen].append(embedding)
            return chosen
        self.members.append([embedding])
        return len(self.members) - 1

    def step(self, n: int, attention: np.ndarray, embedding: np.ndarray, score: float) -> float:
        omega = attention.max()
        self.smoothed[n] = (1 - omega) * self.smoothed[n] + omega * attention
        i, j = divmod(int(self.smoothed[n].argmax()), 9)
        key = (j, i, self.cluster(embedding), math.floor(score))
        self.counts[key] += 1
        return 1 / math.sqrt(self.counts[key])


@pytest.mark.parametrize("minibatch", [128, 5])
def test_the_batched_bonus_is_algorithm_1_step_by_step(minibatch, make_rollout):
    bonus, literal = make(CoexConfig(adm=ADMConfig(minibatch=minibatch))), Algorithm1(threshold=0.7)
    for seed in range(12):
        rollout = make_rollout(seed, steps=7, envs=4)
        with torch.no_grad():  # the same attention and embeddings for both
            frames = (
                bonus.encoder.locator.model.attend(bonus.encoder.locator.model.encode(rollout.views["rgb160"]))
                .double()
                .numpy()
            )  # (T + 1, N, 81)
            reached = (
                bonus.encoder.locator.model.attend(bonus.encoder.locator.model.encode(rollout.next_view("rgb160")))
                .double()
                .numpy()
            )
        embeddings = bonus.encoder.rooms.embed(rollout.next_view("rgb84").flatten(0, 1)).reshape(7, 4, -1)
        embeddings = embeddings * bonus.encoder.rooms.scale
        if not literal.smoothed:
            literal.smoothed = dict(enumerate(frames[0]))
        expected = np.zeros((7, 4))
        for t in range(7):
            for n in range(4):
                expected[t, n] = literal.step(n, reached[t, n], embeddings[t, n], rollout.scores[t, n].item())
                if rollout.ended[t, n]:
                    literal.smoothed[n] = frames[t + 1, n]  # the reset frame restarts ᾱ and is not counted
        actual = bonus.reward(rollout).bonus
        np.testing.assert_array_equal(actual.numpy(), expected.astype(np.float32))
    keys = np.array(list(literal.counts))
    assert bonus.counts.lookup(keys).tolist() == list(literal.counts.values())
    assert len(bonus.counts) == len(literal.counts) > 5


@pytest.mark.parametrize("state", ["x", "c", "R", "xy", "cR", "xyc", "Rcyx"])
def test_any_subset_of_the_state_can_be_counted(state, make_rollout):
    bonus = make(CoexConfig(state=state))
    reward = bonus.reward(make_rollout()).bonus
    assert reward.shape == (5, 3)
    assert bonus.counts.key_size == len(state)


@pytest.mark.parametrize("state", ["", "xq", "xx", "xyr"])
def test_other_letters_are_refused(state):
    with pytest.raises(UsageError, match="letters of xycR"):
        CoexConfig(state=state)


def test_only_the_views_that_are_needed_are_asked_for():
    assert CoexConfig().views(GAME) == {"rgb160": (160, 160, 3), "rgb84": (84, 84, 3)}
    assert CoexConfig(state="xyR").views(GAME) == {"rgb160": (160, 160, 3)}
    assert CoexConfig(state="cR").views("gym:Any-v0") == {"rgb84": (84, 84, 3)}
    assert CoexConfig(locator="random", state="xyR").views("gym:Any-v0") == {}
    assert CoexConfig(locator="ram", rooms="ram").views(GAME) == {"ram": (128,)}


def test_ram_methods_need_a_game_with_ram_truth():
    for config in (CoexConfig(locator="ram"), CoexConfig(rooms="ram")):
        with pytest.raises(UsageError, match=r"has no RAM truth.*Freeway"):
            config.views("gym:CartPole-v1")


def test_a_bonus_sees_ram_only_if_its_methods_name_says_so():
    with pytest.raises(UsageError, match=r"use a2c\+coex-ram"):
        make_config("montezuma", "a2c+coex", {"bonus": {"locator": "ram"}})
    for method in ("a2c+coex", "ppo+coex", "a2c+simhash"):
        assert "ram" not in make_config("montezuma", method).views()


def test_the_score_is_floored_unclipped(make_rollout):
    bonus, rollout = make(CoexConfig(state="R")), make_rollout()
    rollout.scores = torch.tensor([[-0.5, 0.2, 400.9]]).repeat(5, 1)
    assert bonus.reward(rollout).bonus[0].tolist() == [1.0, 1.0, 1.0]
    assert bonus.counts.lookup([[-1], [0], [400], [1]]).tolist() == [5, 5, 5, 0]


def test_random_coordinates_cover_the_grid(make_rollout):
    bonus = make(CoexConfig(state="xy", locator="random"))
    for seed in range(60):
        bonus.reward(make_rollout(seed))
    assert len(bonus.counts) == 81


def test_what_it_learned_is_reported(make_rollout):
    bonus = make()
    metrics = bonus.update(make_rollout(), bonus.reward(make_rollout()))
    assert {"adm/accuracy", "adm/loss_action", "adm/loss_cell", "adm/entropy", "adm/skill"} <= metrics.keys()
    assert bonus.snapshot().keys() == {"counts/states", "rooms/clusters"}


def test_the_model_learns_from_the_rollout(make_rollout):
    bonus, rollout = make(CoexConfig(adm=ADMConfig(propensity_clip=0.0))), make_rollout()
    losses = []
    for _ in range(30):
        losses.append(bonus.update(rollout, bonus.reward(rollout))["adm/loss"])
    assert losses[-1] < 0.8 * losses[0]


def test_simhash_codes_are_the_signs_of_projections():
    bonus = SimHashBonus(SimHashConfig(), BonusContext(GAME, 6, np.random.SeedSequence(0), torch.device("cpu")))
    pictures = torch.randint(0, 256, (6, 52, 52), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    pictures[5] = pictures[2]
    keys = bonus.hash(pictures)
    assert keys.shape == (6, 2)
    assert (keys[5] == keys[2]).all()
    assert len(np.unique(keys, axis=0)) == 5
    signs = pictures.flatten(1).double().numpy() @ bonus.hash._weights.double().numpy() > 0
    np.testing.assert_array_equal(np.unpackbits(keys.view(np.uint8), axis=1).astype(bool), signs)
    np.testing.assert_array_equal(bonus.hash(pictures[:1]), keys[:1])  # whatever the batch
