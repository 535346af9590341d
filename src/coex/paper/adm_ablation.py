"""Figure 8 (fig:a2c_exp_ablation_adm_fixed): the ADM's losses, compared on the same recorded play (appendix E)."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from coex.analysis.localisation import evaluation_views
from coex.config.bonuses import PLAIN, ADMConfig
from coex.config.presets import make_config
from coex.config.run import RunConfig
from coex.envs import ram
from coex.errors import UsageError
from coex.method.adm import AttentiveDynamicsModel
from coex.method.locator import ADMLocator
from coex.paper.curves import MAX_POINTS, Point, RunKey, curve_path, write_curve
from coex.paper.figures import draw_curves
from coex.paper.study import Request, Row, Study
from coex.paper.trajectory import Trajectory, record, replay
from coex.results.published import A2C_STEPS
from coex.rollouts.rollout import Rollout
from coex.runs.progress import Progress, number
from coex.runs.stopping import StopSignal
from coex.training.evidence import location_errors
from coex.training.loop import pick_device

_ROLLOUT_STEPS = 5  # A2C's: the model is trained as it is on-policy

LOSSES = {
    "adm-action": dataclasses.replace(PLAIN, cell_loss=False, entropy_loss=False),
    "adm-action-cell": dataclasses.replace(PLAIN, entropy_loss=False),
    "adm-action-entropy": dataclasses.replace(PLAIN, cell_loss=False),
    "adm-all": PLAIN,
    "adm-ours": ADMConfig(),  # and what we use, which is not in the paper
}


def run(study: Study, request: Request) -> int:
    """Records what is missing, then trains the models of one seed side by side on one replay."""
    for game in request.games:
        if game not in ram.RAM_GAMES:
            raise UsageError(f"{game} has no RAM truth; these games have it: {', '.join(ram.RAM_GAMES)}")
    device = pick_device(request.device)
    progress = Progress(request.steps, 4, quiet=request.quiet)
    with StopSignal() as stop:
        for game in request.games:
            missing = _missing(study, game, request)
            trajectory = _recorded(game, request, progress, stop.received) if missing else None
            for seed, losses in missing.items():
                if trajectory is None or stop.code:
                    break
                progress.say(f"{game}, seed {seed}: {', '.join(losses)}")
                show = _Tenths(progress, request.steps)
                curves = train_models(trajectory, losses, request.steps, seed, device, show, stop.received)
                for loss, points in curves.items():
                    write_curve(_path(game, loss, seed, request), points)
        if stop.code:
            progress.say("stopped; the same command goes on with the seeds that are missing")
    return stop.code


def train_models(
    trajectory: Trajectory,
    losses: Mapping[str, ADMConfig],
    steps: int,
    seed: int,
    device: torch.device,
    on_points: Callable[[int, Mapping[str, Point]], None] = lambda step, points: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> dict[str, list[Point]]:
    """Each loss's curve of the distance, always on transitions that its model is only then trained on.

    All models of a seed begin with the same weights and see the same frames. Nothing if it was stopped.
    """
    models = {name: _Model(trajectory, config, seed, device) for name, config in losses.items()}
    every, started, step = max(steps // MAX_POINTS, 1), time.monotonic(), 0
    curves: dict[str, list[Point]] = {name: [] for name in losses}
    with contextlib.closing(replay(trajectory, evaluation_views(ADMConfig()), _ROLLOUT_STEPS)) as rollouts:
        for rollout in rollouts:
            if should_stop():
                return {}
            for model in models.values():
                model.learn(rollout)
            before, step = step, step + rollout.num_transitions
            if step // every > before // every or step >= steps:
                points = {name: {"step": step} | model.figures() for name, model in models.items()}
                for name, point in points.items():
                    curves[name].append(point | {"seconds": round(time.monotonic() - started, 1)})
                on_points(step, points)
            if step >= steps:
                break
    return curves


class _Model:
    """One model, and what it has shown since it was last asked."""

    def __init__(self, trajectory: Trajectory, config: ADMConfig, seed: int, device: torch.device) -> None:
        torch.manual_seed(seed)
        self._game = trajectory.game
        self._locator = ADMLocator(AttentiveDynamicsModel(trajectory.num_actions, config), device)
        self._errors: list[NDArray[np.float64]] = []
        self._accuracies: list[float] = []

    def learn(self, rollout: Rollout) -> None:
        located = self._locator.locate(rollout)
        self._errors.append(location_errors(self._game, located.cells, rollout.next_view("ram").numpy()))
        self._accuracies.append(self._locator.fit(rollout, located.features)["adm/accuracy"])

    def figures(self) -> Point:
        errors, accuracies = np.concatenate(self._errors), self._accuracies
        self._errors, self._accuracies = [], []
        distance = float(errors.mean()) if len(errors) else None  # the player may not have been on the screen
        return {"adm/distance": distance, "adm/accuracy": float(np.mean(accuracies))}


def recording_config(game: str, steps: int) -> RunConfig:
    """The run whose first steps are recorded: the beginning of one at the paper's budget."""
    return make_config(game, "a2c+coex-ram", {"total_steps": steps, "schedule_steps": A2C_STEPS}, "paper")


def _recorded(game: str, request: Request, progress: Progress, should_stop: Callable[[], bool]) -> Trajectory | None:
    path = request.out / "trajectories" / f"{game}.npz"
    if path.exists():
        trajectory = Trajectory.load(path)
        if trajectory.game == game and trajectory.num_transitions >= request.steps:
            return trajectory
    progress.say(f"{game}: recording {request.steps:,} steps of A2C+CoEX+RAM → {path}")
    recorded = record(recording_config(game, request.steps), should_stop, _Tenths(progress, request.steps))
    if recorded:
        recorded.save(path)
    return recorded


def _missing(study: Study, game: str, request: Request) -> dict[int, dict[str, ADMConfig]]:
    """The losses that lack a curve, for each seed that lacks one."""
    losses = {row.method: LOSSES[row.method] for row in study.our_rows(request.methods)}
    missing = {
        seed: {loss: config for loss, config in losses.items() if not _path(game, loss, seed, request).exists()}
        for seed in range(request.seeds)
    }
    return {seed: lacking for seed, lacking in missing.items() if lacking}


def _path(game: str, loss: str, seed: int, request: Request) -> Path:
    return curve_path(RunKey(game, loss, request.steps, seed), request.out)


class _Tenths:
    """Says how far it has come, ten times in all."""

    def __init__(self, progress: Progress, steps: int) -> None:
        self._progress, self._steps, self._said = progress, steps, 0

    def __call__(self, step: int, points: Mapping[str, Point] | None = None) -> None:
        if step * 10 // self._steps > self._said:
            self._said = step * 10 // self._steps
            distances = {name: point["adm/distance"] for name, point in (points or {}).items()}
            texts = [f"{name} {number(distance)} cells off" for name, distance in distances.items()]
            self._progress.say(" · ".join([f"  {step:,} steps", *texts]))


STUDY = Study(
    "adm-ablation",
    "Figure 8: the ADM under different losses, trained on the same recorded play",
    ("MontezumaRevenge", "Freeway"),
    (
        Row("action", "adm-action"),
        Row("action, cell", "adm-action-cell"),
        Row("action, entropy", "adm-action-entropy"),
        Row("action, cell, entropy", "adm-all"),
        Row("all, with what we add", "adm-ours"),
    ),
    partial(draw_curves, metric="adm/distance", ylabel="distance, cells of the 9×9 grid"),
    run,
    steps=100_000,
    seeds=5,
)
