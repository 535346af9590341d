"""A tree of states as files: tensors in safetensors, arrays in npz, and JSON for the rest. Nothing is pickled."""

import io
import json
import math
from dataclasses import dataclass
from typing import Any
from zipfile import BadZipFile

import numpy as np
import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

STATE, ARRAYS, TENSORS = "state.json", "arrays.npz", "tensors.safetensors"

# What JSON has no form for is a dictionary with this key, which no dictionary of ours may use.
_TAG = "$"


@dataclass(frozen=True)
class Snapshot:
    """A tree that was copied apart: what happens to the original afterwards does not reach it."""

    document: Any  # the tree as JSON can hold it, with names in the place of arrays and tensors
    arrays: dict[str, np.ndarray]
    tensors: dict[str, Tensor]

    def files(self) -> dict[str, bytes]:
        """The content of each file."""
        arrays = io.BytesIO()
        np.savez(arrays, allow_pickle=False, **self.arrays)
        return {
            STATE: json.dumps(self.document, allow_nan=False).encode(),
            ARRAYS: arrays.getvalue(),
            TENSORS: safetensors.torch.save(self.tensors),
        }


def take_snapshot(tree: Any) -> Snapshot:
    """Copies a tree of dict, list, tuple, None, bool, int, float, str, ndarray and tensor."""
    snapshot = Snapshot(None, {}, {})
    return Snapshot(_encode(tree, "", snapshot), snapshot.arrays, snapshot.tensors)


def read_tree(files: dict[str, bytes]) -> Any:
    """The tree again; raises ValueError when the files do not hold one."""
    try:
        document = json.loads(files[STATE])
        with np.load(io.BytesIO(files[ARRAYS]), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        tensors = safetensors.torch.load(files[TENSORS])
        return _decode(document, Snapshot(None, arrays, tensors))
    except (KeyError, IndexError, TypeError, RuntimeError, EOFError, OSError, BadZipFile, SafetensorError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _encode(value: Any, path: str, into: Snapshot) -> Any:
    match value:
        case None | bool() | str():
            return value
        case int():
            return int(value)
        case float():
            return float(value) if math.isfinite(value) else {_TAG: "float", "value": str(float(value))}
        case np.ndarray() if value.dtype.kind in "biuf":
            into.arrays[path] = value.copy()
            return {_TAG: "array", "name": path}
        case Tensor():
            # Channels-last weights come back as such: another order in memory can mean another rounding.
            order = sorted(range(value.ndim), key=value.stride().__getitem__, reverse=True)
            into.tensors[path] = value.detach().permute(order).to("cpu", copy=True).contiguous()
            return {_TAG: "tensor", "name": path, "order": order}
        case dict() if all(isinstance(key, str) for key in value) and _TAG not in value:
            return {key: _encode(item, f"{path}/{key}" if path else key, into) for key, item in value.items()}
        case dict():  # an optimiser's state has numbers for keys
            pairs = [(key, _encode(item, f"{path}/{key}", into)) for key, item in value.items()]
            return {_TAG: "dict", "items": [[_encode(key, "", into), item] for key, item in pairs]}
        case list():
            return [_encode(item, f"{path}/{index}", into) for index, item in enumerate(value)]
        case tuple():
            return {_TAG: "tuple", "items": _encode(list(value), path, into)}
    raise TypeError(f"a checkpoint cannot hold {type(value).__name__} (at {path})")


def _decode(value: Any, stored: Snapshot) -> Any:
    if isinstance(value, list):
        return [_decode(item, stored) for item in value]
    if not isinstance(value, dict):
        return value
    match value.get(_TAG):
        case None:
            return {key: _decode(item, stored) for key, item in value.items()}
        case "float":
            return float(value["value"])
        case "array":
            return stored.arrays[value["name"]]
        case "tensor":
            order = value["order"]
            inverse = sorted(range(len(order)), key=order.__getitem__)
            return stored.tensors[value["name"]].clone().permute(inverse)  # a clone lies where torch wants it
        case "dict":
            return {_decode(key, stored): _decode(item, stored) for key, item in value["items"]}
        case "tuple":
            return tuple(_decode(value["items"], stored))
        case tag:
            raise ValueError(f"unknown kind {tag!r}")
