"""A grid's attempts as tasks of Ray: on a cluster of this machine alone, or on one that is running."""

import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import Future, wait
from typing import Any

from coex.errors import CoexError, UsageError
from coex.grid.attempts import attempt
from coex.grid.drive import Submit
from coex.grid.plan import GridConfig, PlannedRun

_SAVE_SECONDS = 20.0  # for runs that are asked to stop
_KNOCK_SECONDS = 10.0


@contextlib.contextmanager
def ray_engine(config: GridConfig, address: str | None) -> Iterator[Submit]:
    """Starts attempts as Ray's tasks, as many at a time as the cluster has cores and GPUs for.

    Without an address the cluster is this machine, its ports are bound to loopback and it has no dashboard. Only text
    and numbers go to the tasks, and exit codes come back. Raises UsageError without the package `ray`.
    """
    if not address:
        # Otherwise Ray puts an address that others reach in place of the loopback's, and listens on every interface.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    ray = _import_ray()
    place = {"address": address} if address else {
        "address": "local", "_node_ip_address": "127.0.0.1", "include_dashboard": False,
    }  # fmt: skip
    try:
        _knock(address or "")
        ray.init(**place, log_to_driver=False, logging_level="error")
    except Exception as error:  # what Ray raises has no class of its own
        cause = str(error).strip().split("\n")[0]
        raise CoexError(f"there is no Ray cluster at {address or 'this machine'}: {cause}") from None
    try:
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        if not any(node.get("CPU", 0) >= config.cores and node.get("GPU", 0) >= config.gpus for node in nodes):
            asked = f"cores = {config.cores}, gpus = {config.gpus:g}"
            if not address:  # Ray would wait for a node that has them, for ever
                raise UsageError(f"{asked}: this machine has {nodes[0].get('CPU', 0):g} and {nodes[0].get('GPU', 0):g}")
            print(f"{asked}: no node of the cluster has them now, and the runs wait for one", file=sys.stderr)
        # A task that is lost is ours to try again: with back-off, and not for ever.
        task = ray.remote(num_cpus=config.cores, num_gpus=config.gpus, max_retries=0)(attempt)
        started: dict[Future[int], Any] = {}

        def submit(run: PlannedRun) -> "Future[int]":
            reference = task.remote(list(run.command), str(run.out), str(run.records), config.cores)
            future: Future[int] = reference.future()
            started[future] = reference
            return future

        try:
            yield submit
        finally:
            for future, reference in started.items():
                if not future.done():
                    ray.cancel(reference)
            wait(started, _SAVE_SECONDS)
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """Raises OSError where nobody listens at HOST:PORT: Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if host and "/" not in host and port.isdigit():
        socket.create_connection((host, int(port)), _KNOCK_SECONDS).close()


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
    # Ours are a handful of long tasks: its own memory check would kill the run that needs most.
    os.environ.setdefault("RAY_memory_monitor_refresh_ms", "0")
    try:
        import ray
    except ImportError:
        raise UsageError("--engine ray needs the package ray: pip install 'coex-rl[ray]'") from None
    return ray
