"""The explorer against the bonus of `coex train`, on rollouts of its own collector, and its promises one by one."""

import re
import runpy
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import coex  # before torch: `coex` sets how its threads wait before it is loaded
from coex import Explorer, UsageError
from coex.bonuses import BonusContext
from coex.config.presets import BONUSES, load_bonus_class, make_config
from coex.config.run import RunConfig
from coex.core.threads import one_thread
from coex.rollouts.rollout import Transitions
from coex.runs.checkpoints.store import write_checkpoint
from coex.runs.checkpoints.tree import take_snapshot
from coex.training.agent import Agent, make_env, split_seed
from tests.conftest import make_rollout

import torch  # isort: skip

SMALL = {"num_envs": 3, "num_workers": 0}
XY = {"adm": {"found_by": 0}}


def make_agent(config: RunConfig) -> Agent:
    env_seed, *seeds = split_seed(config.seed)
    agent = Agent(config, make_env(config, env_seed), seeds, torch.device("cpu"))
    agent.begin()
    return agent


def feed(explorer: Explorer, rollout: Transitions, *, begin: bool = False) -> None:
    """Gives a recorded rollout to an explorer step by step, as a trainer would."""
    views = {name: rollout.views[name].numpy() for name in explorer.views}
    if begin:
        explorer.begin({name: view[0] for name, view in views.items()})
    for t, actions in enumerate(rollout.actions.numpy()):
        first = {name: view[t + 1] for name, view in views.items()}
        reached = {name: rollout.next_view(name)[t].numpy() for name in views}
        ended = np.zeros(len(actions), bool)
        ended[rollout.final_index[rollout.final_index[:, 0] == t, 1].numpy()] = True
        explorer.add(
            actions,
            reached,
            ended,
            scores=rollout.scores[t].numpy(),
            first_frames=first if ended.any() else None,
            log_probs=rollout.log_probs[t].numpy(),
        )


def assert_same_tree(ours: object, theirs: object) -> None:
    if isinstance(theirs, dict):
        assert isinstance(ours, dict)
        assert ours.keys() == theirs.keys()
        for key in theirs:
            assert_same_tree(ours[key], theirs[key])
    elif isinstance(theirs, list | tuple):
        for one, other in zip(ours, theirs, strict=True):
            assert_same_tree(one, other)
    elif isinstance(theirs, np.ndarray | torch.Tensor):
        assert np.array_equal(np.asarray(ours), np.asarray(theirs))
    else:
        assert ours == theirs


@pytest.mark.parametrize(
    ("game", "method", "settings"),
    [
        # Two rollouts each of one minibatch and of several; episodes that end by the game and by the clock.
        ("montezuma", "a2c+coex", {"env": {"stagger": 40}}),
        ("seaquest", "ppo+coex", {"env": {"stagger": 40}, "learner": {"num_steps": 64, "num_minibatches": 2}}),
        ("venture", "a2c+simhash", {"env": {"stagger": 40}}),
        ("montezuma", "a2c+coex-ram", {"env": {"stagger": 40}}),
        ("gym:MiniGrid-Empty-5x5-v0", "a2c+coex", {"env": {"stagger": 9}}),
    ],
)
def test_numbers_are_those_of_coex_train(game: str, method: str, settings: dict) -> None:
    config = make_config(game, method, SMALL | settings)
    agent = make_agent(config)
    assert agent.bonus is not None
    env = agent._env
    explorer = Explorer(env.num_actions, env.num_envs, method.partition("+")[2], config.bonus, game=config.game)
    explorer.method.load_state_dict(agent.bonus.state_dict())  # the run's own draw of the first weights
    ends = 0
    for index in range(4 if config.learner.num_steps < 64 else 2):
        rollout = agent.collector.collect(agent._policy)
        ends += len(rollout.final_index)
        with one_thread():  # as the run's own iteration
            rewarded = agent.bonus.reward(rollout)
            theirs = agent.bonus.update(rollout, rewarded)
        feed(explorer, rollout, begin=index == 0)
        assert np.array_equal(explorer.bonus(), rewarded.bonus.numpy())
        assert_same_tree(explorer.states(), dict(rewarded.states))
        ours = explorer.update()
        assert {name: ours[name] for name in theirs} == theirs
        assert_same_tree(explorer.method.state_dict(), agent.bonus.state_dict())
    assert ends
    env.close()


@pytest.mark.parametrize("bonus", BONUSES)
def test_every_bonus_of_the_package_sits_in_it(bonus: str, tmp_path: Path) -> None:
    """The same numbers as without it, and after being saved and loaded."""
    game = "Freeway" if bonus == "coex-ram" else ""
    explorer = Explorer(6, 3, bonus, game=game, seed=1)
    context = BonusContext(game, 6, np.random.SeedSequence(1), torch.device("cpu"))
    bare = load_bonus_class(bonus)(explorer.config, context)
    bare.load_state_dict(explorer.method.state_dict())
    for seed in range(3):
        rollout = make_rollout(seed)
        bare.forget_episodes()
        feed(explorer, rollout, begin=True)
        with one_thread():  # as the explorer does
            rewarded = bare.reward(rollout)
            theirs = bare.update(rollout, rewarded)
        assert np.array_equal(explorer.bonus(), rewarded.bonus.numpy())
        ours = explorer.update()
        assert {name: ours[name] for name in theirs} == theirs
        explorer.save(tmp_path / bonus)
        explorer = Explorer.load(tmp_path / bonus)


def own_bonus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    page = Path(__file__).parent.parent / "docs" / "own-bonus.md"
    (tmp_path / "myexplored.py").write_text(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)[0])
    monkeypatch.syspath_prepend(tmp_path)
    return "myexplored:RoomBonus"


@pytest.mark.parametrize("kind", ["coex", "simhash", "own"])
def test_a_loaded_explorer_goes_on_identically(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bonus = own_bonus(tmp_path, monkeypatch) if kind == "own" else kind
    original = Explorer(6, 3, bonus, seed=3)
    for seed in range(3):
        feed(original, make_rollout(seed), begin=seed == 0)
        original.update()
    original.save(tmp_path / "saved")
    assert not [path for path in (tmp_path / "saved").iterdir() if path.suffix not in (".json", ".npz", ".safetensors")]
    loaded = Explorer.load(tmp_path / "saved")
    assert loaded.steps_done == original.steps_done == 45
    for seed in range(3, 6):
        for explorer in (original, loaded):
            feed(explorer, make_rollout(seed))
        assert np.array_equal(original.bonus(), loaded.bonus())
        assert original.update() == loaded.update()
    assert_same_tree(loaded.method.state_dict(), original.method.state_dict())


def test_saving_replaces_what_was_saved_and_nothing_else(tmp_path: Path) -> None:
    explorer = Explorer(6, 3, "simhash")
    explorer.begin(np.zeros((3, 50, 50, 3), np.uint8))
    explorer.save(tmp_path / "a")
    explorer.add([0, 1, 2], np.zeros((3, 50, 50, 3), np.uint8), [False] * 3, rewards=[0.0] * 3)
    explorer.update()
    explorer.save(tmp_path / "a")
    assert Explorer.load(tmp_path / "a").steps_done == 3
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    (tmp_path / "mine").mkdir()
    with pytest.raises(UsageError, match="something else"):
        explorer.save(tmp_path / "mine")
    with pytest.raises(UsageError, match="no explorer"):
        Explorer.load(tmp_path / "mine")
    (tmp_path / "a" / "state.json").write_text("{}")
    with pytest.raises(coex.CoexError, match="damaged"):
        Explorer.load(tmp_path / "a")


def test_a_rollout_that_was_not_finished_is_not_saved(tmp_path: Path) -> None:
    explorer = Explorer(6, 3, "simhash")
    feed(explorer, make_rollout(0), begin=True)
    explorer.save(tmp_path / "a")
    loaded = Explorer.load(tmp_path / "a")
    assert loaded.method.snapshot() == {"counts/states": 0}
    with pytest.raises(UsageError, match="begin"):
        feed(loaded, make_rollout(1))


def corridor(length: int, place: int) -> np.ndarray:
    """(84, 84, 3) a walker in a corridor."""
    picture = np.zeros((84, 84, 3), np.uint8)
    picture[40:48, place * 84 // length : (place + 1) * 84 // length] = 255
    return picture


def test_rows_that_no_action_led_to_are_neither_counted_nor_learned_from() -> None:
    """Gymnasium's two ways of beginning the next episode, on the same games: the same counts, rooms and bonuses."""
    config = {"state": "c", "clusters": {"threshold": 0.05}}
    same_step, next_step = (Explorer(2, 1, config=config, seed=1) for _ in range(2))
    generator = np.random.default_rng(0)
    for explorer in (same_step, next_step):
        explorer.begin(corridor(6, 0)[None])
    found: dict[str, list[float]] = {"same": [], "next": []}
    for _ in range(6):
        place = 0
        for _ in range(12):
            action = int(generator.integers(2))
            place = max(0, min(5, place + 2 * action - 1))
            ended = place == 5
            reached, first = corridor(6, place)[None], corridor(6, 0)[None]
            same_step.add([action], reached, [ended], rewards=[0.0], first_frames=first)
            next_step.add([action], reached, [ended], rewards=[0.0])
            if ended:
                next_step.add([1], first, [False], rewards=[0.0], valid=[False])
                place = 0
        found["same"] += same_step.bonus()[:, 0].tolist()
        bonus = next_step.bonus()[:, 0]
        found["next"] += bonus[bonus > 0].tolist()
        for explorer in (same_step, next_step):
            explorer.update()
            explorer.begin(corridor(6, 0)[None])
    assert found["same"] == found["next"]
    assert len(same_step.method.encoder.rooms) == 6
    assert len(found["same"]) == same_step.steps_done == next_step.steps_done
    assert_same_tree(next_step.method.counts.state_dict(), same_step.method.counts.state_dict())
    assert_same_tree(next_step.method.encoder.rooms.state_dict(), same_step.method.encoder.rooms.state_dict())


def test_attention_is_not_smoothed_over_rows_that_are_not_valid() -> None:
    """Places are those of Gymnasium's other way of beginning episodes, as the row is a boundary as well."""
    generator = np.random.default_rng(0)
    same_step, next_step = (Explorer(6, 1, config=XY, seed=0) for _ in range(2))
    pictures = generator.integers(0, 255, (60, 1, 40, 40, 3)).astype(np.uint8)
    for explorer in (same_step, next_step):
        explorer.begin(pictures[0])
    valid = []
    for t in range(1, 59, 2):
        step, ended = ([0], pictures[t], [t % 3 == 0]), t % 3 == 0
        same_step.add(*step, rewards=[0], first_frames=pictures[t + 1] if ended else None)
        next_step.add(*step, rewards=[0])
        valid += [True] + [False] * ended
        if ended:
            next_step.add([0], pictures[t + 1], [False], rewards=[0], valid=[False])
    ours, theirs = next_step.states(), same_step.states()
    for name in ("x", "y"):
        assert len(set(theirs[name].ravel())) > 1
        assert ours[name][valid].tolist() == theirs[name].tolist()


def test_the_model_does_not_learn_from_rows_that_are_not_valid() -> None:
    """What their actions and chances were changes nothing."""
    losses = []
    for action, chance in ((0, -0.1), (5, -9.0)):
        explorer = Explorer(6, 2, config=XY, seed=0)
        frames = np.random.default_rng(0).integers(0, 255, (4, 2, 40, 40, 3)).astype(np.uint8)
        explorer.begin(frames[0])
        explorer.add([1, 2], frames[1], [True, False], rewards=[0, 0], log_probs=[-1, -1])
        explorer.add(
            [action, 3], frames[2], [False, False], rewards=[9, 0], log_probs=[chance, -1], valid=[False, True]
        )
        explorer.add([2, 3], frames[3], [False, False], rewards=[1, 0], log_probs=[-1, -2])
        assert (explorer.bonus()[:, 0] > 0).tolist() == [True, False, True]
        assert explorer.states()["R"][2].tolist() == [1, 0]  # the new episode's score begins at 0
        metrics = explorer.update()
        losses.append((metrics["adm/loss"], explorer.method.state_dict()["locator"]["model"]))
    assert losses[0][0] == losses[1][0]
    assert_same_tree(losses[0][1], losses[1][1])


def test_rewards_add_up_to_scores() -> None:
    explorer = Explorer(3, 2, config={"state": "R"})
    explorer.begin({})
    for rewards, ended in (([1.0, 0.0], [False, False]), ([2.5, 1.0], [True, False]), ([4.0, 1.0], [False, False])):
        explorer.add([0, 0], {}, ended, rewards=rewards, first_frames={})
    assert explorer.states()["R"].tolist() == [[1, 0], [3, 1], [4, 2]]


def test_without_log_probs_all_actions_count_as_equally_likely() -> None:
    one, other = (Explorer(4, 3, seed=0) for _ in range(2))
    rollout = make_rollout(0, actions=4)
    rollout.log_probs[...] = -np.log(4)
    feed(one, rollout, begin=True)
    feed(other, rollout, begin=True)
    other._steps = [step._replace(log_probs=None) for step in other._steps]
    assert one.update() == other.update()


def test_locating_counts_and_changes_nothing() -> None:
    explorer = Explorer(6, 3)
    feed(explorer, make_rollout(0), begin=True)
    explorer.update()
    before = explorer.method.state_dict()
    cells, attention = explorer.locate(np.random.default_rng(0).integers(0, 255, (5, 210, 160, 3)).astype(np.uint8))
    assert cells.shape == (5, 2)
    assert attention.shape == (5, 9, 9)
    np.testing.assert_allclose(attention.sum((1, 2)), 1, rtol=1e-5)
    assert all(attention[n, y, x] == attention[n].max() for n, (x, y) in enumerate(cells))
    assert_same_tree(explorer.method.state_dict(), before)
    with pytest.raises(UsageError, match="no place"):
        Explorer(6, 3, "simhash").locate(np.zeros((1, 50, 50, 3), np.uint8))


def test_nobodys_random_numbers_are_moved() -> None:
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    one = Explorer(6, 3, seed=1)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(6)
    assert_same_tree(Explorer(6, 3, seed=1).method.state_dict(), one.method.state_dict())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bonus": "cuex"}, "closest: coex"),
        ({"config": {"stat": "xy"}}, "closest: state"),
        ({"config": 3}, "config takes"),
        ({"config": coex.CoexConfig}, "config takes"),
        ({"bonus": "simhash", "config": coex.CoexConfig()}, "config takes SimHashConfig"),
        ({"bonus": None}, "unknown bonus None"),
        ({"num_envs": 0}, "num_envs must be at least 1"),
        ({"num_actions": 4.0}, "num_actions takes a whole number"),
        ({"num_actions": gymnasium.spaces.Discrete(4)}, "num_actions takes a whole number"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"device": "toaster"}, "takes cpu"),
        ({"bonus": "coex-ram"}, "RAM truth"),
    ],
)
def test_bad_settings_are_said(arguments: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Explorer(**({"num_actions": 4, "num_envs": 2} | arguments))


FRAMES = np.zeros((2, 20, 20, 3), np.uint8)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"actions": [0]}, "actions must have the shape"),
        ({"actions": [0, 4]}, "from 0 to 3"),
        ({"frames": FRAMES[:1]}, "frames are"),
        ({"frames": FRAMES.astype(float)}, "frames are"),
        ({"frames": [FRAMES[0], FRAMES[1, :9]]}, "all of one size"),
        ({"frames": FRAMES[:, :0]}, "frames are"),
        ({"frames": {"rgb160": FRAMES}}, "looks at rgb160"),
        ({"frames": {"rgb84": FRAMES}}, "rgb160.* not among the frames"),
        # Pictures from 0 to 1 would all be black as whole numbers.
        ({"frames": {"rgb160": np.zeros((2, 160, 160, 3)), "rgb84": np.zeros((2, 84, 84, 3))}}, "float64"),
        ({"actions": [0, 1.5]}, "actions must be whole numbers"),
        ({"actions": [[0], [1, 2]]}, "actions must be an array"),
        ({"actions": ["up", "down"]}, "actions must be finite numbers"),
        ({"ended": ["False", "False"]}, "ended must be finite numbers"),
        ({"ended": [0, 0.5]}, "ended must be True and False"),
        ({"rewards": [0, np.nan]}, "rewards must be finite"),
        ({"log_probs": [0, -np.inf]}, "log_probs must be finite"),
        ({"log_probs": torch.zeros(2, requires_grad=True)}, "log_probs must be an array.*detach"),
        ({"rewards": None}, "either rewards or scores"),
        ({"scores": [0, 0]}, "either rewards or scores"),
        ({"valid": [True, False]}, "first_frames are needed"),
    ],
)
def test_bad_steps_are_said(step: dict, message: str) -> None:
    explorer = Explorer(4, 2)
    explorer.begin(FRAMES)
    with pytest.raises(UsageError, match=message):
        explorer.add(**({"actions": [0, 1], "frames": FRAMES, "ended": [False, False], "rewards": [3, 4]} | step))
    explorer.add([0, 1], FRAMES, [False, False], rewards=[1, 2])  # nothing of the step that was refused is left
    assert explorer.states()["R"].tolist() == [[1, 2]]


def test_pictures_and_rewards_that_do_not_fit_are_said() -> None:
    explorer = Explorer(4, 2)
    for frames in (None, {}, FRAMES[0], FRAMES[:0]):
        with pytest.raises(UsageError):
            explorer.locate(frames)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="finite"):
        explorer.reward_unit([1.0, np.inf])
    with pytest.raises(UsageError, match="finite"):
        explorer.reward_unit("many")  # type: ignore[arg-type]
    assert explorer.reward_unit([]) == 1.0
    assert explorer.reward_unit([[-3.0, 2.0]]) == 3.0


def test_numpys_numbers_are_numbers(tmp_path: Path) -> None:
    """`Discrete.n`, which most people have at hand, is one, and JSON does not know them."""
    space = gymnasium.spaces.Discrete(4)
    explorer = Explorer(space.n, np.int32(2), "simhash", seed=np.uint8(3))
    explorer.begin(FRAMES)
    explorer.save(tmp_path / "a")
    loaded = Explorer.load(tmp_path / "a")
    assert (loaded.num_actions, loaded.num_envs) == (4, 2)


def test_a_kill_while_saving_leaves_an_explorer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before whichever of its renames: what was saved last or before can be loaded, and saved over."""
    explorer = Explorer(4, 2, "simhash")
    explorer.begin(FRAMES)
    explorer.save(tmp_path / "a")
    rename = Path.rename

    def save_until(call: int) -> None:
        calls = iter(range(1, 9))

        def killed(self: Path, target: Path) -> Path:
            if next(calls) == call:
                raise KeyboardInterrupt
            return rename(self, target)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "rename", killed)
            with pytest.raises(KeyboardInterrupt):
                explorer.save(tmp_path / "a")

    for call in (1, 2, 3):
        save_until(call)
        assert Explorer.load(tmp_path / "a").num_envs == 2
    save_until(3)
    assert not (tmp_path / "a").exists()  # the old one is out of its place, and the new one not yet in it
    save_until(1)
    assert Explorer.load(tmp_path / "a").num_envs == 2
    explorer.save(tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_checkpoint_of_something_else_is_no_explorer(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "run", 0, {"game": "Pong"}, {}, take_snapshot({}), scratch_name=".tmp")
    with pytest.raises(UsageError, match="no explorer"):
        Explorer.load(tmp_path / "run")
    with pytest.raises(UsageError, match="something else"):
        Explorer(4, 2, "simhash").save("")


def test_the_order_of_calls_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = ([0, 1], FRAMES, [True, False])
    explorer = Explorer(4, 2, own_bonus(tmp_path, monkeypatch))
    with pytest.raises(UsageError, match="begin"):
        explorer.add(*step, rewards=[0, 0])
    explorer.begin(FRAMES)
    with pytest.raises(UsageError, match="nothing to reward"):
        explorer.bonus()
    explorer.add(*step, rewards=[0, 0])
    with pytest.raises(UsageError, match="first_frames are needed"):
        explorer.add(*step, rewards=[0, 0])
    with pytest.raises(UsageError, match="SAME_STEP"):  # a bonus that does not know of rows to leave out
        explorer.add(*step, rewards=[0, 0], valid=[False, True])
    first = explorer.bonus()
    assert np.array_equal(explorer.bonus(), first)  # counted once
    with pytest.raises(UsageError, match="update"):
        explorer.add(*step, rewards=[0, 0])


def test_a_long_rollout_keeps_every_picture() -> None:
    """Buffers grow; stacks of frames are pushed onto, and begin anew with an episode."""
    explorer = Explorer(4, 1, "simhash")
    explorer.views = {"stack": (8, 8, 4)}
    explorer._rows = {"stack": np.zeros((2, 1, 8, 8, 4), np.uint8)}

    def shade(level: int) -> np.ndarray:
        return np.full((1, 8, 8, 3), level, np.uint8)

    explorer.begin(shade(1))
    for level in range(2, 40):
        explorer.add([0], shade(level), [level == 20], rewards=[0], first_frames=shade(200))
    rollout = explorer._rollout()
    stacks = rollout.views["stack"][:, 0, 0, 0].tolist()
    assert stacks[3] == [1, 2, 3, 4]
    assert stacks[19] == [0, 0, 0, 200]
    assert stacks[20] == [0, 0, 200, 21]
    assert rollout.next_view("stack")[18, 0, 0, 0].tolist() == [17, 18, 19, 20]
    assert len(stacks) == 39


def test_the_pages_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(__file__).parent.parent / "docs" / "own-trainer.md"
    *_, explorer, envs = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(explorer, str(page), "exec"), names)
    assert names["bonus"].shape == (5, 2)
    assert names["explorer"].steps_done == 10
    exec(compile(envs.replace("num_envs=2", "num_envs=2, num_workers=0"), str(page), "exec"), names)
    assert names["observations"].shape == (2, 4, 84, 84)


def test_the_single_file_ppo_runs_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parent.parent / "examples" / "ppo_with_explorer.py"
    names = runpy.run_path(str(path), run_name="example")
    assert len(re.findall(r"^.*\[coex\]", path.read_text(), re.MULTILINE)) <= 17  # with the docstring's
    names["main"].__globals__.update(NUM_ENVS=2, NUM_STEPS=16, NUM_EPOCHS=1)
    names["main"](["--game", "gym:MiniGrid-Empty-5x5-v0", "--steps", "64", "--workers", "0"])
    assert "step 64: " in capsys.readouterr().out
