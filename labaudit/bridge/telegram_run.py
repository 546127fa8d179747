"""Options of `labaudit bridge telegram` to a running bot: keys, agents, allowed chats, the token."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from labaudit.attest.signers import KeySigner, Signer
from labaudit.attest.trust_store import ensure_keys
from labaudit.bridge.agents import AgentManager, AgentSpec
from labaudit.bridge.chat import ChatBridge, ChatOptions, parse_allowed
from labaudit.bridge.conversations import ConversationStore
from labaudit.bridge.recording import close_interrupted
from labaudit.bridge.room import RoomOptions
from labaudit.bridge.talks import secret_values
from labaudit.bridge.telegram import PUBLIC_API, TOKEN_VARIABLE, TelegramBot, TelegramPort, quiet_logging
from labaudit.core.redaction import Redactor
from labaudit.errors import BadInput
from labaudit.harnesses.acp.client.detect import Protocol
from labaudit.store.lab_folder import LabFolder


def run_telegram(
    *,
    agents: Sequence[tuple[str, tuple[str, ...]]],
    allowed: Sequence[str],
    cwd: Path,
    protocol: Protocol,
    dialect: Literal["v1", "kiro"],
    api_url: str | None,
    permission_timeout: float,
    turn_timeout: float,
    messages_per_minute: int,
    edit_every: float,
    secrets: Sequence[str],
    lab_dir: Path | None,
    key: Path | None,
    no_sign: bool,
    log: Callable[[str], None],
) -> None:
    """Runs the bot until it is told to stop."""
    token = os.environ.get(TOKEN_VARIABLE, "")
    if not token:
        raise BadInput("the bot token is not set", where=TOKEN_VARIABLE, hint="export it; it is never written to disk")
    hidden = {**secret_values(secrets), TOKEN_VARIABLE: token}
    redactor = Redactor((), hidden)
    if not cwd.is_dir():
        raise BadInput("is no directory", where=str(cwd), hint="--cwd names the agents' working directory")
    lab = LabFolder.locate(lab_dir)
    chats = parse_allowed(allowed)
    folder = str(cwd.resolve())
    specs = [AgentSpec(name, command, folder, protocol, dialect) for name, command in agents]

    def say(text: str) -> None:
        log(redactor.text(text))

    quiet_logging(redactor)
    bot = TelegramBot(token, api_url=api_url or PUBLIC_API, log=say)
    signer = _signer(lab, key, no_sign, say)
    for session_id in close_interrupted(lab, signer):
        say(f"sealed {session_id}, which was interrupted")
    manager = AgentManager(lab, specs, signer=signer, secrets=hidden, withheld=(TOKEN_VARIABLE,))
    state = lab.path / "bridge" / "telegram"

    def make(port: TelegramPort) -> ChatBridge:
        options = ChatOptions(
            allowed=chats,
            messages_per_minute=messages_per_minute,
            room=RoomOptions(turn_timeout, permission_timeout, edit_every),
        )
        return ChatBridge(manager, ConversationStore(state), port, options, state / "images", say)

    bot.run(make)


def _signer(lab: LabFolder, key: Path | None, no_sign: bool, say: Callable[[str], None]) -> Signer | None:
    if no_sign:
        return None
    keys = ensure_keys(lab, key_path=key)
    if keys.made_now:
        say(f"made a signing key: {keys.path}")
    return KeySigner(keys.signing)
