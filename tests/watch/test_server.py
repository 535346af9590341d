"""The server answers the page, and nobody else; with hostile requests."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from coex.cli import main
from coex.watch.server import WatchServer

from .conftest import ask, serving, write_run

EVIL = "<img src=x onerror=alert(1)>"


def test_the_page_and_all_it_needs_are_there(server: WatchServer) -> None:
    status, headers, page = ask(server, "/")
    assert status == 200
    assert b"<style" not in page
    assert b"onclick" not in page
    for part in page.decode().split('"'):
        if part.endswith((".js", ".css")):
            status, kind, _ = ask(server, f"/{part}")
            assert status == 200
            assert kind["Content-Type"].startswith("text/")
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in headers
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8777",
        "127.0.0.1.evil.example",
        "localhost.evil.example:80",
        "",
        "[::1",
        "localhost:x",
        "127.0.0.1:80@evil.example",
        "evil.example:127.0.0.1",
        "0.0.0.0",
        "[::ffff:1.2.3.4]:80",
        "127.0.0.1, evil.example",
    ],
)
def test_another_name_for_this_machine_is_refused(server: WatchServer, host: str) -> None:
    for path in ("/", "/api/runs"):
        status, _, content = ask(server, path, Host=host)
        assert status in (400, 421)
        assert b"Freeway" not in content


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:9000", "LOCALHOST", "[::1]:8777"])
def test_this_machine_is_known_by_its_names(server: WatchServer, host: str) -> None:
    assert ask(server, "/api/runs", Host=host)[0] == 200


def test_two_host_headers_are_refused(server: WatchServer) -> None:
    with socket.create_connection(server.server_address[:2]) as connection:
        connection.sendall(b"GET /api/runs HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        assert connection.recv(4_000).startswith(b"HTTP/1.1 421")


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "Same-Origin"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
    ],
)
def test_other_sites_are_refused(server: WatchServer, headers: dict[str, str]) -> None:
    status, _, content = ask(server, "/api/runs", **headers)
    assert status == 403
    assert b"Freeway" not in content


def test_the_page_itself_is_answered(server: WatchServer) -> None:
    address = f"127.0.0.1:{server.server_address[1]}"
    assert ask(server, "/api/runs", Sec_Fetch_Site="same-origin", Origin=f"http://{address}")[0] == 200
    assert ask(server, "/", Sec_Fetch_Site="none")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", "X" * 50])
def test_nothing_but_reading(server: WatchServer, method: str) -> None:
    status, headers, _ = ask(server, "/api/runs", method)
    assert status == 405
    assert headers["Allow"] == "GET, HEAD"


def test_heads_have_no_body(server: WatchServer) -> None:
    status, headers, content = ask(server, "/", "HEAD")
    assert (status, content) == (200, b"")
    assert int(headers["Content-Length"]) > 100


def test_a_body_is_refused(server: WatchServer) -> None:
    assert ask(server, "/api/runs", Content_Length="5")[0] == 400
    assert ask(server, "/api/runs", Transfer_Encoding="chunked")[0] == 400


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/page.css/../../server.py",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/uplot.LICENSE",
        "/server.py",
        "/api/run?id=../one",
        "/api/run?id=/etc/passwd",
        "/api/live?id=..%2F..%2Fone",
        "/api/run",
        "/api/live?id=",
        "/api",
        "//etc/passwd",
        "http://127.0.0.1/etc/passwd",
        "/\\..\\..",
        "/config.json",
    ],
)
def test_no_path_reaches_the_file_system(server: WatchServer, path: str) -> None:
    status, _, content = ask(server, path)
    assert status == 404
    assert content == b"Not Found"


@pytest.mark.parametrize(
    "path", ["/api/runs?since=x", "/api/runs?since=1e9", "/api/runs?a=1&b=2&c=3&d=4&e=5", "//[", "/api/runs?since=٣x"]
)
def test_nonsense_is_refused(server: WatchServer, path: str) -> None:
    with socket.create_connection(server.server_address[:2]) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert connection.recv(4_000).split()[1] in (b"400", b"404")


def test_names_and_metrics_of_others_are_data(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / EVIL.replace("/", ""))
    config = json.loads((run / "config.json").read_text())
    config |= {"game": EVIL, "method": EVIL * 100, "seed": EVIL}
    (run / "config.json").write_text(json.dumps(config))
    with serving(tmp_path / "runs") as server:
        status, headers, content = ask(server, "/api/runs")
    (card,) = json.loads(content)["runs"]
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert card["game"] == EVIL
    assert len(card["method"]) <= 300
    assert card["seed"] == 0


def test_many_idle_connections_do_not_grow_without_bound(server: WatchServer) -> None:
    idle = [socket.create_connection(server.server_address[:2]) for _ in range(80)]
    for connection in idle[64:]:
        connection.settimeout(5)
        assert connection.recv(1) == b""  # closed: there are enough
    for connection in idle:
        connection.close()


def test_it_needs_no_torch_and_says_where_it_is(tmp_path: Path) -> None:
    script = (
        "import sys, coex.cli, coex.watch.server as s\n"
        "s.WatchServer.serve_forever = lambda self: print('torch' in sys.modules)\n"
        f"sys.exit(coex.cli.main(['watch', {str(tmp_path / 'later')!r}, '--port', '0', '--no-open']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    address, without = done.stdout.splitlines()
    assert address.startswith("http://127.0.0.1:")
    assert without == "False"


@pytest.mark.parametrize(("screen", "options"), [(":0", []), (":0", ["--no-open"]), ("", [])])
def test_it_opens_the_page_where_there_is_a_screen(tmp_path: Path, screen: str, options: list[str]) -> None:
    opener, opened = tmp_path / "opener", tmp_path / "opened"
    opener.write_text(f'#!/bin/sh\necho "$1" > {opened}.tmp && mv {opened}.tmp {opened}\n')
    opener.chmod(0o755)
    command = [sys.executable, "-m", "coex", "watch", str(tmp_path), "--port", "0", *options]
    environment = os.environ | {"BROWSER": str(opener), "DISPLAY": screen, "WAYLAND_DISPLAY": ""}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[0]
            expected, until = (screen or sys.platform == "darwin") and not options, time.monotonic() + 30
            while expected and not opened.exists() and time.monotonic() < until:
                time.sleep(0.05)
            with urllib.request.urlopen(address) as page:
                assert page.status == 200
        finally:
            process.kill()
    assert [path.read_text().strip() for path in tmp_path.glob("opened")] == ([address] if expected else [])


def test_two_hundred_runs_are_shown_within_a_second_of_the_start(tmp_path: Path) -> None:
    model = write_run(tmp_path / "runs" / "0", steps=500)
    for index in range(1, 200):
        shutil.copytree(model, tmp_path / "runs" / str(index))
    for index in range(0, 200, 5):  # broken: no configuration, no log
        (tmp_path / "runs" / str(index) / "config.json").write_text("{")
        (tmp_path / "runs" / str(index) / "metrics.jsonl").write_bytes(b"\xff\x00" * 5_000)
    command = [sys.executable, "-m", "coex", "watch", str(tmp_path / "runs"), "--port", "0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().split("/")[2].rpartition(":")[2])
            cpu_times = psutil.Process(process.pid).cpu_times
            began, seen = time.monotonic(), 0
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as page:
                assert b"coex" in page.read()
            assert time.monotonic() - began < 1
            assert sum(cpu_times()[:2]) < 1  # seconds, with all that is imported before
            while seen < 200:  # what has been read so far is shown at once
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/runs") as answer:
                    cards = json.loads(answer.read())["runs"]
                seen = sum(card["status"] != "stopped" or bool(card["newest"]) for card in cards)
                assert sum(cpu_times()[:2]) < 10
                time.sleep(0.2)
            statuses = [card["status"] for card in cards]
            assert (statuses.count("broken"), statuses.count("stopped")) == (40, 160)
            time.sleep(2)
            before = sum(cpu_times()[:2])
            time.sleep(6)
            assert sum(cpu_times()[:2]) - before < 1.5  # seconds, while nothing happens
        finally:
            process.kill()


TOKEN = "correct-horse-battery_9"


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[WatchServer]:
    write_run(tmp_path / "guarded" / "one")
    with serving(tmp_path / "guarded", host="0.0.0.0", token=TOKEN) as server:
        yield server


def test_a_token_is_brought_once_and_then_its_cookie(guarded: WatchServer) -> None:
    assert guarded.address.endswith(f":{guarded.server_address[1]}/?token={TOKEN}")
    status, headers, content = ask(guarded, f"/?token={TOKEN}")
    assert (status, headers["Location"], content) == (303, "/", b"")
    cookie, *limits = headers["Set-Cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} == set(limits)
    for path in ("/", "/page.css", "/api/runs"):
        assert ask(guarded, path, Cookie=f"other=1; {cookie}; more=2")[0] == 200
    assert b"Freeway" in ask(guarded, "/api/runs", Cookie=cookie)[2]


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        "coex-{port}=",
        "coex-{port}=None",
        "coex-{port}",
        f"coex-1={TOKEN}",
        f"{TOKEN}",
        f"coex-{{port}}={TOKEN[:-1]}",
        f"coex-{{port}}={TOKEN}x",
        f"coex-{{port}}={TOKEN.upper()}",
        f'coex-{{port}}="{TOKEN}"',
        "coex-{port}=\xff\x00é",
        ";" * 1_000,
    ],
)
def test_without_the_token_nothing_is_told(guarded: WatchServer, cookie: str) -> None:
    for path in ("/", "/index.html", "/page.css", "/api/runs", "/api/run?id=x", "/nothing"):
        status, headers, content = ask(guarded, path, Cookie=cookie.format(port=guarded.server_address[1]))
        assert status == 401
        assert "Set-Cookie" not in headers
        assert content.startswith(b"Open the address")


@pytest.mark.parametrize(
    "path",
    [
        "/?token=",
        f"/?token={TOKEN[:-1]}",
        f"/?token={TOKEN}x",
        f"/?token={TOKEN}&a=1",
        f"/?a=1&token={TOKEN}",
        f"/api/runs?token={TOKEN}",
        f"//evil.example/?token={TOKEN}",
        f"/?token={TOKEN.upper()}",
        "/?token=%FF",
    ],
)
def test_a_wrong_token_is_no_token(guarded: WatchServer, path: str) -> None:
    status, headers, _ = ask(guarded, path)
    assert status == 401
    assert "Set-Cookie" not in headers


@pytest.mark.parametrize("host", ["evil.example", "0.0.0.0.evil.example", "{name}.evil.example", "", "127.0.0.1@evil"])
def test_a_token_does_not_make_up_for_another_name(guarded: WatchServer, host: str) -> None:
    cookie = f"coex-{guarded.server_address[1]}={TOKEN}"
    assert ask(guarded, "/api/runs", Host=host.format(name=socket.gethostname()), Cookie=cookie)[0] in (400, 421)
    assert ask(guarded, f"/?token={TOKEN}", Host=host.format(name=socket.gethostname()))[0] in (400, 421)
    assert ask(guarded, "/api/runs", Cookie=cookie, Sec_Fetch_Site="cross-site")[0] == 403
    assert ask(guarded, f"/?token={TOKEN}", Sec_Fetch_Site="cross-site")[0] == 403
    assert ask(guarded, f"/?token={TOKEN}", "POST")[0] == 405


@pytest.mark.parametrize("host", ["{name}:8777", "192.0.2.7:8777", "[2001:db8::7]:8777", "localhost"])
def test_this_machine_has_other_names_for_those_with_a_token(
    guarded: WatchServer, server: WatchServer, host: str
) -> None:
    cookie, name = f"coex-{guarded.server_address[1]}={TOKEN}", host.format(name=socket.gethostname())
    assert ask(guarded, "/api/runs", Host=name, Cookie=cookie)[0] == 200
    assert ask(server, "/api/runs", Host=name)[0] == (200 if host == "localhost" else 421)


def test_bad_input_is_one_line(tmp_path: Path, server: WatchServer, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    taken = str(server.server_address[1])
    for arguments, words in (
        ([str(tmp_path / "file")], "is a file"),
        ([str(tmp_path), "--port", "x"], "whole number"),
        ([str(tmp_path), "--port", "70000"], "65535"),
        ([str(tmp_path), "--port", taken], "cannot be had"),
        ([str(tmp_path), "--host", "0.0.0.0"], "--token"),
        ([str(tmp_path), "--host", "::"], "--token"),
        ([str(tmp_path), "--host", ""], "--token"),
        ([str(tmp_path), "--host", "127.0.0.1.evil.example"], "--token"),
        ([str(tmp_path), "--host", "0.0.0.0", "--token", "short"], "16"),
        ([str(tmp_path), "--token", "with a space and more"], "16"),
        ([str(tmp_path), "--token", "x" * 300], "16"),
        ([str(tmp_path), "--host", "192.0.2.1", "--token"], "cannot be had"),
        ([str(tmp_path), "--host", "a..b", "--token"], "cannot be had"),
    ):
        assert main(["watch", *arguments]) == 2
        lines = capsys.readouterr().err.strip().splitlines()
        assert len(lines) == 1
        assert words in lines[0]
