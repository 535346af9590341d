"""Checkpoints on disk: whole or not there, kept as configured, and damage of any kind is noticed."""

import io
import json
import os
import pickle
import resource
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from coex.config.checkpoints import CheckpointConfig
from coex.errors import UsageError
from coex.runs.checkpoints import CheckpointStore, DamagedError, manifest
from coex.runs.checkpoints.manifest import Manifest, describe
from coex.runs.checkpoints.tree import take_snapshot

TREE = {"net": torch.arange(300.0), "table": np.arange(200), "step": 7, "generator": {"state": 2**100}}
FILES = ["arrays.npz", "manifest.json", "state.json", "tensors.safetensors"]


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    store = CheckpointStore(tmp_path)
    write(store, 80)
    return store


def write(store: CheckpointStore, step: int) -> None:
    store.write(step, {"game": "Hero"}, {"metrics.jsonl": 5}, take_snapshot(TREE))


def test_what_is_written_is_read(store: CheckpointStore) -> None:
    saved = store.read(80)
    assert (saved.manifest.step, saved.manifest.config) == (80, {"game": "Hero"})
    assert saved.manifest.logs == {"metrics.jsonl": 5}
    assert torch.equal(saved.state["net"], TREE["net"])
    assert saved.state["table"].tolist() == list(range(200))
    assert saved.state["generator"] == {"state": 2**100}
    assert sorted(path.name for path in store.path_of(80).iterdir()) == FILES


def test_every_byte_counts(store: CheckpointStore) -> None:
    """All bytes of the manifest, and 500 of each other file, one at a time, with one bit or all of them flipped."""
    flips = 0
    for name in FILES:
        path = store.path_of(80) / name
        content = path.read_bytes()
        places = range(len(content)) if name == manifest.NAME else np.linspace(0, len(content) - 1, 500, dtype=int)
        for place in map(int, places):
            flipped = bytearray(content)
            flipped[place] ^= (1 << flips % 8) if flips % 2 else 0xFF
            path.write_bytes(flipped)
            with pytest.raises(DamagedError, match="is damaged"):
                store.read(80)
            flips += 1
        path.write_bytes(content)
    assert flips >= 2_000
    store.read(80)


def test_every_truncation_is_noticed(store: CheckpointStore) -> None:
    for name in FILES:
        path = store.path_of(80) / name
        content = path.read_bytes()
        for length in {0, 1, len(content) - 1, *range(0, len(content), max(1, len(content) // 150))}:
            path.write_bytes(content[:length])
            with pytest.raises(DamagedError):
                store.read(80)
        path.write_bytes(content + b"\n")
        with pytest.raises(DamagedError):
            store.read(80)
        path.write_bytes(content)


@pytest.mark.parametrize("name", FILES)
def test_missing_and_added_files_are_noticed(name: str, store: CheckpointStore, tmp_path: Path) -> None:
    path = store.path_of(80) / name
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(DamagedError, match=f"{name} is missing"):
        store.read(80)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DamagedError, match=f"{name} is not a file"):
        store.read(80)
    path.unlink()
    shutil.copy(tmp_path / "elsewhere", path)
    (store.path_of(80) / "extra.bin").touch()
    with pytest.raises(DamagedError, match=r"extra\.bin"):
        store.read(80)


class Bomb:
    def __init__(self, fuse: Path) -> None:
        self._fuse = fuse

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self._fuse,)


def bombs(fuse: Path) -> list[bytes]:
    """As Python, torch and NumPy would have them."""
    torch_file, numpy_file, archive = io.BytesIO(), io.BytesIO(), io.BytesIO()
    torch.save(Bomb(fuse), torch_file)
    np.save(numpy_file, np.array([Bomb(fuse)], dtype=object), allow_pickle=True)
    np.savez(archive, table=np.array([Bomb(fuse)], dtype=object))
    return [pickle.dumps(Bomb(fuse)), *(file.getvalue() for file in (torch_file, numpy_file, archive))]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", range(4))
def test_a_pickle_bomb_is_refused_and_does_not_go_off(
    name: str, kind: int, store: CheckpointStore, tmp_path: Path
) -> None:
    fuse = tmp_path / "fuse"
    bomb = bombs(fuse)[kind]
    content = (store.path_of(80) / manifest.NAME).read_bytes()
    (store.path_of(80) / name).write_bytes(bomb)
    with pytest.raises(DamagedError):
        store.read(80)
    if name != manifest.NAME:  # whoever made it may have made a manifest that fits
        body = json.loads(content)["body"]
        forged = replace(Manifest(**body), files=body["files"] | {name: describe(bomb)})
        (store.path_of(80) / manifest.NAME).write_bytes(forged.to_bytes())
        with pytest.raises(DamagedError):
            store.read(80)
    assert not fuse.exists()
    pickle.loads(pickle.dumps(Bomb(fuse)))
    assert fuse.exists()  # it would have


def test_a_newer_format_is_refused_in_one_line(store: CheckpointStore) -> None:
    path = store.path_of(80) / manifest.NAME
    body = asdict(replace(store.read(80).manifest, format=manifest.FORMAT + 1)) | {"something": "new"}
    path.write_bytes(manifest._render(body))
    with pytest.raises(UsageError, match=r"format 2, .* 1:"):
        store.read(80)


def test_a_checkpoint_under_another_name_is_noticed(store: CheckpointStore) -> None:
    store.path_of(80).rename(store.path_of(160))
    with pytest.raises(DamagedError, match="written at step 80"):
        store.read(160)


def test_the_newest_are_kept_and_some_for_good(store: CheckpointStore) -> None:
    config = CheckpointConfig(keep=3, keep_every_steps=1_000)
    for step in range(160, 3_280, 80):
        write(store, step)
        store.prune(config)
        assert store.steps()[-1] == step
    assert store.steps() == [1_040, 2_000, 3_040, 3_120, 3_200]
    store.prune(CheckpointConfig(keep=1, keep_every_steps=0))
    assert store.steps() == [3_200]


def test_leftovers_are_cleared_and_links_are_never_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "thesis.tex").touch()
    store = CheckpointStore(tmp_path / "run")
    (tmp_path / "run" / "checkpoints" / ".tmp-000000000080").mkdir(parents=True)
    (tmp_path / "run" / "checkpoints" / ".tmp-000000000080" / "arrays.npz").write_bytes(b"half")
    for name in (".tmp-1", "step-000000000001", "step-000000000002"):
        (store.path / name).symlink_to(outside)
    store.clear()
    for step in (80, 160):
        write(store, step)
    store.prune(CheckpointConfig(keep=1))
    assert store.steps() == [160]
    assert (outside / "thesis.tex").exists()
    assert not (store.path / ".tmp-000000000080").exists()
    shutil.move(store.path, tmp_path / "moved")
    store.path.symlink_to(tmp_path / "moved")
    with pytest.raises(UsageError, match="is a link"):
        CheckpointStore(tmp_path / "run")


@pytest.mark.parametrize("room", [0, 300, 1_000, 1_300])
def test_a_checkpoint_that_does_not_fit_on_the_disk_leaves_no_trace(store: CheckpointStore, room: int) -> None:
    """A limit on the size of files stands in for the disk's end: both make a write fail half way."""
    before = {path: path.read_bytes() for path in store.path.rglob("*") if path.is_file()}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            write(store, 160)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {path: path.read_bytes() for path in store.path.rglob("*") if path.is_file()} == before
    assert os.listdir(store.path) == [store.path_of(80).name]
    write(store, 160)
    assert store.steps() == [80, 160]
