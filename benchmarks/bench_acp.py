"""The ACP client against a plain pipe and against the official SDK's client, with one agent for all three."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from labaudit.harnesses.acp.client.client import ACPClient
from labaudit.harnesses.acp.client.session import ACPSession
from labaudit.harnesses.acp.wire.transcript import Transcript

# An agent that says as many updates as its prompt asks for; to `noisy N` it also writes N kilobytes to stderr.
AGENT = """
import json, sys
def send(value):
    sys.stdout.write(json.dumps(value) + "\\n")
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        result = {"protocolVersion": 1, "agentCapabilities": {}}
    elif method == "session/new":
        result = {"sessionId": "s"}
    else:
        words = message["params"]["prompt"][0]["text"].split()
        count = int(words[0])
        noise = int(words[1]) if len(words) > 1 else 0
        chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "word "}}
        for number in range(count):
            send({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": chunk}})
            if noise and number % (count // noise) == 0:
                sys.stderr.write("e" * 1023 + "\\n")
        result = {"stopReason": "end_turn"}
    send({"jsonrpc": "2.0", "id": message["id"], "result": result})
    sys.stdout.flush()
"""
UPDATES = 20_000
TURNS = 300
NOISE_KB = 2_000


def turn(session: ACPSession, text: str) -> None:
    session.send_message(text)
    result = session.wait_turn(300)
    if result is None or result.stop_reason != "end_turn":
        raise SystemExit(f"the turn failed: {result}")


def ours(agent: Path, folder: Path, *, record: bool = True) -> tuple[ACPClient, ACPSession]:
    transcript = Transcript(folder / "transcript.jsonl" if record else None, max_bytes=1 << 30)
    client = ACPClient(folder, [sys.executable, str(agent)], transcript=transcript)
    client.start()
    client.initialize()
    return client, client.session(client.create_session(str(folder)))


class Pipe:
    """The floor: the same lines, read and parsed, and nothing else."""

    def __init__(self, agent: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(agent)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._id = 0
        self.ask("initialize", {})
        self.ask("session/new", {})

    def ask(self, method: str, params: dict[str, object]) -> None:
        self._id += 1
        request = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if json.loads(line).get("id") == self._id:
                return

    def turn(self, text: str) -> None:
        self.ask("session/prompt", {"prompt": [{"type": "text", "text": text}]})

    def close(self) -> None:
        self._process.communicate()


async def sdk_updates(agent: Path) -> tuple[float, float]:
    """The official SDK's client: seconds for many updates in one turn, and for many short turns."""
    import acp

    class Listener(acp.Client):
        seen = 0

        async def session_update(self, session_id: str, update: object, **_: object) -> None:
            Listener.seen += 1

    async with acp.spawn_agent_process(Listener(), sys.executable, str(agent)) as (connection, _):
        await connection.initialize(protocol_version=1)
        session = await connection.new_session(cwd="/", mcp_servers=[])
        began = time.perf_counter()
        await connection.prompt(session_id=session.session_id, prompt=[acp.text_block(str(UPDATES))])
        while Listener.seen < UPDATES:
            await asyncio.sleep(0.01)
        many = time.perf_counter() - began
        began = time.perf_counter()
        for _ in range(TURNS):
            await connection.prompt(session_id=session.session_id, prompt=[acp.text_block("1")])
        return many, time.perf_counter() - began


def timed(work: object, *arguments: object) -> float:
    began = time.perf_counter()
    work(*arguments)  # type: ignore[operator]
    return time.perf_counter() - began


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        agent = folder / "agent.py"
        agent.write_text(AGENT)
        pipe = Pipe(agent)
        floor = min(timed(pipe.turn, str(UPDATES)) for _ in range(3))
        floor_turns = timed(lambda: [pipe.turn("1") for _ in range(TURNS)])
        pipe.close()
        client, session = ours(agent, folder)
        kept = min(timed(turn, session, str(UPDATES)) for _ in range(3))
        turns = timed(lambda: [turn(session, "1") for _ in range(TURNS)])
        noisy = timed(turn, session, f"{UPDATES} {NOISE_KB}")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        turn(session, str(UPDATES * 5))
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        client.close()
        client, session = ours(agent, folder, record=False)
        unkept = min(timed(turn, session, str(UPDATES)) for _ in range(3))
        client.close()
        sdk_many, sdk_turns = asyncio.run(sdk_updates(agent))
        print("| what | seconds | ratio to a plain pipe |\n|---|---|---|")
        for what, seconds, base in (
            (f"{UPDATES:,} updates in one turn, read and parsed from a plain pipe (floor)", floor, floor),
            ("the same through ACPClient, every line in the transcript", kept, floor),
            ("the same through ACPClient, no transcript", unkept, floor),
            (f"the same with {NOISE_KB / 1000:g} MB of stderr meanwhile", noisy, floor),
            ("the same through the official SDK's client, nothing kept", sdk_many, floor),
            (f"{TURNS} turns of one update on a plain pipe (floor)", floor_turns, floor_turns),
            ("the same through ACPClient, every line in the transcript", turns, floor_turns),
            ("the same through the official SDK's client, nothing kept", sdk_turns, floor_turns),
        ):
            print(f"| {what} | {seconds:.3f} | {seconds / base:.2f} |")
        print(f"\nPeak memory grew by {(after - before) / 1024:.1f} MB over {UPDATES * 5:,} further updates.")


if __name__ == "__main__":
    main()
