"""The page in a real browser: it shows what there is, follows what happens, asks nobody else and breaks no rule."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coex.config.grid import even_grid, model_grid
from coex.grid.status import describe_grid
from coex.report.build import collect, make_page
from coex.runs.lock import RunLock

from .conftest import append, serving, write_archive, write_run

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync""".split()  # noqa: SIM905 - as on a command line
EVIL = "<img src=x onerror=alert(1)>"
WATCH_POLICY = (
    "window.broken = []; addEventListener('securitypolicyviolation', (e) => broken.push(e.violatedDirective));"
)

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no chromium on this machine: the page is not tried in it"
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: the page is not tried in a browser"
    )
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """A page that remembers all that went wrong on it."""

    def __init__(self, browser: Any, address: str, width: int = 1_400, scheme: str = "light") -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page.set_default_timeout(100_000)
        self._origin = re.split("[#?]", address)[0]
        self._faults: list[str] = []
        self.page.on("console", lambda message: self._faults.append(message.text) if message.type != "log" else None)
        self.page.on("pageerror", lambda error: self._faults.append(str(error)))
        self.page.on("dialog", lambda dialog: self._faults.append(dialog.message))
        self.page.on("request", lambda request: self._check(request.url))
        self.page.add_init_script(WATCH_POLICY)
        self.page.goto(address)

    def _check(self, url: str) -> None:
        if not url.startswith((self._origin, "data:")):
            self._faults.append(f"asked {url}")

    def leave(self) -> None:
        """Nothing has gone wrong."""
        assert self.page.evaluate("broken") == []
        assert self.page.evaluate("document.documentElement.scrollWidth <= innerWidth")  # nothing sticks out
        assert self._faults == []
        self.page.close()


@pytest.mark.parametrize(("width", "scheme"), [(1_400, "light"), (390, "dark")])
def test_all_runs_then_one(chromium: Any, tmp_path: Path, width: int, scheme: str) -> None:
    for seed in range(3):
        write_run(tmp_path / "runs" / f"seed-{seed}", seed=seed, method="a2c+coex", steps=10 + seed)
    write_run(tmp_path / "runs" / EVIL.replace("/", ""), "montezuma", bonus={"state": "xyc"}, method="ppo+coex")
    with serving(tmp_path / "runs") as server:
        visit = Visit(chromium, server.address, width, scheme)
        page = visit.page
        page.wait_for_selector(".games .u-over")
        assert page.locator(".games .chart").count() == 2
        assert page.locator("table.runs tbody tr").count() == 4
        assert page.locator(".scores").first.text_content().count("3 seeds") == 1
        page.keyboard.press("/")
        page.keyboard.type("montezuma xyc")
        assert page.locator("table.runs tbody tr").count() == 1
        page.keyboard.press("Escape")
        assert page.locator("table.runs tbody tr").count() == 4
        page.locator("th:nth-child(7) button").click(click_count=2)
        assert page.locator("table.runs tbody tr td:nth-child(7)").all_text_contents() == ["12", "11", "10", "10"]
        heads = page.locator(".scores").first.locator("thead th").all_text_contents()
        assert heads == ["method", "best by 10k", "paper"]  # no column of which nothing is known
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (int(re.findall(r"\d+", background)[0]) < 60) == (scheme == "dark")
        page.get_by_role("link", name="PPO+CoEX").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector(".charts .u-over")
        assert page.locator("h1").text_content() == "PPO+CoEX"
        assert "--set bonus.state=xyc" in page.locator(".command").text_content()
        plot = page.locator(".charts .plot").first
        plot.focus()
        page.keyboard.press("+")
        page.wait_for_selector(".chart.zoomed")
        page.keyboard.press("0")
        page.wait_for_selector(".chart.zoomed", state="detached")
        plot.scroll_into_view_if_needed()
        box, fingers = plot.bounding_box(), page.context.new_cdp_session(page)
        for kind, share in (("Start", 0.4), ("Move", 0.5), ("Move", 0.7), ("End", None)):
            points = [{"x": box["x"] + share * box["width"], "y": box["y"] + 50}] if share else []
            fingers.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})
        page.wait_for_selector(".chart.zoomed")
        for kind in ("Start", "End", "Start", "End"):
            points = [{"x": box["x"] + box["width"] / 2, "y": box["y"] + 50}] if kind == "Start" else []
            fingers.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})
        page.wait_for_selector(".chart.zoomed", state="detached")
        assert "return" in plot.get_attribute("aria-label").lower()
        page.keyboard.press("Escape")
        page.wait_for_selector("table.runs")
        assert page.locator("img").count() == 0  # nobody's name became one
        visit.leave()


def test_the_page_follows_a_run_that_is_killed_and_resumed(chromium: Any, tmp_path: Path) -> None:
    out = tmp_path / "runs" / "one"
    coex = [sys.executable, "-m", "coex"]
    settings = "--method a2c+coex --envs 2 --workers 0 --steps 1e6 --set log_every_steps=20 --quiet"
    train = [*coex, "train", "montezuma", *settings.split(), "--out", str(out)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    with serving(tmp_path / "runs") as server:
        server.runs.start()
        visit = Visit(chromium, server.address)
        page = visit.page
        page.wait_for_selector("text=No runs yet")
        process = subprocess.Popen(train, env=environment)
        try:
            page.wait_for_selector("tr .badge.running")
            page.locator("tr a").click()
            page.wait_for_selector(".play:not([hidden]) .facts dd")
            page.wait_for_selector(".rooms canvas")
            page.wait_for_selector(".charts .u-over")
            page.wait_for_selector("dt:text-is('visits N')")
            page.wait_for_selector(".cards div:nth-child(2) b:text-matches('^[1-9]')")
            process.send_signal(signal.SIGKILL)
            process.wait()
            page.wait_for_selector(".heading .badge.stopped")
            process = subprocess.Popen([*coex, "resume", str(out), "--quiet"], env=environment)
            page.wait_for_selector(".heading .badge.running")
            page.wait_for_selector("text=it was resumed")
            page.wait_for_selector(".charts .u-over")
        finally:
            process.kill()
            process.wait()
        server.runs.stop()
        visit.leave()


def test_whatever_a_run_wrote_the_page_stays(chromium: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "one", method="a2c+coex")
    dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
    odd: list[Any] = [EVIL, {"a": EVIL}, [[]], -1e300, None, True]
    frame = {"action": EVIL, "score": EVIL, "value": {}, "truth": [EVIL, [1, 2]], "cell": odd, "attention": odd}
    rooms = [{"name": EVIL, "visits": EVIL, "heat": odd, "picture": EVIL}, {"name": {}, "picture": 5}, None, EVIL]
    way = {"name": 1, "parent": 1, "steps": EVIL, "score": {}, "cells": []}
    scenes: list[Any] = [
        {
            "play": {
                "stamp": 1,
                "grid": EVIL,
                "picture": dot,
                "frames": [frame, *({"bonus": value} for value in odd), 5],
            }
        },
        {"play": {"stamp": 2, "grid": {"cells": 1e9, "first": "x"}, "picture": EVIL, "frames": {}}, "map": EVIL},
        {"map": {"step": 1, "letters": [], "grid": {"cells": 9}, "rooms": rooms, "most": [{"key": None}], "ways": 5}},
        {"map": {"step": EVIL, "rooms": {}, "ways": [way | {"parent": 0}, *[way] * 50, {}, None]}},
        *({"play": value, "map": value} for value in odd),
    ]
    with RunLock(run), serving(tmp_path / "runs") as server:
        visit = Visit(chromium, server.address)
        visit.page.locator("tr a").click()
        visit.page.wait_for_selector(".charts .u-over")
        for scene in scenes:
            (run / "live.json").write_text(json.dumps(scene))
            with visit.page.expect_response("**/api/live*"):
                pass
            visit.page.wait_for_timeout(300)
            assert visit.page.locator(".charts .u-over").count() == 1
            assert visit.page.locator("img").count() == 0
        assert visit.page.locator(".facts dd").first.text_content()  # what could be drawn was drawn
        assert visit.page.get_by_text("cannot be read").count() == 1  # and what could not, is said
        visit.page.keyboard.press("Escape")
        visit.page.wait_for_selector("table.runs")
        visit.leave()


def test_a_server_that_goes_and_comes_back_is_noticed(chromium: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "one")
    with serving(tmp_path / "runs") as server:
        page = chromium.new_page()
        page.goto(server.address)
        page.wait_for_selector("table.runs tbody tr")
        page.route("**/api/**", lambda route: route.abort())
        page.wait_for_selector("#state.lost")
        page.unroute("**/api/**")
        append(run, {"step": 50_000, "return_mean40": 123})
        server.runs.poll()
        page.wait_for_selector("td:text-is('123')")
        assert page.locator("#state.lost").count() == 0
        page.close()


def test_a_report_is_the_same_page(chromium: Any, tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, method="a2c+coex", seed=seed) for seed, name in enumerate(("one", EVIL[:9]))]
    single, both = tmp_path / "single.html", tmp_path / "both.html"
    single.write_text(make_page(collect(runs[:1])))
    both.write_text(make_page(collect(runs)))
    visit = Visit(chromium, single.as_uri())
    visit.page.wait_for_selector(".charts .u-over")
    assert visit.page.locator("h1").text_content() == "A2C+CoEX"
    geometry = (
        "(grid) => { const {cells, centre, tile, field} = place(grid); "
        "return [centre(0), centre(cells - 1), tile, field]; }"
    )
    for grid in (model_grid(9, 16), even_grid(9), model_grid(4, 32)):
        expected = [grid.centres[0], grid.centres[-1], grid.tile, grid.field]
        assert visit.page.evaluate(geometry, grid._asdict()) == pytest.approx(expected)
    assert visit.page.evaluate("ticks([1.9425, 1.945], 0.0025)") == ["1.9425", "1.945"]
    assert visit.page.evaluate("ticks([1_234_000, 1_234_500], 500)") == ["1.234M", "1.2345M"]
    assert visit.page.evaluate("[...ticks([0], 1), ...ticks([0, 200_000], 1e5)]") == ["0", "0", "200k"]
    visit.leave()
    visit = Visit(chromium, both.as_uri())
    visit.page.wait_for_selector(".games .u-over")
    assert visit.page.locator("table.runs tbody tr").count() == 2
    visit.page.locator("tr a").first.click()
    visit.page.wait_for_selector(".charts .u-over")
    visit.leave()


@pytest.mark.parametrize("width", [1_400, 390])
def test_an_archive_has_its_tree_of_ways(chromium: Any, tmp_path: Path, width: int) -> None:
    run = write_run(tmp_path / "run", "montezuma", "archive-ram", steps=0)
    append(run, {"step": 50, "archive/rooms": 1}, {"step": 100, "archive/rooms": 2})
    write_archive(run)
    (tmp_path / "page.html").write_text(make_page(collect([run])))
    visit = Visit(chromium, (tmp_path / "page.html").as_uri(), width)
    visit.page.wait_for_selector(".ways ul ul > li >> text=Room 7")
    assert visit.page.locator(".way").all_text_contents() == [
        "Room 4way of 3 stepsscore 0 · 1 gameby step 50",
        "Room 7way of 8 stepsscore 100 · 1 gameby step 100",
    ]
    assert visit.page.locator(".way img").count() == 2
    visit.leave()


@pytest.mark.parametrize(("width", "scheme"), [(1_400, "light"), (390, "dark")])
def test_a_grid_has_its_runs_by_state(chromium: Any, tmp_path: Path, width: int, scheme: str) -> None:
    out = tmp_path / "paper"
    run = write_run(out / "Freeway" / "a2c-100000-s0")
    (out / ".grid").mkdir()
    names = ["Freeway/a2c-100000-s0", "Freeway/a2c-100000-s1", EVIL]
    (out / ".grid" / "plan.json").write_text(json.dumps({"failures": 1, "runs": names}))
    failed = [{"start": "k", "step": -1}, {"end": "k", "code": 1, "error": EVIL}]
    (out / ".grid" / "Freeway--a2c-100000-s1.jsonl").write_text("".join(json.dumps(event) + "\n" for event in failed))
    with serving(out, describe_grid=describe_grid) as server:
        visit = Visit(chromium, server.address, width, scheme)
        visit.page.locator(".grid summary").focus()
        visit.page.keyboard.press("Enter")
        rows = visit.page.locator(".grid tbody tr")
        assert rows.all_text_contents() == [f"{names[1]}given up1{EVIL}", f"{names[0]}waiting0", f"{EVIL}waiting0"]
        assert "3 runs: 1 given up, 2 waiting" in visit.page.locator(".grid summary").text_content()
        (run / "summary.json").write_text('{"finished": true}')
        server.runs._scanned_at = float("-inf")
        server.runs.poll()
        server.runs._scanned_at = float("-inf")
        server.runs.poll()
        visit.page.wait_for_selector(".grid summary >> text=1 finished")
        assert rows.count() == 3  # still open
        rows.locator("a").click()
        visit.page.wait_for_selector(".charts .u-over")
        visit.leave()


def test_a_token_opens_the_page_and_leaves_its_address(chromium: Any, tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "one")
    with serving(tmp_path / "runs", token="correct-horse-battery_9") as server:
        visit = Visit(chromium, server.address)
        visit.page.wait_for_selector("table.runs tbody tr")
        assert visit.page.url == server.address.split("?")[0]
        visit.leave()
