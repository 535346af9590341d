"""The page's server: on this machine only, to read only, and for no other site's pages."""

import gzip
import json
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from socket import socket
from typing import Any
from urllib.parse import parse_qs, urlsplit

from coex.watch.runs import Runs

HOST = "127.0.0.1"
SCRIPTS = ("uplot.js", "format.js", "charts.js", "scene.js", "overview.js", "run.js", "main.js")  # in their order
STYLES = ("uplot.css", "page.css")
# A name that another site's owner can point here is not among them (DNS rebinding); a port may be forwarded.
_HOSTS = {"127.0.0.1", "localhost", "[::1]"}
_SITES = {None, "same-origin", "none"}  # who may ask: the page itself, a person, and programs that are no browsers
_MOST_CONNECTIONS = 64
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_KINDS = {"html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}


def page_file(name: str) -> bytes:
    """Returns one of the page's own files."""
    return files("coex.watch").joinpath("page", name).read_bytes()


class WatchServer(ThreadingHTTPServer):
    """Serves the page and what it asks for; `address` is where."""

    daemon_threads = True
    request_queue_size = 32

    def __init__(self, runs: Runs, port: int) -> None:
        self.runs = runs
        names = ("index.html", *SCRIPTS, *STYLES)
        self.static = {f"/{name}": (_KINDS[name.rpartition(".")[2]], page_file(name)) for name in names}
        self.static["/"] = self.static["/index.html"]
        self._slots = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        super().__init__((HOST, port), _Handler)

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._slots.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        """Says nothing of a browser that went away."""


class _Handler(BaseHTTPRequestHandler):
    server: WatchServer
    protocol_version = "HTTP/1.1"
    timeout = 30  # seconds without a request

    def parse_request(self) -> bool:
        """Whether the request may be answered; one that may not has its answer then."""
        if not super().parse_request():
            return False
        refusal = self._refusal()
        if refusal is not None:
            self.close_connection = True
            self._answer(refusal, "text/plain", refusal.phrase.encode())
        return refusal is None

    def _refusal(self) -> HTTPStatus | None:
        host, origin = self.headers.get_all("Host", []), self.headers.get("Origin")
        if self.command not in ("GET", "HEAD"):
            return HTTPStatus.METHOD_NOT_ALLOWED
        if len(host) != 1 or _host_name(host[0]) not in _HOSTS:
            return HTTPStatus.MISDIRECTED_REQUEST
        if self.headers.get("Sec-Fetch-Site") not in _SITES or origin not in (None, f"http://{host[0]}"):
            return HTTPStatus.FORBIDDEN
        if self.headers.get("Transfer-Encoding") or self.headers.get("Content-Length", "0") != "0":
            return HTTPStatus.BAD_REQUEST
        return None

    def do_GET(self) -> None:
        """Answers with one of a few files, or with what `Runs` tells; nothing in a URL is the name of a file."""
        try:
            url = urlsplit(self.path)
            query = {name: values[-1] for name, values in parse_qs(url.query, max_num_fields=4).items()}
            since = int(query.get("since", "0")[:16])
        except ValueError:
            self._answer(HTTPStatus.BAD_REQUEST, "text/plain", b"Bad Request")
            return
        runs, key = self.server.runs, query.get("id", "")
        if url.path in self.server.static:
            self._answer(HTTPStatus.OK, *self.server.static[url.path])
        elif url.path == "/api/runs":
            self._answer_json(runs.overview(since if query.get("epoch") == runs.epoch else 0))
        elif url.path == "/api/run":
            self._answer_json(runs.detail(key, since if query.get("epoch") == runs.epoch else 0))
        elif url.path == "/api/live":
            self._answer_json(runs.live(key))
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"Not Found")

    def do_HEAD(self) -> None:
        """Answers without a body."""
        self.do_GET()

    def _answer_json(self, value: dict[str, Any] | None) -> None:
        if value is None:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"Not Found")
        else:
            self._answer(HTTPStatus.OK, "application/json", json.dumps(value, separators=(",", ":")).encode())

    def _answer(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response_only(status)
        if len(content) > 4_000 and "gzip" in self.headers.get("Accept-Encoding", ""):
            content = gzip.compress(content, 1)
            self.send_header("Content-Encoding", "gzip")
        for name, value in (*_HEADERS.items(), ("Content-Type", kind), ("Content-Length", str(len(content)))):
            self.send_header(name, value)
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: the terminal is the user's."""


def _host_name(host: str) -> str:
    """localhost:8777 → localhost, [::1]:8777 → [::1]; what has no such form stays as it is."""
    name, colon, port = host.rpartition(":")
    return name.lower() if colon and port.isascii() and port.isdigit() and not name.endswith(":") else host.lower()
