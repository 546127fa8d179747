"""Behaviours of agents that keep to the protocol, each in its own way. A behaviour's return value ends the turn."""

import json
import os
import sys
import time

from endings import exits
from peer import lock, out, permission, say, send, update


def echo(session_id, text, state):
    say(session_id, text)
    return "end_turn"


def plain(session_id, text, state):
    return echo(session_id, text, state)


def tools(session_id, text, state):
    update(session_id, sessionUpdate="tool_call", toolCallId="c1", title="Read a", kind="read", status="in_progress")
    update(session_id, sessionUpdate="tool_call_update", toolCallId="c1", status="completed")
    update(session_id, sessionUpdate="tool_call", toolCallId="c2", title="Run b", kind="execute", status="pending")
    update(session_id, sessionUpdate="tool_call_update", toolCallId="c2", status="failed")
    update(session_id, sessionUpdate="tool_call", toolCallId="c3", title="Think", kind="think", status="pending")
    say(session_id, "done")
    return "end_turn"


def many_tools(session_id, text, state):
    """A tool call every now and then until it is told to stop."""
    for number in range(1000):
        call = f"c{number}"
        update(session_id, sessionUpdate="tool_call", toolCallId=call, title="Read", kind="read", status="pending")
        update(session_id, sessionUpdate="tool_call_update", toolCallId=call, status="completed")
        if state["cancelled"].wait(0.05):
            return "cancelled"
    return "end_turn"


def asks(session_id, text, state):
    message = permission(session_id)
    outcome = message["result"]["outcome"]
    chosen = outcome.get("optionId", outcome["outcome"])
    status = "completed" if chosen == "yes" else "failed"
    update(session_id, sessionUpdate="tool_call_update", toolCallId="t1", status=status)
    say(session_id, f"permission: {chosen}")
    return "end_turn"


def oauth(session_id, text, state):
    send({
        "jsonrpc": "2.0", "method": "_kiro.dev/mcp/oauth_request",
        "params": {"sessionId": session_id, "serverName": "github", "authUrl": "https://github.example/login?x=1"},
    })
    say(session_id, "asked")
    return "end_turn"


def kiro(session_id, text, state):
    """Kiro's own notifications around a turn in its own dialect."""
    def tell(name, **fields):
        params = {"sessionId": session_id, **fields}
        send({"jsonrpc": "2.0", "method": "_kiro.dev/" + name, "params": params})

    named = {"/agent": "Manage agents", "/context": "Manage context"}
    commands = [{"name": name, "description": what, "subcommands": ["list"]} for name, what in named.items()]
    tell("commands/available", commands=commands)
    tell("compaction/status", status="compacting", progress=0.5)
    tell("clear/status", status="cleared")
    tell("mcp/server_initialized", serverName="github", tools=["search_repos"])
    tell("mcp/oauth_request", serverName="github", authUrl="https://github.example/login")
    tell("made/up", x=1)
    update(session_id, type="ToolCall", id="k1", name="execute_bash", parameters={"command": "ls"}, status="running")
    update(session_id, type="ToolCallUpdate", id="k1", status="completed")
    update(session_id, type="AgentMessageChunk", content="kiro says " + text)
    update(session_id, type="TurnEnd")
    if "KIRO_CHAT_LOG_FILE" in os.environ:
        with open(os.environ["KIRO_CHAT_LOG_FILE"], "a") as log:
            log.write(f"level {os.environ['KIRO_LOG_LEVEL']} key {os.environ.get('MODEL_API_KEY', '')}\n")
    if text == "terminate":
        tell("session/terminated", reason="idle too long")
    return "end_turn"


def usage(session_id, text, state):
    update(session_id, sessionUpdate="usage_update", used=10, size=100, cost={"amount": 0.25, "currency": "USD"})
    say(session_id, "spent")
    return "end_turn"


def chat(session_id, text, state):
    """An agent for a chat: what it does depends on what it is told."""
    if text.startswith("image"):
        say(session_id, text)
        return "end_turn"
    doings = {"permission": asks, "wait": wait_for_cancel, "tools": tools, "die": exits, "oauth": oauth}
    if text in doings:
        return doings[text](session_id, text, state)
    if text == "long":
        for _ in range(100):
            say(session_id, "word " * 20)
        return "end_turn"
    if text == "token":
        say(session_id, "token: " + os.environ.get("TELEGRAM_BOT_TOKEN", "not there"))
        return "end_turn"
    say(session_id, f"{'reloaded' if state.get('loaded') else 'new'} {session_id}: {text}")
    return "end_turn"


def kiro_files(session_id, text, state):
    """Leaves the two files that Kiro keeps of a session, and a link that nobody may follow."""
    folder = os.path.join(os.environ["HOME"], ".kiro", "sessions", "cli")
    os.makedirs(folder, exist_ok=True)
    for ending in ("json", "jsonl"):
        with open(os.path.join(folder, f"{session_id}.{ending}"), "w") as stream:
            stream.write("{}\n")
    os.symlink("/etc/passwd", os.path.join(folder, "passwd"))
    say(session_id, "kept")
    return "end_turn"


def secrets(session_id, text, state):
    say(session_id, "the key is " + os.environ.get("MODEL_API_KEY", ""))
    sys.stderr.write("key " + os.environ.get("MODEL_API_KEY", "") + "\n")
    return "end_turn"


def wait_for_cancel(session_id, text, state):
    say(session_id, "working")
    state["cancelled"].wait(30)
    return "cancelled"


def cancel_while_asking(session_id, text, state):
    message = permission(session_id)
    say(session_id, "permission: " + message["result"]["outcome"]["outcome"])
    return "cancelled"


def refuses(session_id, text, state):
    return "refusal"


def max_tokens(session_id, text, state):
    say(session_id, "cut sho")
    return "max_tokens"


def rpc_error(session_id, text, state):
    raise RuntimeError("the model is down")


def linger(session_id, text, state):
    """Answers, and then does not leave when its input ends (see `main`)."""
    say(session_id, text)
    return "end_turn"


def many_updates(session_id, text, state):
    count = int(os.environ.get("UPDATES", "20000"))
    for number in range(count):
        line = {
            "jsonrpc": "2.0", "method": "session/update",
            "params": {"sessionId": session_id, "update": {
                "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": f"{number}\n"}}},
        }
        with lock:
            out.write(json.dumps(line).encode() + b"\n")
    out.flush()
    return "end_turn"


def many_thoughts(session_id, text, state):
    """As many updates as the prompt says, of a kind that nobody keeps."""
    head = '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"' + session_id + '","update":'
    line = (head + '{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}}}\n').encode()
    for _ in range(int(text)):
        with lock:
            out.write(line)
    out.flush()
    return "end_turn"


def stderr_steady(session_id, text, state):
    """One megabyte a second to stderr, while chunks go on."""
    block = b"e" * 9999 + b"\n"
    for number in range(100):
        sys.stderr.buffer.write(block * 2)
        sys.stderr.buffer.flush()
        say(session_id, f"{number} ")
        time.sleep(0.01)
    return "end_turn"


early = options = echo
