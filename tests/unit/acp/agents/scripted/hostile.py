"""Behaviours of agents that send what no agent should."""

import json
import os
import sys
import threading
import time

from peer import ask, permission, raw, say, send, update


def only_always(session_id, text, state):
    message = permission(session_id, options=[{"optionId": "yes-always", "name": "Always", "kind": "allow_always"}])
    say(session_id, "permission: " + json.dumps(message["result"]["outcome"], sort_keys=True))
    return "end_turn"


def kind_switch(session_id, text, state):
    update(session_id, sessionUpdate="tool_call", toolCallId="t1", title="rm", kind="execute", status="pending")
    message = permission(session_id, kind="read")
    say(session_id, "permission: " + message["result"]["outcome"].get("optionId", "cancelled"))
    return "end_turn"


def forbidden(session_id, text, state):
    replies = []
    for method, params in (
        ("fs/read_text_file", {"sessionId": session_id, "path": "/etc/passwd"}),
        ("fs/write_text_file", {"sessionId": session_id, "path": "/out/x", "content": "x"}),
        ("terminal/create", {"sessionId": session_id, "command": "sh"}),
        ("elicitation/create", {"sessionId": session_id, "mode": "url", "message": "sign in", "url": "http://x.invalid"}),
        ("_kiro.dev/mcp/oauth_request", {"sessionId": session_id, "serverName": "s", "authUrl": "http://x.invalid"}),
        ("made/up", {}),
    ):
        message = ask(method, params)
        replies.append(str(message.get("error", {}).get("code", message.get("result"))))
    say(session_id, " ".join(replies))
    return "end_turn"


def garbage(session_id, text, state):
    raw(b"not json at all\n[1,2,3]\n\"text\"\n42\nnull\n{}\n{\"id\":1}\n\xff\xfe\x00broken\n\r\n\n   \n{\"jsonrpc\":\n")
    raw(b'{"jsonrpc":"2.0","method":7,"id":5}\n{"jsonrpc":"2.0","method":"session/update","params":[1]}\n')
    raw(b'{"jsonrpc":"2.0","method":"a","method":"session/update","params":{}}\n')
    raw(b'{"a":' * 20000 + b"\n")
    raw(b'{"jsonrpc":"2.0","method":"session/update","params":{"x":NaN}}\n')
    say(session_id, "still here")
    return "end_turn"


def long_line(session_id, text, state):
    block = b"x" * (1 << 20)
    raw(b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"')
    for _ in range(50):
        raw(block)
    raw(b'"}}\n')
    say(session_id, "after the long line")
    return "end_turn"


def stderr_flood(session_id, text, state):
    block = b"e" * 65535 + b"\n"
    for _ in range(1600):
        sys.stderr.buffer.write(block)
    sys.stderr.buffer.flush()
    say(session_id, "after the flood")
    return "end_turn"


def stdout_flood(session_id, text, state):
    head = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"x","update":{"pad":"'
    block = head + b"p" * 65000 + b'"}}}\n'
    while True:
        raw(block)


def collide(session_id, text, state):
    """A request that carries the id of the client's own open request, and answers to nothing."""
    message = ask("session/request_permission", {
        "sessionId": session_id, "toolCall": {"toolCallId": "t1"}, "options": [
            {"optionId": "no", "name": "No", "kind": "reject_once"}]}, identifier=state["prompt_id"])
    for identifier in (999, "1", None, 1.5, True, -1, state["prompt_id"] + 500):
        send({"jsonrpc": "2.0", "id": identifier, "result": {"stopReason": "end_turn"}})
        send({"jsonrpc": "2.0", "id": identifier, "error": {"code": 1, "message": "m"}})
    say(session_id, "collided: " + json.dumps(message["result"], sort_keys=True))
    return "end_turn"


def strangers(session_id, text, state):
    say("no-such-session", "for nobody")
    send({"jsonrpc": "2.0", "method": "session/update", "params": {"update": {"sessionUpdate": "plan", "entries": []}}})
    send({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": 7, "update": 9}})
    update(session_id, sessionUpdate="made_up_update", x=1)
    say(session_id, "for you")
    return "end_turn"


def meta(session_id, text, state):
    send({
        "jsonrpc": "2.0", "method": "session/update",
        "params": {
            "sessionId": session_id,
            "_meta": {"sessionId": "other", "session_id": "other", "seq": 0, "ext": {"origin": "acp_bridge"}},
            "update": {
                "sessionUpdate": "tool_call", "toolCallId": "m1", "title": "T", "kind": "model_call_end",
                "status": "completed",
                "_meta": {"event_type": "model_call_end", "status": "failed", "toolCallId": "other"},
            },
        },
    })
    send({
        "jsonrpc": "2.0", "method": "session/update",
        "params": {"sessionId": session_id, "update": {
            "sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": "true", "_meta": {"text": "lie"}},
            "_meta": {"content": {"type": "text", "text": "lie"}}}},
    })
    return "end_turn"


def late_permission(session_id, text, state):
    def later():
        time.sleep(0.1)
        message = permission(session_id)
        sys.stderr.write("late: " + json.dumps(message["result"]) + "\n")
        sys.stderr.flush()
        say(session_id, "too late")
        send({"jsonrpc": "2.0", "method": "session/update", "params": {
            "sessionId": session_id, "update": {"sessionUpdate": "tool_call", "toolCallId": "x", "title": "x"}}})

    threading.Thread(target=later, daemon=True).start()
    say(session_id, "done")
    return "end_turn"


def surrogates(session_id, text, state):
    raw(b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"' + session_id.encode() +
        b'","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\\ud800b\\u0000c"}}}}\n')
    update(session_id, sessionUpdate="tool_call", toolCallId="\ud800", title="\udfff", kind="read", status="completed")
    return "end_turn"


def fake_files(session_id, text, state):
    for name in ("harness_events.jsonl", "trial_output.json", "harness_manifest.json"):
        with open(os.path.join(os.environ.get("OUT", "/out"), name), "w") as stream:
            stream.write('{"forged": true}\n')
    say(session_id, "forged")
    return "end_turn"


def deaf_asker(session_id, text, state):
    """Asks without end and never reads the answers."""
    state["deaf"].set()
    number = 0
    while True:
        number += 1
        send({"jsonrpc": "2.0", "id": "q" * 5000 + str(number), "method": "fs/read_text_file", "params": {}})
