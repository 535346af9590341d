"""RLlib's PPO with CoEX's bonus, as the first piece of the learner's connector pipeline.

python examples/rllib_with_explorer.py --steps 500000
"""

import argparse
from typing import Any

import gymnasium
import minigrid
import numpy as np
from minigrid.wrappers import ImgObsWrapper, RGBImgObsWrapper
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.tune.registry import register_env

import coex

GAME = "MiniGrid-DoorKey-8x8-v0"
NUM_ENVS, NUM_STEPS = 8, 128


def make_env(_: Any) -> gymnasium.Env[Any, Any]:
    gymnasium.register_envs(minigrid)
    env = ImgObsWrapper(RGBImgObsWrapper(gymnasium.make(GAME, highlight=False), tile_size=8))  # 64×64 pixels
    space = gymnasium.spaces.Box(0.0, 1.0, env.observation_space.shape, np.float32)
    return gymnasium.wrappers.TransformObservation(env, lambda picture: np.float32(picture / 255.0), space)


class AddBonus(ConnectorV2):
    """Adds the bonus to the episodes' rewards.

    Pieces of episodes come in, of any lengths: for the explorer they are one environment's, one after the other.
    """

    def __init__(self, explorer: coex.Explorer, bonus_weight: float) -> None:
        super().__init__()
        self.explorer, self.bonus_weight = explorer, bonus_weight
        self.metrics: dict[str, float] = {}
        self._scores: dict[str, float] = {}  # before their pieces to come, of episodes that go on

    def __call__(self, *, episodes: list[SingleAgentEpisode], batch: Any, **kwargs: Any) -> Any:
        shown = [np.asarray(episode.get_observations()) for episode in episodes]  # each (T + 1, H, W, 3)
        pictures = [np.round(255 * part).astype(np.uint8) for part in shown]
        scores: dict[str, float] = {}
        self.explorer.begin(pictures[0][:1])
        for piece, episode in enumerate(episodes):
            totals = self._scores.get(episode.id_, 0.0) + np.cumsum(episode.get_rewards())
            following = pictures[(piece + 1) % len(episodes)][:1]
            actions, log_probs = episode.get_actions(), episode.get_extra_model_outputs("action_logp")
            for t in range(len(episode)):
                self.explorer.add(
                    actions[t : t + 1],
                    pictures[piece][t + 1 : t + 2],
                    [t == len(episode) - 1],
                    scores=totals[t : t + 1],
                    first_frames=following,
                    log_probs=log_probs[t : t + 1],
                )
            if not episode.is_done:
                scores[episode.id_] = totals[-1]
        self._scores = scores
        bonus = self.bonus_weight * self.explorer.ready * self.explorer.bonus()[:, 0]
        ends = np.cumsum([len(episode) for episode in episodes])
        for episode, part in zip(episodes, np.split(bonus, ends[:-1]), strict=True):
            episode.set_rewards(new_data=np.asarray(episode.get_rewards()) + part)
        self.metrics = self.explorer.update()
        return batch


class LearnerWithExplorer(PPOTorchLearner):
    """Has the bonus added before anything else looks at the episodes."""

    def build(self) -> None:
        super().build()
        settings = self.config.learner_config_dict
        explorer = coex.Explorer(settings["num_actions"], num_envs=1, seed=settings["seed"])
        self.piece = AddBonus(explorer, settings["bonus_weight"])
        self._learner_connector.prepend(self.piece)


def main(arguments: list[str] | None = None) -> AddBonus:
    """Trains, and returns the piece with the explorer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=500_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bonus-weight", type=float, default=0.1)
    options = parser.parse_args(arguments)

    register_env("pictures", make_env)
    num_actions = int(make_env(None).action_space.n)
    config = (
        PPOConfig()
        .environment("pictures")
        .env_runners(num_env_runners=0, num_envs_per_env_runner=NUM_ENVS, rollout_fragment_length=NUM_STEPS)
        .learners(
            num_learners=0,
            learner_class=LearnerWithExplorer,
            learner_config_dict={
                "num_actions": num_actions,
                "seed": options.seed,
                "bonus_weight": options.bonus_weight,
            },
        )
        .training(
            train_batch_size_per_learner=NUM_ENVS * NUM_STEPS,
            minibatch_size=256,
            num_epochs=4,
            lr=2.5e-4,
            entropy_coeff=0.01,
            grad_clip=0.5,
        )
        .rl_module(model_config=DefaultModelConfig(conv_filters=[[32, 8, 4], [64, 4, 2], [64, 3, 2]]))
        .debugging(seed=options.seed)
    )
    algorithm = config.build_algo()
    piece = algorithm.learner_group._learner.piece  # the learner is in this process
    for update in range(max(1, options.steps // (NUM_STEPS * NUM_ENVS))):
        result = algorithm.train()
        runners = result["env_runners"]
        print(
            f"step {(update + 1) * NUM_STEPS * NUM_ENVS}: return {runners.get('episode_return_mean', 0):.2f}, "
            f"{piece.metrics['counts/states']} states, "
            f"the model guesses {piece.metrics['adm/accuracy']:.0%} of the actions",
            flush=True,
        )
    algorithm.stop()
    return piece


if __name__ == "__main__":
    main()
