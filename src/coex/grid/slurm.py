"""A grid as a SLURM job array: one task a run."""

import math
import shlex
import sys

from coex.errors import UsageError
from coex.grid.attempts import is_finished
from coex.grid.plan import RECORDS, Grid

# `sbatch` is asked for what the file says under [sbatch]; these stand unless it says otherwise.
_DEFAULTS = {"time": "24:00:00", "requeue": True, "signal": "B:USR1@120", "open-mode": "append"}
_SCRIPT = """\
#!/bin/bash
# Written by `coex grid slurm`. Submit it with sbatch; submit it again at any time: what is finished ends at once.
{options}

runs=({runs})
{python} -m coex grid work {directory} "${{runs[$SLURM_ARRAY_TASK_ID]}}" &
work=$!
# Before the time limit: the run saves, and the task goes back into the queue, from where it goes on.
trap 'again=1; trap "" USR1; kill -TERM "$work"' USR1
# Cancelled or preempted: the run saves; SLURM itself puts what is preempted back into the queue.
trap 'kill -TERM "$work"' TERM
code=143
while kill -0 "$work" 2> /dev/null; do wait "$work"; code=$?; done
if [ -n "${{again:-}}" ] && [ "$code" = 143 ]; then
    scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"
fi
exit "$code"
"""


def slurm_script(grid: Grid) -> str:
    """Returns the text of an sbatch script for the runs that are not finished; raises UsageError if all are."""
    names = [run.name for run in grid.runs if not is_finished(run)]
    if not names:
        raise UsageError(f"all {len(grid.runs)} runs in {grid.out} are finished")
    own = {
        "job-name": f"coex-{grid.out.name}",
        "array": f"0-{len(names) - 1}",
        "ntasks": 1,  # sbatch refuses GPUs per task without it
        "cpus-per-task": grid.config.cores,
        "output": f"{grid.out / RECORDS}/slurm-%A_%a.log",
    }
    if grid.config.gpus:
        own["gpus-per-task"] = math.ceil(grid.config.gpus)
    options = own | _DEFAULTS | grid.config.sbatch
    if limit := options.pop("tasks-at-once", None):
        options["array"] = f"{options['array']}%{limit}"
    lines = [f"#SBATCH --{name}" + ("" if value is True else f"={value}") for name, value in options.items()
             if value is not False]  # fmt: skip
    return _SCRIPT.format(
        options="\n".join(lines),
        runs=" ".join(map(shlex.quote, names)),
        python=shlex.quote(sys.executable),
        directory=shlex.quote(str(grid.out)),
    )
