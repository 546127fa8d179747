"""A language model that says one sentence: an HTTP server on a unix socket, in the shape that the Gemini API has."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from typing import Any

SENTENCE = "the stub model says hello"
_ROUTE = {"reasoning": "short", "model_choice": "flash", "complexity_reasoning": "short", "complexity_score": 10}


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True


class StubModel:
    """Serves until closed; `paths` are the requests it got."""

    def __init__(self, path: Path) -> None:
        self.paths: list[str] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                self.client_address = ("unix", 0)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                owner.paths.append(self.path)
                streaming = "stream" in self.path
                data = json.dumps(owner.answer(SENTENCE if streaming else json.dumps(_ROUTE))).encode()
                body = b"data: " + data + b"\r\n\r\n" if streaming else data
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream" if streaming else "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        self._server = _Server(str(path), Handler)
        path.chmod(0o777)
        assert self._server.socket.family == socket.AF_UNIX
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, text: str) -> dict[str, Any]:
        """One candidate with these words."""
        content = {"role": "model", "parts": [{"text": text}]}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        return {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": usage,
            "modelVersion": "stub",
        }

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
