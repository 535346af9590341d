"""Pseudo-counts: φ-EB and context tree switching, against worked examples, closed forms and a slow recursion."""

import numpy as np
import pytest
import torch

from coex.bonuses import cts
from coex.bonuses.cts import ContextTrees, neighbours
from coex.bonuses.phi_eb import FeatureDensity, tile_features
from coex.bonuses.pseudocount import count_bonus, pseudo_counts


@pytest.fixture(params=["compiled", "numpy"])
def make_trees(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(cts.native, "load", lambda: None)
    elif cts.native.load() is None:
        pytest.skip("no compiled code")
    return ContextTrees


def test_a_count_is_infinite_without_a_gain_and_0_after_an_immense_one() -> None:
    before, after = np.array([-3.0, -3.0, -3000.0]), np.array([-3.0, -3.5, -500.0])
    counts = pseudo_counts(before, after)
    assert counts.tolist() == [np.inf, np.inf, 0.0]
    assert count_bonus(counts).tolist() == pytest.approx([0.0, 0.0, 10.0])


# φ-EB


def binary(*rows):
    return np.array(rows, np.bool_)


def test_the_papers_example_of_features() -> None:
    history = binary(*[(0, 1, 0)] * 3)
    for features, density, after in (((1, 1, 0), 0.095703125, 0.243), ((1, 0, 1), 0.001953125, None)):
        model = FeatureDensity(3)
        model.learn(history)
        found = model.learn(binary(features))
        assert np.exp(found[0][0]) == pytest.approx(density)
        if after:
            assert np.exp(found[1][0]) == pytest.approx(after)
            assert pseudo_counts(*found)[0] == pytest.approx(0.4918452318)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (1, {n: n + 0.5 for n in (0, 1, 7, 99)}),
        (3, {0: 0.24342105, 1: 1.13330258, 3: 3.07302962, 10: 10.0287272}),
    ],
)
def test_equal_features_count_up(size, expected) -> None:
    counts = pseudo_counts(*FeatureDensity(size).learn(np.ones((100, size), np.bool_)))
    for n, count in expected.items():
        assert counts[n] == pytest.approx(count)


def test_features_at_once_are_features_one_by_one() -> None:
    features = np.random.default_rng(0).random((40, 30)) < 0.2
    features[:, 20:] = False  # some are never seen
    at_once, one_by_one = FeatureDensity(30), FeatureDensity(30)
    singles = [one_by_one.learn(row[None]) for row in features]
    found = at_once.learn(features)
    for part, single in zip(found, zip(*singles, strict=True), strict=True):
        np.testing.assert_allclose(part, np.concatenate(single), rtol=1e-12)
    # By the definition, without any of its shortcuts.
    ones = features[:-1].sum(0)
    same = np.where(features[-1], ones, 39 - ones)
    np.testing.assert_allclose(found[0][-1], np.log((same + 0.5) / 40).sum(), rtol=1e-12)
    assert (found[1] >= found[0]).all()  # learning-positive


def test_a_feature_is_a_colour_in_a_tile() -> None:
    picture = torch.zeros((1, 84, 84, 3), dtype=torch.uint8)
    picture[0, 5, 6] = torch.tensor([255, 64, 0])  # colour 3-1-0 in the tile of row 0, column 1
    features = tile_features(picture, tiles=14, colour_bits=2)[0].reshape(14, 14, 64)
    assert features.sum() == 14 * 14 + 1
    assert features[..., 0].all()
    assert features[0, 1, 0b110100]


# Context tree switching


def columns(pairs):
    """Frames of 1 × 2 symbols whose second pixel's left neighbour is the context."""
    return np.array(pairs, np.uint8)[:, None, :]


def test_the_worked_example_of_switching(make_trees) -> None:
    """A tree of depth 1 over two symbols; taking the new weight for the old one gives other numbers from step 3 on."""
    expected = [
        ((0, 0), 0.5, 0.75, 0.5, 0.5),
        ((0, 0), 0.75, 0.8333333333, 1.5, 0.5),
        ((1, 1), 0.3333333333, 0.609375, 0.47169811, 0.375),
        ((0, 0), 0.7552083333, 0.8074137931, 2.78596739, 0.3862068966),
        ((1, 1), 0.5762068966, 0.7080341113, 1.27616106, 0.3007181329),
    ]
    both, context = make_trees(1, 2, 2, 1), make_trees(1, 1, 2, 1)  # of both pixels, and of the first alone
    for pair, before, after, count, stay in expected:
        whole = both.learn(columns([pair]))
        first = context.learn(columns([pair])[:, :, :1])
        ours = [np.exp(one - other) for one, other in zip(whole, first, strict=True)]  # of the second pixel
        assert ours[0][0] == pytest.approx(before)
        assert ours[1][0] == pytest.approx(after)
        assert pseudo_counts(np.log(ours[0]), np.log(ours[1]))[0] == pytest.approx(count)
        assert both.state_dict()["stay"][2] == pytest.approx(stay)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((1, 1), {n: n + 1 / 8 for n in (0, 1, 10, 100)}),
        ((2, 2), {0: 0.00219988, 1: 0.49404768, 2: 1.30771685, 10: 8.97303268, 100: 98.8312771}),
        ((42, 42), {10: 3.18e-6, 100: 6.1294892}),
    ],
)
def test_equal_frames_count_up(size, expected, make_trees) -> None:
    frames = np.full((101, *size), 5, np.uint8)
    counts = pseudo_counts(*make_trees(*size, 8, 4).learn(frames))
    for n, count in expected.items():
        assert counts[n] == pytest.approx(count, rel=1e-2 if count < 1e-5 else 1e-5)


class SlowTree:
    """One context tree, written down as the recursion is."""

    def __init__(self, depth: int, symbols: int) -> None:
        self.depth, self.symbols = depth, symbols
        self.counts, self.stay, self.split, self.children = [0] * symbols, 0.5, 0.5, {}

    def own(self, symbol):
        return (self.counts[symbol] + 1 / self.symbols) / (sum(self.counts) + 1)

    def query(self, context, symbol):
        if self.depth == 0:
            return self.own(symbol)
        child = self.children.get(context[0])
        below = child.query(context[1:], symbol) if child else 1 / self.symbols
        return self.stay * self.own(symbol) + self.split * below

    def update(self, context, symbol, time):
        own = self.own(symbol)
        if self.depth:
            child = self.children.setdefault(context[0], SlowTree(self.depth - 1, self.symbols))
            below = child.query(context[1:], symbol)
            child.update(context[1:], symbol, time)
            a = 1 / (time + 1)
            stay = (1 - a) * own * self.stay + a * below * self.split
            split = (1 - a) * below * self.split + a * own * self.stay
            self.stay, self.split = stay / (stay + split), split / (stay + split)
        self.counts[symbol] += 1


def test_the_density_is_the_slow_recursions(make_trees) -> None:
    generator = np.random.default_rng(1)
    frames = generator.integers(0, 8, (12, 3, 5)).astype(np.uint8)
    frames[6:] = frames[generator.integers(0, 6, 6)]  # some are seen again
    slow = [SlowTree(4, 8) for _ in range(15)]
    trees = make_trees(3, 5, 8, 4)
    parts = [trees.learn(part) for part in np.split(frames, [1, 5])]
    before, after = (np.concatenate(part) for part in zip(*parts, strict=True))
    for time, frame in enumerate(frames, start=1):
        around, symbols = neighbours(frame).T.tolist(), frame.ravel().tolist()
        steps = list(zip(slow, around, symbols, strict=True))
        expected = sum(np.log(tree.query(context, symbol)) for tree, context, symbol in steps)
        assert before[time - 1] == pytest.approx(expected, rel=1e-12)
        for tree, context, symbol in steps:
            tree.update(context, symbol, time)
        expected = sum(np.log(tree.query(context, symbol)) for tree, context, symbol in steps)
        assert after[time - 1] == pytest.approx(expected, rel=1e-12)


def test_neighbours_are_left_above_above_left_and_above_right() -> None:
    frame = np.arange(1, 7, dtype=np.uint8).reshape(2, 3)
    assert neighbours(frame)[:, 4].tolist() == [4, 2, 1, 3]
    assert neighbours(frame)[:, 0].tolist() == [0, 0, 0, 0]
    assert neighbours(frame)[:, 5].tolist() == [5, 3, 2, 0]


def test_trees_grow_with_what_is_seen_and_are_restored(make_trees) -> None:
    frames = np.random.default_rng(2).integers(0, 8, (30, 6, 6)).astype(np.uint8)
    trees, other = make_trees(6, 6, 8, 4), make_trees(6, 6, 8, 4)
    trees.learn(frames[:20])
    assert len(trees) > 36 * 5
    other.load_state_dict(trees.state_dict())
    for ours, theirs in zip(trees.learn(frames[20:]), other.learn(frames[20:]), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_white_is_the_last_level(new_bonus, make_rollout) -> None:
    bonus, rollout = new_bonus("cts"), make_rollout()
    rollout.views["grey42"].fill_(255)
    rollout.final_views["grey42"].fill_(255)
    assert bonus.reward(rollout).bonus[0, 0] == pytest.approx(10.0)  # never seen: 0.01^−½
    assert bonus.trees.state_dict()["counts"][1].tolist() == [0] * 7 + [15]


def test_equal_frames_of_one_rollout_are_counted_one_after_the_other(new_bonus, make_rollout) -> None:
    for name in ("cts", "phi-eb"):
        bonus = new_bonus(name).reward(make_rollout(pictures=1, steps=40)).bonus.flatten()
        assert (bonus.diff() <= 0).all()
        assert bonus[-1] < bonus[0] / 2
