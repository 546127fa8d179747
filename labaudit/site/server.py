"""A site's folder to pages on a loopback address, for looking at it before it is published.

Read-only, never beyond the folder, with the headers that a published site should have. A request under a name that
anyone could register is refused, so that no web page can reach an unpublished site by pointing its name at loopback.
"""

from __future__ import annotations

import ipaddress
import os
import re
import stat
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from labaudit.errors import BadInput, EnvironmentLacks
from labaudit.site.machine_files import HEADERS

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".jsonld": "application/ld+json",
    ".jsonschema": "application/schema+json",
    ".svg": "image/svg+xml",
    ".zip": "application/zip",
    ".parquet": "application/vnd.apache.parquet",
}
# RFC 6761: nobody can register a name under these.
_RESERVED = re.compile(r"(?:[a-z0-9-]+\.)*(?:localhost|test)")


class SiteServer(ThreadingHTTPServer):
    """Serves one folder; `address` is what a reader opens."""

    daemon_threads = True
    allow_reuse_address = False

    def __init__(self, folder: Path, *, port: int = 0, host: str = "127.0.0.1", quiet: bool = True) -> None:
        if not (folder / "index.html").is_file():
            raise BadInput("is no site", where=str(folder), hint="build one: labaudit site RUN --out DIR")
        if not ipaddress.ip_address(host).is_loopback:
            raise BadInput(f"{host} is no loopback address", hint="publish the folder on a web server instead")
        self.folder = folder.resolve()
        self.quiet = quiet
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            what = f"port {port} cannot be used: {error.strerror}"
            raise EnvironmentLacks(what, hint="choose another --port, or 0 for any") from error

    @property
    def address(self) -> str:
        """`http://127.0.0.1:<port>/`."""
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}/"


class _Handler(BaseHTTPRequestHandler):
    server: SiteServer
    protocol_version = "HTTP/1.1"
    server_version = "labaudit"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        if not self.server.quiet:
            super().log_message(format, *args)

    def _answer(self, *, body: bool) -> None:
        if not is_local_name(self.headers.get("Host", "")):
            self._send(HTTPStatus.MISDIRECTED_REQUEST, b"this server answers to localhost only\n", "text/plain", body)
            return
        found = open_inside(self.server.folder, self.path)
        if found is None:
            page = open_inside(self.server.folder, "/404.html")
            data = page[0].read() if page else b"not found\n"
            self._send(HTTPStatus.NOT_FOUND, data, TYPES[".html"], body)
            return
        stream, size, name = found
        with stream:
            self._start(HTTPStatus.OK, size, TYPES.get(Path(name).suffix, "application/octet-stream"))
            while body and (chunk := stream.read(1 << 18)):
                self.wfile.write(chunk)

    def _send(self, status: HTTPStatus, data: bytes, kind: str, body: bool) -> None:
        self._start(status, len(data), kind)
        if body:
            self.wfile.write(data)

    def _start(self, status: HTTPStatus, size: int, kind: str) -> None:
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(size))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()


def is_local_name(host: str) -> bool:
    """True for loopback addresses and for names that nobody can register."""
    name = host.lower().rsplit(":", 1)[0] if not host.endswith("]") else host.lower()
    if _RESERVED.fullmatch(name):
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def open_inside(folder: Path, target: str) -> tuple[BinaryIO, int, str] | None:
    """A regular file below `folder`, opened without following any link; None for everything else."""
    parts = [part for part in unquote(urlsplit(target).path).split("/") if part]
    if any(part in (".", "..") or "\0" in part or "\\" in part for part in parts):
        return None
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    name = ""
    try:
        for part in parts or ["index.html"]:
            name = part
            descriptor = _step(descriptor, part)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            name = "index.html"
            descriptor = _step(descriptor, name)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            os.close(descriptor)
            return None
        return os.fdopen(descriptor, "rb"), found.st_size, name
    except (OSError, UnicodeEncodeError):
        return None


def _step(folder: int, name: str) -> int:
    try:
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)
