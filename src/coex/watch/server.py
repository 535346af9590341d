"""The page's server: on this machine only unless there is a token, to read only, and for no other site's pages."""

import gzip
import hmac
import ipaddress
import json
import re
import socket
import threading
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from importlib.resources import files
from socketserver import ThreadingTCPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from coex.errors import UsageError
from coex.watch.runs import Runs

HOST = "127.0.0.1"
_ASK_FOR_TOKEN = "Open the address that coex watch printed: it holds the token."
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,200}")
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


class WatchServer(ThreadingTCPServer):
    """Serves the page and what it asks for; `address` is where."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 32

    def __init__(self, runs: Runs, port: int, host: str = HOST, token: str | None = None) -> None:
        """`token` is what a browser must bring once; raises UsageError for one that can be guessed, or is missing."""
        if token is not None and not _TOKEN.fullmatch(token):
            raise UsageError("--token takes 16 to 200 letters, figures, - or _; without a value, it makes one")
        if token is None and not _is_loopback(host):
            raise UsageError(f"--host {host} lets other machines in: add --token, which keeps out who does not have it")
        self.runs, self.token = runs, token
        names = ("index.html", *re.findall(r'="([a-z]+\.(?:js|css))"', page_file("index.html").decode()))
        self.static = {f"/{name}": (_KINDS[name.rpartition(".")[2]], page_file(name)) for name in names}
        self.static["/"] = self.static["/index.html"]
        self._slots = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)
        name = socket.gethostname() if host in ("0.0.0.0", "::", "") else f"[{host}]" if ":" in host else host
        self._names = _HOSTS | ({name.lower()} if token else set())
        self.address = f"http://{name}:{self.server_address[1]}/" + (f"?token={token}" if token else "")

    def knows(self, host: str) -> bool:
        """Returns whether this is a name of this machine, and not one that another site's owner can point here."""
        name = _host_name(host)
        return name in self._names or (self.token is not None and _is_address(name))

    @property
    def cookie(self) -> str:
        """What a browser shows instead of the token; cookies do not tell ports apart, so their names do."""
        return f"coex-{self.server_address[1]}={self.token}"

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

    def handle_error(self, request: socket.socket | tuple[bytes, socket.socket], client_address: Any) -> None:
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
            self._refuse(refusal)
        return refusal is None

    def _refusal(self) -> HTTPStatus | None:
        host, origin = self.headers.get_all("Host", []), self.headers.get("Origin")
        if self.command not in ("GET", "HEAD"):
            return HTTPStatus.METHOD_NOT_ALLOWED
        if len(host) != 1 or not self.server.knows(host[0]):
            return HTTPStatus.MISDIRECTED_REQUEST
        if self.headers.get("Sec-Fetch-Site") not in _SITES or origin not in (None, f"http://{host[0]}"):
            return HTTPStatus.FORBIDDEN
        if self.headers.get("Transfer-Encoding") or self.headers.get("Content-Length", "0") != "0":
            return HTTPStatus.BAD_REQUEST
        return None if self._may_look() else HTTPStatus.UNAUTHORIZED

    def _may_look(self) -> bool:
        """Whether the request brings the token: the page's address does, once, and then its cookie."""
        if self.server.token is None:
            return True
        shown = [part.strip() for cookies in self.headers.get_all("Cookie", []) for part in cookies.split(";")]
        return self._brings_token() or any(_is_equal(part, self.server.cookie) for part in shown)

    def _brings_token(self) -> bool:
        path, _, token = self.path.partition("?token=")
        return self.server.token is not None and path == "/" and _is_equal(token, self.server.token)

    def do_GET(self) -> None:
        """Answers with one of a few files, or with what `Runs` tells; nothing in a URL is the name of a file."""
        if self._brings_token():  # it goes from the address line, and from what the browser remembers of it
            cookie = f"{self.server.cookie}; HttpOnly; SameSite=Strict; Path=/"
            self._answer(HTTPStatus.SEE_OTHER, "text/plain", b"", {"Location": "/", "Set-Cookie": cookie})
            return
        try:
            url = urlsplit(self.path)
            query = {name: values[-1] for name, values in parse_qs(url.query, max_num_fields=4).items()}
            since = int(query.get("since", "0")[:16])
        except ValueError:
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        runs, key = self.server.runs, query.get("id", "")
        since = since if query.get("epoch") == runs.epoch else 0
        if url.path in self.server.static:
            self._answer(HTTPStatus.OK, *self.server.static[url.path])
        elif url.path == "/api/runs":
            self._answer_json(runs.overview(since))
        elif url.path == "/api/run":
            self._answer_json(runs.detail(key, since))
        elif url.path == "/api/live":
            self._answer_json(runs.live(key))
        else:
            self._refuse(HTTPStatus.NOT_FOUND)

    do_HEAD = do_GET  # noqa: N815 - `_answer` leaves the body out

    def _answer_json(self, value: dict[str, Any] | None) -> None:
        if value is None:
            self._refuse(HTTPStatus.NOT_FOUND)
        else:
            self._answer(HTTPStatus.OK, "application/json", json.dumps(value, separators=(",", ":")).encode())

    def _refuse(self, status: HTTPStatus) -> None:
        said = _ASK_FOR_TOKEN if status is HTTPStatus.UNAUTHORIZED else status.phrase
        self._answer(status, "text/plain", said.encode())

    def _answer(self, status: HTTPStatus, kind: str, content: bytes, more: dict[str, str] | None = None) -> None:
        self.send_response_only(status)
        if len(content) > 4_000 and "gzip" in self.headers.get("Accept-Encoding", ""):
            content = gzip.compress(content, 1)
            self.send_header("Content-Encoding", "gzip")
        headers = _HEADERS | (more or {}) | {"Content-Type": kind, "Content-Length": str(len(content))}
        for name, value in headers.items():
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


def _is_equal(one: str, other: str) -> bool:
    """Compares in a time that does not tell how much is right."""
    return hmac.compare_digest(one.encode("utf-8", "surrogateescape"), other.encode())


def _is_address(name: str) -> bool:
    with suppress(ValueError):
        return bool(ipaddress.ip_address(name.removeprefix("[").removesuffix("]")))
    return False


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
