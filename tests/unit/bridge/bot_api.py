"""A stand-in for the Telegram Bot API on loopback: hands out updates that a test queues, keeps what a bot sends."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

TOKEN = "424242:stand-in-token-that-nobody-may-see"
BOT = {"id": 424242, "is_bot": True, "first_name": "Lab", "username": "lab_bot"}


class BotApi:
    """One bot's server side."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._updates: list[dict[str, Any]] = []
        self._next_update = 1
        self._next_message = 100
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.messages: dict[int, dict[str, Any]] = {}
        self.history: list[tuple[str, int, str]] = []
        self.answers: list[str] = []
        self.limit_next_send = 0
        self.files: dict[str, bytes] = {}
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                owner.handle(self)

            do_GET = do_POST  # noqa: N815 - the name that the base class calls

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    # --- what a person does ---

    def say(self, chat: int, text: str) -> None:
        entities = [{"type": "bot_command", "offset": 0, "length": len(text.split()[0])}] if text[0] == "/" else []
        self._queue({"message": {**self._message(chat), "text": text, "entities": entities}})

    def show(self, chat: int, data: bytes, caption: str = "", name: str = "photo.png") -> None:
        self.files[name] = data
        photo = [{"file_id": name, "file_unique_id": name, "width": 1, "height": 1, "file_size": len(data)}]
        self._queue({"message": {**self._message(chat), "photo": photo, "caption": caption}})

    def press(self, chat: int, message_id: int, data: str) -> None:
        query = {
            "id": str(self._next_update), "from": _person(chat), "chat_instance": "1", "data": data,
            "message": {**self._message(chat), "message_id": message_id, "text": "?"},
        }  # fmt: skip
        self._queue({"callback_query": query})

    # --- what a test waits for ---

    def wait_for(self, text: str, chat: int, timeout_s: float = 60.0) -> dict[str, Any]:
        """The newest message in the chat that holds this text."""
        deadline = time.monotonic() + timeout_s
        with self._lock:
            while True:
                found = [m for m in self.messages.values() if m["chat"] == chat and text in m["text"]]
                if found:
                    return found[-1]
                if not self._lock.wait(deadline - time.monotonic()):
                    shown = [m["text"] for m in self.messages.values() if m["chat"] == chat]
                    raise AssertionError(f"{text!r} did not come; the chat shows {shown}")

    def forget(self, text: str, chat: int) -> None:
        """Takes messages with this text out of what the chat shows."""
        with self._lock:
            for message in [m for m in self.messages.values() if m["chat"] == chat and text in m["text"]]:
                del self.messages[message["id"]]

    def texts(self, chat: int) -> list[str]:
        with self._lock:
            return [message["text"] for message in self.messages.values() if message["chat"] == chat]

    # --- the server ---

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        parts = request.path.split("/")
        if parts[1] == "file":
            self._reply(request, self.files.get(parts[-1], b""), "application/octet-stream")
            return
        if parts[1] != f"bot{TOKEN}":
            self._json(request, 401, {"ok": False, "error_code": 401, "description": "Unauthorized"})
            return
        method, fields = parts[2].partition("?")[0], _fields(request, body)
        with self._lock:
            self.calls.append((method, fields))
        status, answer = self._answer(method, fields)
        self._json(request, status, answer)

    def _answer(self, method: str, fields: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if method == "getMe":
            return 200, {"ok": True, "result": BOT}
        if method == "getUpdates":
            return 200, {"ok": True, "result": self._take_updates(int(fields.get("offset", 0)))}
        if method == "getFile":
            path = fields["file_id"]
            result = {"file_id": path, "file_unique_id": path, "file_path": path, "file_size": len(self.files[path])}
            return 200, {"ok": True, "result": result}
        if method in ("sendMessage", "editMessageText"):
            return self._shown(method, fields)
        if method == "answerCallbackQuery":
            self.answers.append(fields.get("text", ""))
        return 200, {"ok": True, "result": True}

    def _shown(self, method: str, fields: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self._lock:
            if self.limit_next_send:
                self.limit_next_send -= 1
                parameters = {"retry_after": 1}
                return 429, {"ok": False, "error_code": 429, "description": "Too Many", "parameters": parameters}
            chat, text = int(fields["chat_id"]), fields["text"]
            if method == "sendMessage":
                self._next_message += 1
                message_id = self._next_message
            else:
                message_id = int(fields["message_id"])
                if self.messages.get(message_id, {}).get("text") == text:
                    text_not = "Bad Request: message is not modified"
                    return 400, {"ok": False, "error_code": 400, "description": text_not}
            markup = json.loads(fields["reply_markup"]) if "reply_markup" in fields else {}
            buttons = [button for row in markup.get("inline_keyboard", []) for button in row]
            self.messages.pop(message_id, None)
            self.messages[message_id] = {"id": message_id, "chat": chat, "text": text, "buttons": buttons}
            self.history.append((method, chat, text))
            self._lock.notify_all()
        return 200, {"ok": True, "result": {**self._message(chat), "message_id": message_id, "text": text}}

    def _take_updates(self, offset: int) -> list[dict[str, Any]]:
        with self._lock:
            self._updates = [update for update in self._updates if update["update_id"] >= offset]
            if not self._updates:
                self._lock.wait(0.2)
            return list(self._updates)

    def _queue(self, update: dict[str, Any]) -> None:
        with self._lock:
            self._updates.append({"update_id": self._next_update, **update})
            self._next_update += 1
            self._lock.notify_all()

    def _message(self, chat: int) -> dict[str, Any]:
        return {
            "message_id": self._next_update, "date": int(time.time()), "from": _person(chat),
            "chat": {"id": chat, "type": "private", "first_name": "P"},
        }  # fmt: skip

    def _json(self, request: BaseHTTPRequestHandler, status: int, value: dict[str, Any]) -> None:
        self._reply(request, json.dumps(value).encode(), "application/json", status)

    def _reply(self, request: BaseHTTPRequestHandler, data: bytes, kind: str, status: int = 200) -> None:
        request.send_response(status)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        with suppress(BrokenPipeError, ConnectionResetError):  # a bot that is shutting down hangs up
            request.wfile.write(data)


def _person(chat: int) -> dict[str, Any]:
    return {"id": chat, "is_bot": False, "first_name": "P"}


def _fields(request: BaseHTTPRequestHandler, body: bytes) -> dict[str, Any]:
    kind = request.headers.get("Content-Type", "")
    if kind.startswith("application/json"):
        return dict(json.loads(body or b"{}"))
    if kind.startswith("multipart/"):
        message = BytesParser().parsebytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + body)
        parts = message.get_payload()
        return {
            str(part.get_param("name", header="content-disposition")): part.get_payload(decode=True).decode()  # type: ignore[union-attr]
            for part in parts  # type: ignore[union-attr]
        }
    return {key: values[0] for key, values in parse_qs(body.decode()).items()}
