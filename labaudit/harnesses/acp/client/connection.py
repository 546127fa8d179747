"""Pipes to requests and their answers: raw lines are kept first, read second, dispatched third.

One thread reads; handlers and the futures' callbacks run on it, in the order in which lines came. When the agent ends,
floods or goes deaf, every open request fails with the same labelled reason.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass

from labaudit.errors import LabauditError
from labaudit.harnesses.acp.client.capture import Capture, drain, read_some
from labaudit.harnesses.acp.client.failures import AgentFailure
from labaudit.harnesses.acp.client.link import AgentLink
from labaudit.harnesses.acp.client.outbox import Outbox
from labaudit.harnesses.acp.wire import jsonrpc
from labaudit.harnesses.acp.wire.framing import Frame, LineFramer
from labaudit.harnesses.acp.wire.transcript import Transcript

Result = Future[object]
OnSettled = Callable[[Result], None]
_LOOK_S = 0.5
# An agent may die while its last lines are still in the pipe; they get this long to arrive.
_LAST_LINES_S = 1.0


@dataclass(frozen=True)
class _Open:
    """A request that waits for its answer."""

    method: str
    future: Result
    on_settled: OnSettled | None

    def settle(self, result: object = None, failure: AgentFailure | None = None) -> None:
        """First the callback, then the future: whoever waits finds what the callback did already done."""
        try:
            if self.on_settled is not None:
                self.on_settled(_settled(Future(), result, failure))
        finally:
            _settled(self.future, result, failure)


def _settled(future: Result, result: object, failure: AgentFailure | None) -> Result:
    if failure is not None:
        future.set_exception(failure)
    else:
        future.set_result(result)
    return future


class Connection:
    """One agent's three pipes, while they last."""

    def __init__(
        self,
        link: AgentLink,
        transcript: Transcript,
        *,
        on_request: Callable[[jsonrpc.Request, int], None],
        on_notification: Callable[[jsonrpc.Notification, int], None],
    ) -> None:
        self._link = link
        self._transcript = transcript
        self._on_request = on_request
        self._on_notification = on_notification
        self._lock = threading.Lock()
        self._open: dict[int, _Open] = {}
        self._next_id = 1
        self._closing = False
        self._next_look = 0.0
        self._gone_since: float | None = None
        self.failure: AgentFailure | None = None
        self.stderr = Capture()
        self.defects: dict[str, int] = {}
        streams = link.open()
        self._stdout, self._stderr = streams.stdout, streams.stderr
        self._outbox = Outbox(streams.stdin, transcript, self._stuck)
        self._threads = [
            threading.Thread(target=self._read, name="acp-reader", daemon=True),
            drain(self._stderr, self.stderr, "acp-stderr"),
        ]
        self._threads[0].start()

    # --- sending ---

    def request(self, method: str, params: Mapping[str, object], on_settled: OnSettled | None = None) -> Result:
        """Sends a request; `on_settled` runs on the reading thread, before any later line is looked at."""
        future: Result = Future()
        waiting = _Open(method, future, on_settled)
        with self._lock:
            failure = self.failure
            if failure is None:
                identifier = self._next_id
                self._next_id += 1
                self._open[identifier] = waiting
        if failure is not None:
            waiting.settle(failure=failure)
            return future
        self._outbox.put(jsonrpc.request_line(identifier, method, params))
        return future

    def notify(self, method: str, params: Mapping[str, object]) -> None:
        """Sends a notification."""
        self._outbox.put(jsonrpc.notification_line(method, params))

    def respond(self, identifier: jsonrpc.Id, result: object) -> None:
        """Answers a request of the agent's."""
        self._outbox.put(jsonrpc.result_line(identifier, result))

    def refuse(self, identifier: jsonrpc.Id, code: int, message: str) -> None:
        """Refuses a request of the agent's."""
        self._outbox.put(jsonrpc.error_line(identifier, code, message))

    def wait(self, future: Result, timeout_s: float, what: str) -> object:
        """The answer, or AgentFailure: what it says, `timeout`, or the agent's end."""
        deadline = time.monotonic() + timeout_s
        while True:
            left = deadline - time.monotonic()
            try:
                return future.result(max(0.0, min(left, _LOOK_S)))
            except FutureTimeout:
                if left <= 0:
                    raise AgentFailure("timeout", f"no answer to {what} within {timeout_s:g} s") from None
            self.look_for_the_end()

    def look_for_the_end(self) -> None:
        """Notices an agent that ended while a child of its still holds the pipes open; cheap to call often."""
        now = time.monotonic()
        if self.failure is not None or now < self._next_look:
            return
        self._next_look = now + _LOOK_S
        if self._link.running():
            self._gone_since = None
        elif self._gone_since is None:
            self._gone_since = now
        elif now - self._gone_since > _LAST_LINES_S:
            self._fail(self._ended())

    # --- ending ---

    def close(self, grace_s: float = 2.0) -> None:
        """Ends input, then the agent; open requests fail as `closed`."""
        self._closing = True
        self._outbox.close()
        deadline = time.monotonic() + grace_s / 2
        while self._link.running() and time.monotonic() < deadline:
            time.sleep(0.02)
        self._link.stop(grace_s / 2)
        for thread, stream in zip(self._threads, (self._stdout, self._stderr), strict=True):
            thread.join(_LAST_LINES_S)
            if not thread.is_alive():
                stream.close()
        self._fail(AgentFailure("closed", "the connection was closed"))

    def _stuck(self) -> None:
        if not self._unrecorded():
            self._fail(AgentFailure("deaf", "the agent does not read its input"))

    def _unrecorded(self) -> bool:
        """Ends the conversation when the transcript cannot hold it any more."""
        lost = self._transcript.failure
        if lost is not None:
            what = f"the conversation cannot be recorded: {lost.what}"
            self._fail(AgentFailure("unrecorded", what, where=lost.where, hint=lost.hint))
        return lost is not None

    def _ended(self) -> AgentFailure:
        # The end of the output comes a moment before the end of the process.
        deadline = time.monotonic() + 0.2
        while not (ending := self._link.ending()) and time.monotonic() < deadline:
            time.sleep(0.01)
        return AgentFailure("exited", f"the agent ended ({ending})" if ending else "the agent ended its output")

    def _fail(self, failure: AgentFailure) -> None:
        with self._lock:
            if self.failure is not None:
                return
            self.failure = failure
            left, self._open = self._open, {}
        if failure.kind != "closed":
            self._transcript.note(f"agent_{failure.kind}", failure.what)
        for item in left.values():
            try:
                item.settle(failure=failure)
            except Exception as error:  # noqa: BLE001 - one callback's defect must not keep the others waiting
                self._transcript.note("handler_failed", f"{type(error).__name__}: {error}")

    # --- reading ---

    def _read(self) -> None:
        framer = LineFramer()
        while self.failure is None and (chunk := read_some(self._stdout)):
            for frame in framer.feed(chunk):
                self._take(frame)
        for frame in framer.close():
            self._take(frame)
        if self.failure is None:
            self._fail(AgentFailure("closed", "the connection was closed") if self._closing else self._ended())
        # Whoever writes must never wait for us, also after we stopped listening.
        while read_some(self._stdout):
            pass

    def _take(self, frame: Frame) -> None:
        seq = self._transcript.received(frame)
        if self._unrecorded():
            return
        if self._transcript.full:
            self._fail(AgentFailure("flood", "the agent wrote more than a transcript holds"))
            return
        message = jsonrpc.read_frame(frame)
        try:
            self._dispatch(message, seq)
        except LabauditError as error:
            self._transcript.note("handler_refused", error.what, seq)
        except Exception as error:  # noqa: BLE001 - a callback's defect must not end the conversation it watches
            self._transcript.note("handler_failed", f"{type(error).__name__}: {error}", seq)

    def _dispatch(self, message: jsonrpc.Message, seq: int) -> None:
        if isinstance(message, jsonrpc.Notification):
            self._on_notification(message, seq)
        elif isinstance(message, jsonrpc.Request):
            self._on_request(message, seq)
        elif isinstance(message, jsonrpc.Malformed):
            self.count(message.defect)
            self._transcript.note("malformed", f"{message.defect}: {message.detail}", seq)
            if message.answerable:
                self.refuse(message.id, jsonrpc.INVALID_REQUEST, message.detail or message.defect)
        else:
            self._settle(message, seq)

    def _settle(self, answer: jsonrpc.Response | jsonrpc.ErrorResponse, seq: int) -> None:
        with self._lock:
            # True == 1 and 1.0 == 1 in Python; an id is ours only if it is the very integer.
            found = self._open.pop(answer.id, None) if type(answer.id) is int else None
        if found is None:
            self.count("answer_to_nothing")
            self._transcript.note("answer_to_nothing", f"id {answer.id!r}", seq)
        elif isinstance(answer, jsonrpc.Response):
            found.settle(answer.result)
        else:
            kind = "auth_required" if answer.code == jsonrpc.AUTH_REQUIRED else "rpc_error"
            text = f"the agent refused {found.method}: {answer.message} ({answer.kind}, {answer.code})"
            found.settle(failure=AgentFailure(kind, text, code=answer.code))  # type: ignore[arg-type]

    def count(self, defect: str) -> None:
        """One more defect of this kind."""
        self.defects[defect] = self.defects.get(defect, 0) + 1
