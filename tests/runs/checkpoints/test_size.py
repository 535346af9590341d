"""A checkpoint after a long run is small."""

from pathlib import Path

import numpy as np

from coex.config.presets import make_config
from coex.method.counts import VisitCounts
from coex.runs.checkpoints import CheckpointStore
from coex.runs.checkpoints.tree import take_snapshot
from coex.training.loop import train


def test_a_million_counted_states_are_under_100_mb(tmp_path: Path) -> None:
    train(make_config("montezuma", "a2c+coex", {"total_steps": 80, "num_workers": 0}), tmp_path)  # 16 environments
    store = CheckpointStore(tmp_path)
    saved = store.read(80)
    counts = VisitCounts(4)
    cells, room, score = (
        np.divmod(np.arange(1_000_000), 20)[0] % 81,
        np.arange(1_000_000) % 20,
        np.arange(1_000_000) * 7,
    )
    counts.visit(np.stack([cells % 9, cells // 9, room, score], axis=1))
    assert len(counts) == 1_000_000
    saved.state["agent"]["bonus"]["counts"] = counts.state_dict()
    store.write(160, saved.manifest.config, {}, take_snapshot(saved.state))
    assert sum(path.stat().st_size for path in store.path_of(160).iterdir()) < 100e6
    again = VisitCounts(4)
    again.load_state_dict(store.read(160).state["agent"]["bonus"]["counts"])
    assert len(again) == 1_000_000
