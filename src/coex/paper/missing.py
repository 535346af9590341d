"""Running what a table or figure still lacks: one run after the other, each where it was left."""

from pathlib import Path

from coex.config.presets import make_config
from coex.config.run import RunConfig
from coex.config.settings import first_difference, parse_assignments, with_settings
from coex.errors import UsageError
from coex.paper.curves import RunKey, curve_path, extract, read_curve
from coex.paper.study import Request, Row, Study
from coex.runs.directory import CONFIG, METRICS
from coex.runs.progress import Progress, count
from coex.runs.resume import FREE, is_finished, run_config
from coex.runs.stopping import StopSignal
from coex.training.loop import pick_device, train


def run_missing(study: Study, request: Request) -> int:
    """Runs or resumes what is missing; returns the exit code, which is not 0 if a signal asked to stop."""
    pick_device(request.device)
    # Every configuration is made before the first run, so that a mistake shows now and not after days.
    plan = [(key, make_run_config(row, key, request)) for row, key in planned_runs(study, request)]
    missing = [(key, config) for key, config in plan if not is_done(key, config, request)]
    say = Progress(1, 1, quiet=request.quiet).say
    say(f"{study.name}: {len(plan) - len(missing)} of {len(plan)} runs of {count(request.steps)} steps are done")
    with StopSignal() as stop:
        for number, (key, config) in enumerate(missing, start=1):
            out = request.runs / key.path
            say(f"[{number}/{len(missing)}] {key.variant} on {key.game}, seed {key.seed} → {out}")
            try:
                _run(config, out, stop, quiet=request.quiet)
            finally:
                if (out / METRICS).is_file() and (out / METRICS).stat().st_size:
                    extract(out, request.out)
            if stop.code:
                say(f"stopped; the same command goes on from here (runs to go: {len(missing) - number + 1})")
                break
    return stop.code


def planned_runs(study: Study, request: Request) -> list[tuple[Row, RunKey]]:
    """A seed of everything first, then the next; rows that share a run (at two budgets) name it once."""
    runs: dict[RunKey, Row] = {}
    for seed in range(request.seeds):
        for game in request.games:
            for row in study.our_rows(request.methods):
                runs.setdefault(RunKey(game, row.variant(game), request.steps, seed), row)
    return [(row, key) for key, row in runs.items()]


def make_run_config(row: Row, key: RunKey, request: Request) -> RunConfig:
    assignments = [f"{name}={value}" for name, value in row.settings_for(key.game).items()]
    settings = {"total_steps": key.steps, "seed": key.seed, "num_workers": request.workers, "device": request.device}
    config = make_config(key.game, row.method, parse_assignments(assignments) | settings, row.preset)
    config.views()  # says so where a game cannot give what the method needs
    return config


def is_done(key: RunKey, config: RunConfig, request: Request) -> bool:
    """Whether the run is finished, here or, by its curve, elsewhere."""
    run, curve = request.runs / key.path, curve_path(key, request.out)
    if is_finished(run, config):
        extract(run, request.out)
        return True
    return curve.exists() and read_curve(curve).is_finished


def _run(config: RunConfig, out: Path, stop: StopSignal, *, quiet: bool) -> None:
    begun = (out / CONFIG).exists()
    if begun:
        there = run_config(out)
        difference = first_difference(there.to_dict(), config.to_dict(), FREE)
        if difference:
            raise UsageError(f"{out} holds another run, where {difference}: move it away, or choose another --runs")
        config = with_settings(there, {"num_workers": config.num_workers, "device": config.device})
    progress = Progress(config.total_steps, config.env.frame_skip, quiet=quiet)
    train(config, out, progress, stop.received, stop.interrupting, resume=begun)
