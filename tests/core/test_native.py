"""Where the compiled code is from, and the wheel that brings it."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from coex.core import native

REPOSITORY = Path(__file__).parents[2]
needs_compiler = pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a wheel would put `native.py`; the cache is empty, and nothing is loaded yet."""
    place = tmp_path / "site-packages"
    place.mkdir()
    shutil.copy(native._SOURCE, place)
    monkeypatch.setattr(native, "_SOURCE", place / "native.c")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    native.load.cache_clear()
    yield place
    native.load.cache_clear()


def cached(installed: Path) -> list[Path]:
    return list((installed.parent / "cache").rglob("*.so"))


@needs_compiler
def test_a_wheels_library_needs_no_compiler(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    native.build(installed / native.library_name())
    monkeypatch.setenv("PATH", "")
    assert native.origin() == "wheel"
    assert not cached(installed)


@needs_compiler
def test_what_is_compiled_once_needs_no_compiler_again(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert native.origin() == "cache"
    assert [library.name for library in cached(installed)] == [native.library_name()]
    native.load.cache_clear()
    monkeypatch.setenv("PATH", "")
    assert native.origin() == "cache"


@needs_compiler
@pytest.mark.parametrize("change", ["source", "flags"])
def test_a_stale_library_is_not_loaded(installed: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    native.build(installed / native.library_name())
    if change == "source":
        with (installed / "native.c").open("a") as source:
            source.write("/* new */\n")
    else:
        monkeypatch.setattr(native, "_FLAGS", [*native._FLAGS, "-DNEW"])
    assert native.origin() == "cache"


@needs_compiler
def test_a_library_that_does_not_fit_the_system_is_passed_over(installed: Path) -> None:
    (installed / native.library_name()).write_bytes(b"made for another system")
    assert native.origin() == "cache"


def test_without_library_and_compiler_there_is_none(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.warns(UserWarning, match=r"no compiled code.*no C compiler"):
        assert native.origin() is None


def build_wheel(directory: Path, **environment: str) -> tuple[Path, str]:
    pytest.importorskip("hatchling")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(directory)]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=os.environ | environment, check=True, capture_output=True, text=True
    )
    (wheel,) = directory.glob("*.whl")
    return wheel, done.stdout + done.stderr


@needs_compiler
def test_a_wheel_brings_the_compiled_code(tmp_path: Path) -> None:
    wheel, _ = build_wheel(tmp_path)
    assert "-py3-none-" in wheel.name
    assert not wheel.name.endswith("-any.whl")
    with zipfile.ZipFile(wheel) as content:
        content.extractall(tmp_path / "unpacked")
    page = tmp_path / "unpacked/coex/watch/page"  # of coex watch, with the licence of what it brings
    assert {"index.html", "page.css", "main.js", "uplot.js", "uplot.LICENSE"} <= {file.name for file in page.iterdir()}
    environment = {"PYTHONPATH": str(tmp_path / "unpacked"), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": ""}
    asked = [sys.executable, "-c", "from coex.core import native; print(native.__file__, native.origin())"]
    answer = subprocess.run(asked, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True).stdout
    assert answer.split() == [str(tmp_path / "unpacked/coex/core/native.py"), "wheel"]


def test_without_a_compiler_a_wheel_is_for_any_platform_and_says_so(tmp_path: Path) -> None:
    wheel, said = build_wheel(tmp_path, PATH="")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert "no compiled code" in said
    assert "no C compiler" in said
    with zipfile.ZipFile(wheel) as content:
        assert not [name for name in content.namelist() if name.endswith(".so")]
