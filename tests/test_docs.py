"""The examples of the documentation, run as they stand there."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.scale import SOURCES, TABLES, with_tables
from coex.cli import main

DOCS = Path(__file__).parent.parent / "docs"


def python_block(page: str) -> str:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)[0]


@pytest.mark.slow
def test_own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "corridor.py").write_text(python_block("own-environment.md"))
    command = re.search(r"PYTHONPATH=\. coex (train gym:.*?) --steps", (DOCS / "own-environment.md").read_text())
    assert command is not None
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # what PYTHONPATH=. does, also for the worker processes
    assert main([*command[1].split(), "--steps", "5040", "--out", "run", "--quiet"]) == 0
    points = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
    assert points[0]["adm/accuracy"] < 0.75  # of three actions, in the first 1,000 steps
    assert points[-1]["adm/accuracy"] > 0.9
    assert points[0]["adm/entropy"] > 3 > 0.5 > points[-1]["adm/entropy"]
    assert points[-1]["counts/states"] < 81


def test_pages_link_to_what_is_there() -> None:
    for page in (*DOCS.glob("*.md"), DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md"):
        for link in re.findall(r"\]\((?!http|#)([^)#]+)[^)]*\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_every_public_name_is_documented() -> None:
    import coex

    text = (DOCS / "api.md").read_text()
    documented = re.findall(r"^\.\. auto\w+:: coex\.(\w+)$", text, re.MULTILINE)
    assert sorted([*documented, "__version__"]) == sorted(coex.__all__)


def test_every_table_and_figure_is_documented() -> None:
    from coex.paper.studies import STUDIES

    text = (DOCS / "paper.md").read_text()
    assert all(f"`{name}`" in text for name in STUDIES)


def test_the_readme_names_every_method_and_module() -> None:
    from coex.config.presets import ARCHIVES, BONUSES

    text = (DOCS.parent / "README.md").read_text()
    methods = [*ARCHIVES, *BONUSES]
    assert [name for name in methods if not re.search(rf"`(a2c\+)?{re.escape(name)}`", text)] == []
    packages = [path.parent.name for path in (DOCS.parent / "src" / "coex").glob("*/__init__.py")]
    assert sorted(packages) == sorted(re.findall(r"^src/coex/(\w+)/ ", text, re.MULTILINE))


@pytest.mark.parametrize("page", ["README.md", "docs/results.md", "docs/compute.md"])
def test_speeds_are_those_of_the_benchmark(page: str) -> None:
    root = DOCS.parent
    benchmark = json.loads((root / "results" / "bench.json").read_text())
    measured = {row["row"]: row["ours_median"] for row in benchmark["rows"]}
    said = re.findall(r"^\| `([a-z0-9+]+)`( in bfloat16|) \| (\d+) ", (root / page).read_text(), re.MULTILINE)
    assert said
    assert {method + how: int(rate) for method, how, rate in said} == {
        method + how: round(measured[method + how]) for method, how, _ in said
    }


def test_the_page_of_scale_has_the_figures_of_the_benchmark() -> None:
    page, file = (DOCS / "scale.md").read_text(), DOCS.parent / "results" / "scale.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    assert with_tables(page, results) == page
    parts = [SOURCES.get(name, name) for name in TABLES]
    assert page.count("Not measured yet.") == sum(part not in results for part in parts)


def test_readmes_python_runs_as_a_script(tmp_path: Path) -> None:
    """As it stands, but for its length: no `if __name__` is needed."""
    [code] = re.findall(r"```python\n(.*?)```", (DOCS.parent / "README.md").read_text(), re.DOTALL)
    assert "40_000" in code
    (tmp_path / "script.py").write_text(code.replace("40_000", "160"))
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=200, check=True
    )
    assert "rgb160" in done.stdout
