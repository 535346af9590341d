"""Recorded actions give the same frames again; models learn from them side by side."""

import copy
import dataclasses

import numpy as np
import pytest
import torch

from coex.config.run import RunConfig
from coex.errors import UsageError
from coex.paper.adm_ablation import LOSSES, recording_config, train_models
from coex.paper.agents import open_agent
from coex.paper.trajectory import Trajectory, record, replay
from coex.rollouts.rollout import Rollout


def play(config: RunConfig) -> list[Rollout]:
    """The rollouts of the run that `record` records."""
    rollouts = []
    with open_agent(config) as (_, agent):
        agent.collector.reset()
        while agent.collector.steps_done < config.total_steps:
            rollouts.append(copy.deepcopy(agent.watch()[0]))
    return rollouts


def join(rollouts: list[Rollout], name: str) -> np.ndarray:
    return torch.cat([getattr(rollout, name) for rollout in rollouts]).numpy()


@pytest.fixture(scope="module")
def trajectory() -> Trajectory:
    recorded = record(recording_config("Freeway", 400), lambda: False, lambda step: None)
    assert recorded is not None
    return recorded


@pytest.mark.slow
def test_what_is_recorded_is_what_the_agent_does(trajectory):
    rollouts = play(recording_config("Freeway", 400))
    np.testing.assert_array_equal(trajectory.actions, join(rollouts, "actions"))
    np.testing.assert_allclose(trajectory.log_probs, join(rollouts, "log_probs"), rtol=1e-3)


@pytest.mark.slow
def test_a_replay_shows_every_frame_again():
    config = dataclasses.replace(recording_config("Qbert", 1_200), num_envs=2)
    originals = play(config)
    recorded = Trajectory(
        "Qbert", config.seed, 6, join(originals, "actions").astype(np.uint8), join(originals, "log_probs").astype("f2")
    )
    for original, repeated in zip(originals, replay(recorded, {"ram": (128,)}, 5), strict=True):
        assert torch.equal(repeated.actions, original.actions)
        assert torch.equal(repeated.rewards, original.rewards)
        assert torch.equal(repeated.ended, original.ended)
        for view in ("policy", "ram"):
            assert torch.equal(repeated.views[view], original.views[view])
            assert torch.equal(repeated.next_view(view), original.next_view(view))
    assert join(originals, "terminated").any()  # across the ends of episodes too


def test_a_file_holds_all_of_it(trajectory, tmp_path):
    trajectory.save(tmp_path / "deep" / "play.npz")
    loaded = Trajectory.load(tmp_path / "deep" / "play.npz")
    assert (loaded.game, loaded.seed, loaded.num_actions, loaded.num_transitions) == ("Freeway", 0, 3, 400)
    assert loaded.actions.shape == (25, 16)
    np.testing.assert_array_equal(loaded.actions, trajectory.actions)
    np.testing.assert_array_equal(loaded.log_probs, trajectory.log_probs)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "play.npz"
    for content in (b"", b"PK\x03\x04 nothing", b"text"):
        path.write_bytes(content)
        with pytest.raises(UsageError, match="is not a trajectory"):
            Trajectory.load(path)
    np.savez(path, game=np.array([{"an": "object"}]), seed=0, num_actions=3, actions=0, log_probs=0)
    with pytest.raises(UsageError, match="is not a trajectory"):  # it is not unpickled
        Trajectory.load(path)


@pytest.mark.slow
def test_recording_can_be_stopped():
    assert record(recording_config("Freeway", 800), lambda: True, lambda step: None) is None


def test_the_losses_are_those_of_appendix_e():
    terms = {name: (c.action_loss, c.cell_loss, c.entropy_loss) for name, c in LOSSES.items()}
    assert terms == {
        "adm-action": (True, False, False),
        "adm-action-cell": (True, True, False),
        "adm-action-entropy": (True, False, True),
        "adm-all": (True, True, True),
        "adm-ours": (True, True, True),
    }
    for name, config in LOSSES.items():
        additions = (
            config.propensity_clip,
            config.min_policy_entropy,
            config.changed_cells,
            config.contrast,
            config.leak,
        )
        assert additions == ((5.0, 0.2, True, 300.0, 0.1) if name == "adm-ours" else (0.0, 0.0, False, 0.0, 0.0))


@pytest.mark.slow
def test_models_side_by_side_learn_as_they_do_alone(trajectory):
    losses = {name: LOSSES[name] for name in ("adm-action", "adm-all")}
    device = torch.device("cpu")
    together = train_models(trajectory, losses, 240, 3, device)
    alone = train_models(trajectory, {"adm-all": LOSSES["adm-all"]}, 240, 3, device)
    assert [point["step"] for point in together["adm-all"]] == [80, 160, 240]

    def figures(points):
        return [(point["adm/distance"], point["adm/accuracy"]) for point in points]

    assert figures(together["adm-all"]) == figures(alone["adm-all"])
    assert together["adm-action"][0]["adm/distance"] == together["adm-all"][0]["adm/distance"]  # the same beginning
    assert figures(together["adm-action"]) != figures(together["adm-all"])
    assert train_models(trajectory, losses, 240, 3, device, should_stop=lambda: True) == {}
