"""What the processes that share a run tell each other of its state, in the form of a checkpoint: nothing is pickled."""

import hashlib
from typing import Any

import numpy as np
from torch import nn

from coex.core.ranks import Ranks
from coex.errors import CoexError
from coex.runs.checkpoints import Saved
from coex.runs.checkpoints.tree import ARRAYS, STATE, TENSORS, read_tree, take_snapshot

_FILES = (STATE, ARRAYS, TENSORS)


def pack(tree: Any) -> bytes:
    """Returns a tree of states as one message: the sizes of a checkpoint's files, and the files."""
    files = take_snapshot(tree).files()
    return np.array([len(files[name]) for name in _FILES], np.int64).tobytes() + b"".join(files[n] for n in _FILES)


def unpack(message: bytes) -> Any:
    """Returns the tree again."""
    header = 8 * len(_FILES)
    ends = header + np.cumsum(np.frombuffer(message[:header], np.int64))
    return read_tree({name: message[a:b] for name, a, b in zip(_FILES, [header, *ends], ends, strict=False)})


def tell_state(ranks: Ranks, saved: Saved | None) -> None:
    """Lets the other processes go on from a checkpoint, or begin; the bonus stays with the first, which calls this."""
    if ranks.world_size > 1:
        state = {"step": saved.manifest.step, "agent": saved.state["agent"] | {"bonus": None}} if saved else {}
        ranks.broadcast_bytes(pack(state))


def hear_state(ranks: Ranks) -> tuple[int | None, dict[str, Any] | None]:
    """Returns the step and the agent's state that the first process tells; None where the run begins."""
    state = unpack(ranks.broadcast_bytes(b""))
    return state.get("step"), state.get("agent")


def gather_envs(ranks: Ranks, own: dict[str, Any], network: nn.Module) -> dict[str, Any]:
    """Returns the state of all environments to the first process, given each one's own, and to the others theirs.

    Raises CoexError if the processes have come to different weights: such a run is not to be saved.
    """
    if ranks.world_size == 1:
        return own
    digest = _digest(network)
    states = [unpack(message) for message in ranks.gather_bytes(pack({"env": own, "digest": digest}))]
    for rank, state in enumerate(states):
        if state["digest"] != digest:
            raise CoexError(f"process {rank} has come to other weights than process 0: are their machines alike?")
    if not states:
        return own
    envs = [state["env"] for state in states]
    views = {name: np.concatenate([env["views"][name] for env in envs]) for name in own["views"]}
    return {"envs": [state for env in envs for state in env["envs"]], "views": views}


def cut_envs(whole: dict[str, Any], columns: slice) -> dict[str, Any]:
    """Returns the state of some of the environments."""
    return {"envs": whole["envs"][columns], "views": {name: view[columns] for name, view in whole["views"].items()}}


def _digest(network: nn.Module) -> str:
    weights = (parameter.detach().cpu().contiguous().numpy().tobytes() for parameter in network.parameters())
    return hashlib.sha256(b"".join(weights)).hexdigest()
