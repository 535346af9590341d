"""CoEX's counts with a factor for what is new in the episode."""

import numpy as np
import pytest
import torch


def test_coex_times_e3b_is_the_product_of_both(new_bonus, make_rollout) -> None:
    product, twin = (new_bonus("coex-e3b", e3b={"features": 16}) for _ in range(2))
    coex = super(type(twin), twin)
    for seed in range(2):
        rollout = make_rollout(seed)
        rewarded = product.reward(rollout)
        counted, novel = coex.reward(rollout), twin.e3b.reward(rollout)
        assert torch.equal(rewarded.bonus, counted.bonus * novel.bonus)
        assert rewarded.states.keys() == counted.states.keys()
        assert np.array_equal(rewarded.visits, counted.visits)  # for the page's map
        product.update(rollout, rewarded)
        coex.update(rollout, counted)
        twin.e3b.update(rollout, novel)


@pytest.mark.parametrize("state", ["xy", "xycR"])
def test_noveld_by_counts_pays_the_rise_once_an_episode(state, new_bonus, make_rollout) -> None:
    """By its definition, step by step, across rollouts and ends of episodes."""
    bonus, counts = new_bonus("coex-noveld", state=state, alpha=0.4), {}
    met, left = [set() for _ in range(3)], [0.0] * 3
    paid = []
    for seed in range(6):
        rollout = make_rollout(seed, pictures=4)
        rewarded = bonus.reward(rollout)
        ends = rollout.final_index.tolist()
        for t in range(5):
            for n in range(3):
                key = tuple(int(rewarded.states[letter][t, n]) for letter in state)
                counts[key] = counts.get(key, 0) + 1
                novelty = counts[key] ** -0.5
                expected = max(novelty - 0.4 * left[n], 0.0) if key not in met[n] else 0.0
                assert rewarded.bonus[t, n].item() == pytest.approx(expected, abs=1e-6)
                paid.append(expected)
                met[n].add(key)
                left[n] = novelty
                if [t, n] in ends:
                    met[n], left[n] = set(), 0.0
        bonus.update(rollout, rewarded)
    assert any(paid)
    assert not all(paid)


def test_settings_of_coex_are_its_own_there(new_bonus) -> None:
    assert new_bonus("coex-noveld", state="cR").config.state == "cR"
    with pytest.raises(ValueError, match="alpha"):
        new_bonus("coex-noveld", alpha=-1)
    with pytest.raises(ValueError, match="state"):
        new_bonus("coex-noveld", state="xz")
