"""Messages of a chat platform to rooms: who may talk, how often, and what each command does."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from labaudit.bridge.agents import AgentManager
from labaudit.bridge.conversations import ConversationStore
from labaudit.bridge.room import Room, RoomOptions
from labaudit.bridge.turn_view import ChatPort, Undelivered
from labaudit.errors import LabauditError
from labaudit.harnesses.acp.client.settings import SettingName
from labaudit.harnesses.acp.wire.dialect import text_block

COMMANDS = {
    "/new": "start a new session",
    "/prompt": "send the rest of the line as it is",
    "/agent": "show the agents, or switch to one",
    "/cancel": "end the running turn",
    "/mode": "show the mode, or ask for one",
    "/model": "show the model, or ask for one",
    "/status": "how things stand",
}
_AT_ANY_TIME = ("/cancel", "/status")
MAX_STRANGERS = 1000
MAX_SAID = 32_000


@dataclass(frozen=True)
class ChatOptions:
    """Who may talk, and how much."""

    allowed: frozenset[int]
    platform: str = "telegram"
    messages_per_minute: int = 20
    room: RoomOptions = field(default_factory=RoomOptions)


class ChatBridge:
    """All chats of one platform. `on_*` return at once; agents are talked to on threads of their own."""

    def __init__(
        self,
        manager: AgentManager,
        store: ConversationStore,
        port: ChatPort,
        options: ChatOptions,
        images: Path,
        log: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._manager = manager
        self._store = store
        self._port = port
        self._options = options
        self._images = images
        self._log = log
        self._lock = threading.Lock()
        self._rooms: dict[int, Room] = {}
        self._workers: dict[int, ThreadPoolExecutor] = {}
        self._busy: set[int] = set()
        self._heard: dict[int, deque[float]] = {}
        self.strangers: dict[int, int] = {}

    # --- what the platform calls ---

    def on_text(self, chat_id: int, text: str) -> None:
        """A message."""
        room = self._room(chat_id)
        if room is None or not self._within_rate(chat_id):
            return
        word, _, rest = text.strip()[:MAX_SAID].partition(" ")
        # In groups a command names its bot: /status@my_bot.
        name = word.partition("@")[0].lower() if word.startswith("/") else ""
        if name in _AT_ANY_TIME:
            self._at_once(room, name)
        else:
            self._in_turn(room, lambda: self._take(room, name, word, rest.strip(), text.strip()[:MAX_SAID]))

    def on_image(self, chat_id: int, data: bytes, suffix: str, caption: str) -> None:
        """An image."""
        room = self._room(chat_id)
        if room is not None and self._within_rate(chat_id):
            self._in_turn(room, lambda: room.picture(data, suffix, caption[:MAX_SAID]))

    def on_button(self, chat_id: int, data: str) -> str:
        """A button; returns what to tell the one who pressed it."""
        room = self._room(chat_id)
        parts = data.split(":")
        if room is None or len(parts) != 3 or parts[0] != "p" or not (parts[1].isdigit() and parts[2].isdigit()):
            return "This button does nothing."
        return room.press(int(parts[1]), int(parts[2]))

    def is_allowed(self, chat_id: int) -> bool:
        """Whether this chat may talk at all."""
        return chat_id in self._options.allowed

    def tell(self, chat_id: int, text: str) -> None:
        """A message of the bridge's own to an allowed chat."""
        if self.is_allowed(chat_id):
            self._send(chat_id, text)

    def close(self) -> None:
        """Cancels what runs, ends every agent, seals every record."""
        for room in list(self._rooms.values()):
            room.cancel()
        for worker in list(self._workers.values()):
            worker.shutdown(wait=True, cancel_futures=True)
        for room in list(self._rooms.values()):
            room.close()

    def wait_idle(self, timeout_s: float) -> bool:
        """True once no chat has anything running."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            with self._lock:
                if not self._busy:
                    return True
            time.sleep(0.02)
        return False

    # --- who and how often ---

    def _room(self, chat_id: int) -> Room | None:
        if chat_id not in self._options.allowed:
            self._refuse(chat_id)
            return None
        with self._lock:
            if chat_id not in self._rooms:
                key = f"{self._options.platform}-{chat_id}"
                self._rooms[chat_id] = Room(
                    chat_id, key, self._manager, self._store, self._port, self._images, self._options.room
                )
                self._workers[chat_id] = ThreadPoolExecutor(1, thread_name_prefix=key)
            return self._rooms[chat_id]

    def _refuse(self, chat_id: int) -> None:
        with self._lock:
            known = chat_id in self.strangers
            if known or len(self.strangers) < MAX_STRANGERS:
                self.strangers[chat_id] = self.strangers.get(chat_id, 0) + 1
        if not known:
            # What a stranger said is neither kept nor answered beyond this.
            self._log(f"refused a message from chat {chat_id}, which is not allowed")
            self._send(chat_id, "This bot is private.")

    def _within_rate(self, chat_id: int) -> bool:
        now = time.monotonic()
        with self._lock:
            heard = self._heard.setdefault(chat_id, deque())
            while heard and now - heard[0] > 60:
                heard.popleft()
            heard.append(now)
            count = len(heard)
            if count > self._options.messages_per_minute:
                heard.pop()
        if count == self._options.messages_per_minute + 1:
            self._send(chat_id, "Too many messages in a minute; this one was left unread.")
        return count <= self._options.messages_per_minute

    def _send(self, chat_id: int, text: str) -> None:
        try:
            self._port.send(chat_id, text)
        except Undelivered as error:
            self._log(error.what)

    # --- commands ---

    def _in_turn(self, room: Room, action: Callable[[], None]) -> None:
        with self._lock:
            busy = room.chat_id in self._busy
            if not busy:
                self._busy.add(room.chat_id)
        if busy:
            self._send(room.chat_id, "A turn is running; wait for its end, or /cancel it.")
            return

        def run() -> None:
            try:
                action()
            except LabauditError as error:
                room.say(f"That did not work: {error.what}" + (f" ({error.hint})" if error.hint else ""))
            except Exception as error:  # noqa: BLE001 - one chat's defect must not end the others
                self._log(f"chat {room.chat_id}: {type(error).__name__}: {error}")
                room.say("That did not work: an error of the bridge itself, see its log.")
            finally:
                with self._lock:
                    self._busy.discard(room.chat_id)

        self._workers[room.chat_id].submit(run)

    def _at_once(self, room: Room, name: str) -> None:
        if name == "/cancel":
            self._send(room.chat_id, "Cancelling." if room.cancel() else "Nothing is running.")
        else:
            self._send(room.chat_id, self._status(room))

    def _take(self, room: Room, name: str, word: str, rest: str, whole: str) -> None:
        if name == "/new":
            room.restart()
            room.say("The next message starts a new session.")
        elif name == "/agent":
            self._agent(room, rest)
        elif name in ("/mode", "/model"):
            self._setting(room, "mode" if name == "/mode" else "model", rest)
        elif name in ("/start", "/help"):
            room.say(self._help(room))
        elif name == "/prompt":
            self._prompt(room, rest)
        elif name:
            self._agents_own(room, word, whole)
        else:
            self._prompt(room, whole)

    def _prompt(self, room: Room, text: str) -> None:
        if text:
            room.prompt([text_block(text)], text)
        else:
            room.say("There is nothing to send.")

    def _agent(self, room: Room, name: str) -> None:
        if name:
            room.switch(name)
            room.say(f"Talking to {name} from the next message on.")
        else:
            names = (f"{'* ' if key == room.conversation.current_agent else '  '}{key}" for key in self._manager.agents)
            room.say("Agents:\n" + "\n".join(names))

    def _setting(self, room: Room, name: SettingName, value: str) -> None:
        partner = room.live()
        if not value:
            now, values = partner.choices(name)
            choices = f"; possible: {', '.join(values)}" if values else ""
            room.say(f"{name}: {now or 'not said by the agent'}{choices}")
            return
        setting = partner.set(name, value)
        if not setting.accepted:
            room.say(f"{name} {value}: refused ({setting.error})")
        elif setting.confirmed == value:
            room.say(f"{name} is {value}")
        else:
            room.say(f"{name} {value}: accepted; the agent says {setting.confirmed or 'nothing'}")

    def _agents_own(self, room: Room, word: str, whole: str) -> None:
        partner = room.live()
        known = partner.commands()
        if known and word not in known:
            room.say(f"Neither the bridge nor the agent has {word}; /prompt sends a line as it is.")
            return
        output = partner.command(whole)
        if output is None:
            self._prompt(room, whole)
        else:
            room.say(output or "done")

    def _help(self, room: Room) -> str:
        lines = [f"{name} - {what}" for name, what in COMMANDS.items()]
        own = room.partner.commands() if room.partner else {}
        return "\n".join([*lines, *(f"{name} - {what}" for name, what in sorted(own.items()))])

    def _status(self, room: Room) -> str:
        partner = room.partner
        lines = [f"agent: {room.conversation.current_agent}", f"session: {room.conversation.session_id or 'none yet'}"]
        if partner is not None:
            names: tuple[SettingName, ...] = ("mode", "model")
            for name in names:
                now, _ = partner.choices(name)
                lines.append(f"{name}: {now or 'not said by the agent'}")
            lines.append(f"record: {partner.recorder.folder.session_id}")
        with self._lock:
            lines.append("busy" if room.chat_id in self._busy else "idle")
        return "\n".join(lines)


def parse_allowed(texts: Iterable[str]) -> frozenset[int]:
    """Chat ids from text; negative ones are groups."""
    from labaudit.errors import BadInput

    allowed = set()
    for text in texts:
        for part in text.replace(",", " ").split():
            try:
                allowed.add(int(part))
            except ValueError:
                raise BadInput(f"{part[:40]!r} is no chat id", hint="a whole number; groups are negative") from None
    if not allowed:
        raise BadInput("no chat is allowed", hint="--allow CHAT_ID names one; the bot answers nobody else")
    return frozenset(allowed)
