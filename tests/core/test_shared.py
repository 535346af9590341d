import errno
import os
from pathlib import Path

import pytest
import torch

from coex.core import shared


def test_what_one_writes_all_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "MEMORY", str(tmp_path))
    path = shared.allocate_shared((3, 5), torch.float64).decode()
    assert Path(path).stat().st_size == 3 * 5 * 8
    one, other = (shared.open_shared(path, (3, 5), torch.float64) for _ in range(2))
    os.unlink(path)
    one[1] = torch.arange(5.0)
    assert other[1].tolist() == [0, 1, 2, 3, 4]
    assert not other[0].any()


def test_without_room_or_such_a_place_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(shared, "MEMORY", str(tmp_path))
    monkeypatch.setattr(os, "posix_fallocate", full)
    assert shared.allocate_shared((3, 5), torch.float32) == b""
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(shared, "MEMORY", str(tmp_path / "missing"))
    assert shared.allocate_shared((3, 5), torch.float32) == b""
