"""Commands in processes of their own that start at once: forks of a process that has imported everything.

    python -m tests.children      # reads one request a line, answers with the process and then with its exit code

A request may name a moment: a function (`module:Class.method`), a run and a step. The process kills itself as it enters
that function once there is a checkpoint of that step. A kill from outside comes when the machine lets it.
"""

import functools
import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any


class Children:
    """Starts commands one after the other."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.children"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(
        self, *arguments: str, errors: Path = Path(os.devnull), moment: tuple[str, str, int] | None = None
    ) -> int:
        """Starts a command of coex and returns the number of its process; `moment`: function, run and step."""
        request = {"arguments": arguments, "errors": str(errors), "moment": moment}
        return int(self._ask(json.dumps(request, default=str)))

    def wait(self) -> int:
        """Returns how the process ended: its exit code, or a signal's number below zero."""
        return int(self._ask("wait"))

    def close(self) -> None:
        self._process.communicate()

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()


def kill_in(name: str, run: str, step: int) -> None:
    """Lets this process kill itself in the function of that name."""
    from coex.runs.checkpoints import CheckpointStore

    module, _, function = name.partition(":")
    *owners, attribute = function.split(".")
    holder = functools.reduce(getattr, owners, importlib.import_module(module))
    original = getattr(holder, attribute)

    @functools.wraps(original)
    def deadly(*arguments: Any, **options: Any) -> Any:
        if max(CheckpointStore(Path(run)).steps(), default=-1) >= step:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **options)

    setattr(holder, attribute, deadly)


def main() -> None:
    for name in ("coex.training.loop", "torch._dynamo", "tensorboard.summary.writer.record_writer"):
        importlib.import_module(name)  # what a run would import, once
    from coex.cli import main as run_command

    child = 0
    for line in sys.stdin:
        if line == "wait\n":
            answer = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        elif child := os.fork():
            answer = child
        else:
            request = json.loads(line)
            os.dup2(os.open(request["errors"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.setsid()  # a group of its own, for signals to all of it
            if request["moment"]:
                kill_in(*request["moment"])
            code = run_command(request["arguments"])
            sys.stderr.flush()
            os._exit(code)
        print(answer, flush=True)


if __name__ == "__main__":
    main()
