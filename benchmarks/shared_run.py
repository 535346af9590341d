"""`coex train` under torchrun, with a record of what its processes tell each other and where their time goes.

    torchrun --nproc-per-node=2 -m benchmarks.shared_run OUT.json train …     # writes OUT.json, of the first process

Bytes are those that arrive at a process, as the collective's algorithm has it; a rollout's part is counted from its
collection to the end of its update.
"""

import json
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch.distributed as dist

from coex.cli import main as run_command
from coex.core.ranks import Ranks
from coex.learners.a2c import A2C
from coex.learners.ppo import PPO
from coex.rollouts.collector import Collector
from coex.training.agent import Agent

WARMUP = 3  # rollouts that do not count
SECTIONS = ("collect", "bonus", "learn", "talk")


class Meter:
    """What the rollouts of this process take: seconds by section, bytes by collective."""

    def __init__(self) -> None:
        self.rollouts, self.transitions, self._depth = 0, 0, 0
        self.seconds: dict[str, float] = defaultdict(float)
        self.bytes, self.calls = Counter[str](), Counter[str]()

    @property
    def _counts(self) -> bool:
        return self._depth > 0 and self.rollouts >= WARMUP

    def section(self, owner: Any, name: str, label: str) -> None:
        """Lets a method's seconds be counted."""
        original = getattr(owner, name)

        def timed(*arguments: Any, **options: Any) -> Any:
            began = time.perf_counter()
            try:
                return original(*arguments, **options)
            finally:
                if self._counts:
                    self.seconds[label] += time.perf_counter() - began

        setattr(owner, name, timed)

    def collective(self, name: str, received: Callable[..., int], owner: Any = dist) -> None:
        """Lets the bytes be counted that a collective brings to this process, and the seconds that it takes."""
        original = getattr(owner, name)

        def counted(*arguments: Any) -> Any:
            began = time.perf_counter()
            try:
                return original(*arguments)
            finally:
                if self._counts:
                    self.seconds["talk"] += time.perf_counter() - began
                    self.bytes[name] += received(*arguments)
                    self.calls[name] += 1

        setattr(owner, name, counted)

    def iteration(self, agent: type[Agent]) -> None:
        """Lets only what happens within a rollout's iteration count."""
        original = agent._iterate

        def counted(this: Agent) -> Any:
            self._depth += 1
            began = time.perf_counter()
            result = original(this)
            if self._counts:
                self.seconds["whole"] += time.perf_counter() - began
                self.transitions += result[0].num_transitions
            self._depth -= 1
            self.rollouts += 1
            return result

        setattr(agent, original.__name__, counted)

    def report(self) -> dict[str, Any]:
        """Returns everything per rollout."""
        counted = max(self.rollouts - WARMUP, 1)
        parts: dict[str, Mapping[str, float]] = {"seconds": self.seconds, "bytes": self.bytes, "calls": self.calls}
        report: dict[str, Any] = {what: {k: v / counted for k, v in part.items()} for what, part in parts.items()}
        return report | {"rollouts": counted, "transitions": self.transitions / counted}


def attach() -> Meter:
    """Returns a meter of this process."""
    meter, rank, size = Meter(), int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    meter.iteration(Agent)
    meter.section(Collector, "collect", "collect")
    for learner in (A2C, PPO):
        meter.section(learner, "update", "learn")
    original = Agent.__init__

    def with_bonus(this: Agent, *arguments: Any, **options: Any) -> None:
        original(this, *arguments, **options)
        if this.bonus is not None:
            meter.section(this.bonus, "reward", "bonus")
            meter.section(this.bonus, "update", "bonus")

    setattr(Agent, original.__name__, with_bonus)
    meter.collective("all_gather", lambda out, own: (size - 1) * own.nbytes)
    meter.collective("send", lambda own, to: 0)
    meter.collective("recv", lambda own, source: own.nbytes)
    meter.collective("broadcast", lambda own, source: own.nbytes * (rank != source))
    meter.collective("all_reduce", lambda own: 2 * (size - 1) * own.nbytes // size)
    # Of one machine's processes, this goes through shared memory: what would arrive from other machines.
    meter.collective("sum", lambda ranks, own: 2 * (size - 1) * own.nbytes // size, owner=Ranks)
    return meter


def main() -> int:
    """Trains, and writes the report."""
    out, *command = sys.argv[1:]
    meter = attach()
    code = run_command(command)
    if os.environ.get("RANK", "0") == "0":
        Path(out).write_text(json.dumps(meter.report()), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
