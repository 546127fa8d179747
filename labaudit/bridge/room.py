"""One chat with its agent: a message at a time, permissions by button, everything that is said on record."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labaudit.bridge.agents import AgentManager
from labaudit.bridge.conversations import Conversation, ConversationStore
from labaudit.bridge.partner import CANCELLED, Ending, Partner
from labaudit.bridge.turn_view import ChatPort, TurnView, Undelivered
from labaudit.errors import LabauditError
from labaudit.harnesses.acp.client.permissions import Decision, PermissionAsk, PermissionOption
from labaudit.harnesses.acp.client.turn import ToolCall
from labaudit.harnesses.acp.wire.dialect import Dialect, image_block, text_block
from labaudit.store import atomic

CHOSEN = "chosen in the chat"
EXPIRED = "nobody answered in time"
# A standing grant outlives the question that people were shown; it is never on offer.
OFFERED = ("allow_once", "reject_once", "reject_always")


@dataclass(frozen=True)
class RoomOptions:
    """Bounds of a chat."""

    turn_timeout_s: float = 3600.0
    permission_timeout_s: float = 300.0
    edit_every_s: float = 1.0


@dataclass
class _Question:
    ask: PermissionAsk
    options: tuple[PermissionOption, ...]
    since: float
    message_id: int | None = None
    title: str = ""


class Room:
    """The state of one allowed chat. Commands and prompts come from one thread; buttons and cancel from any."""

    def __init__(
        self,
        chat_id: int,
        key: str,
        manager: AgentManager,
        store: ConversationStore,
        port: ChatPort,
        images: Path,
        options: RoomOptions,
    ) -> None:
        self.chat_id = chat_id
        self.key = key
        self._manager = manager
        self._store = store
        self._port = port
        self._images = images
        self._options = options
        self._lock = threading.Lock()
        self._questions: dict[int, _Question] = {}
        self._next_question = 1
        self._cancel: str | None = None
        self._view: TurnView | None = None
        self.partner: Partner | None = None
        spec = manager.spec(manager.default)
        kept = store.load(key)
        if kept is None or kept.current_agent not in manager.agents:
            kept = Conversation(spec.name, None, spec.cwd)
        self.conversation = kept

    # --- what the turn shows; called on the reading thread ---

    def chunk(self, text: str) -> None:
        """A piece of the answer."""
        if self._view is not None:
            self._view.chunk(text)

    def tool(self, call: ToolCall) -> None:
        """A tool call's progress."""
        if self._view is not None:
            self._view.tool(call)

    def notice(self, text: str) -> None:
        """Something to know; outside a turn there is nobody to show it."""
        if self._view is not None:
            self._view.notice(text)

    def on_permission(self, ask: PermissionAsk) -> None:
        """Notes the question; the turn's thread puts it to the chat."""
        offered = tuple(option for option in ask.options if option.kind in OFFERED)
        title = (ask.call.title if ask.call else "") or (ask.tool.title if ask.tool else "") or "a tool"
        with self._lock:
            self._questions[self._next_question] = _Question(ask, offered, time.monotonic(), title=title)
            self._next_question += 1

    # --- talking ---

    def prompt(self, blocks: Sequence[dict[str, object]], said: str) -> None:
        """One message to the agent, shown as it is answered."""
        self._cancel = None
        view = self._view = TurnView(self._port, self.chat_id, self._options.edit_every_s)
        try:
            partner = self._live_partner()
            partner.recorder.event("chat.message", {"direction": "in", "text": said})
            ending = partner.ask(blocks, self._options.turn_timeout_s, self._poll)
        except LabauditError as error:
            self.say(f"That did not work: {error.what}")
            self._drop_dead_partner()
            return
        finally:
            self._close_questions()
            view.flush(last=True)
            self._view = None
        self._after(partner, ending, view)

    def picture(self, data: bytes, suffix: str, caption: str) -> None:
        """An image with its caption, if the agent takes images; the bytes become an artifact of the record."""
        try:
            partner = self._live_partner()
        except LabauditError as error:
            self.say(f"That did not work: {error.what}")
            return
        if not partner.takes_images:
            self.say("This agent takes no images.")
            return
        path = self._images / f"{hashlib.sha256(data).hexdigest()}{suffix}"
        atomic.write_bytes(path, data, mode=0o600)
        try:
            block = image_block(self._dialect(), path)
            reference = partner.recorder.keep(data, "image/" + suffix.lstrip(".").replace("jpg", "jpeg"))
            partner.recorder.event("chat.image", {"direction": "in", "artifact": reference})
            self.prompt([text_block(caption), block] if caption else [block], caption)
        except LabauditError as error:
            self.say(f"That did not work: {error.what}")
        finally:
            path.unlink(missing_ok=True)

    def cancel(self) -> bool:
        """Asks the running turn to end; False when none runs."""
        if self._view is None:
            return False
        self._cancel = CANCELLED
        return True

    def press(self, number: int, index: int) -> str:
        """A button of a question was pressed; returns what to tell the one who pressed it."""
        with self._lock:
            question = self._questions.get(number)
        if question is None or not 0 <= index < len(question.options):
            return "This question is closed."
        option = question.options[index]
        if not question.ask.answer(Decision(option, CHOSEN)):
            return "This question was answered before."
        self._settle(number, question)
        return option.name[:180]

    def switch(self, name: str) -> None:
        """Another agent from now on; the running record is sealed."""
        spec = self._manager.spec(name)
        self.close()
        self.conversation = self._store.save(self.key, Conversation(spec.name, None, spec.cwd))

    def restart(self) -> None:
        """A new session from the next message on."""
        self.switch(self.conversation.current_agent)

    def live(self) -> Partner:
        """The partner, started if need be."""
        return self._live_partner()

    def say(self, text: str) -> None:
        """A message of the bridge's own; on record when there is a record."""
        if self.partner is not None:
            self.partner.recorder.event("chat.message", {"direction": "out", "text": text})
        try:
            self._port.send(self.chat_id, text)
        except Undelivered:
            return

    def close(self) -> None:
        """Ends the agent and seals its record."""
        partner, self.partner = self.partner, None
        if partner is not None:
            partner.close()

    # --- inside ---

    def _live_partner(self) -> Partner:
        self._drop_dead_partner()
        if self.partner is None:
            known = self.conversation.session_id
            opened = self._manager.open(self.key, self.conversation.current_agent, known, self, self.on_permission)
            self.partner = opened.partner
            self._keep_place(opened.partner)
            if opened.note:
                self.say(opened.note)
        return self.partner

    def _drop_dead_partner(self) -> None:
        if self.partner is not None and not self.partner.alive:
            self.close()

    def _keep_place(self, partner: Partner) -> None:
        place = Conversation(partner.name, partner.session_id, self._manager.spec(partner.name).cwd)
        self.conversation = self._store.save(self.key, place)

    def _after(self, partner: Partner, ending: Ending, view: TurnView) -> None:
        self._keep_place(partner)
        if view.undelivered:
            partner.recorder.event("chat.undelivered", {"messages": view.undelivered})
        if ending.note:
            self.say(ending.note)
        elif not ending.text.strip():
            self.say("(the agent ended its turn without a word)")
        if not partner.alive:
            self.say("The agent is gone; the next message starts it again.")
            self.close()

    def _poll(self) -> str | None:
        view = self._view
        if view is not None:
            view.flush()
        for number, question in self._open_questions():
            if question.ask.decision is not None:
                self._settle(number, question)
            elif question.message_id is None:
                self._put(number, question)
            elif time.monotonic() - question.since > self._options.permission_timeout_s:
                question.ask.answer(Decision(None, EXPIRED))
                self._settle(number, question)
        return self._cancel

    def _open_questions(self) -> list[tuple[int, _Question]]:
        with self._lock:
            return list(self._questions.items())

    def _put(self, number: int, question: _Question) -> None:
        if not question.options:
            question.ask.answer(Decision(None, "no option that may be offered"))
            return
        buttons = [(option.name, f"p:{number}:{index}") for index, option in enumerate(question.options)]
        kinds = ", ".join(sorted(question.ask.kinds)) or "unknown kind"
        text = f"The agent asks for permission: {question.title} ({kinds})"
        partner = self.partner
        if partner is not None:
            partner.recorder.event("permission.shown", {"text": text, "options": [label for label, _ in buttons]})
        try:
            question.message_id = self._port.send(self.chat_id, text, buttons)
        except Undelivered:
            question.ask.answer(Decision(None, "the question could not be delivered"))

    def _settle(self, number: int, question: _Question) -> None:
        """Takes the buttons away and says how it was decided; the first to come does it."""
        with self._lock:
            if self._questions.pop(number, None) is None:
                return
        decision = question.ask.decision
        if question.message_id is None or decision is None:
            return
        text = f"{question.title}: {decision.name.replace('_', ' ')} ({decision.reason})"
        try:
            self._port.edit(self.chat_id, question.message_id, text)
        except Undelivered:
            return

    def _close_questions(self) -> None:
        for number, question in self._open_questions():
            question.ask.answer(Decision(None, "the turn ended"))
            self._settle(number, question)

    def _dialect(self) -> Dialect:
        return self._manager.spec(self.conversation.current_agent).dialect


