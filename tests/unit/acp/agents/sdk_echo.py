"""An echo agent on the official Python SDK: a peer that nobody here wrote the protocol of."""

import asyncio

from acp import (
    PROTOCOL_VERSION,
    Agent,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    run_agent,
    text_block,
    update_agent_message,
)
from acp.schema import AgentCapabilities, Implementation


class Echo(Agent):
    """Says what it was told, block by block."""

    def __init__(self) -> None:
        self._sessions = 0

    def on_connect(self, conn):
        self._connection = conn

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **_):
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(),
            agent_info=Implementation(name="sdk-echo", version="1.0.0"),
        )

    async def new_session(self, cwd, mcp_servers=None, **_):
        self._sessions += 1
        return NewSessionResponse(session_id=f"echo-{self._sessions}")

    async def prompt(self, prompt, session_id, message_id=None, **_):
        for block in prompt:
            text = getattr(block, "text", "")
            await self._connection.session_update(session_id, update_agent_message(text_block(text)))
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id, **_):
        return None


if __name__ == "__main__":
    asyncio.run(run_agent(Echo()))
