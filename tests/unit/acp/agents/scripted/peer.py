"""What every behaviour speaks with: lines to the client, and requests that wait for its answer."""

import json
import sys
import threading

out = sys.stdout.buffer
lock = threading.Lock()
next_id = 1000
waiting = {}


def raw(data):
    with lock:
        out.write(data)
        out.flush()


def send(value):
    raw(json.dumps(value).encode() + b"\n")


def answer(request, result):
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def update(session_id, **fields):
    send({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session_id, "update": fields}})


def say(session_id, text):
    update(session_id, sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


def ask(method, params, identifier=None):
    """Sends a request to the client and waits for its answer."""
    global next_id
    if identifier is None:
        next_id += 1
        identifier = next_id
    slot = waiting[identifier] = {"event": threading.Event(), "message": None}
    send({"jsonrpc": "2.0", "id": identifier, "method": method, "params": params})
    slot["event"].wait(20)
    return slot["message"]


def permission(session_id, call_id="t1", kind="edit", options=None, **extra):
    options = options or [
        {"optionId": "yes-always", "name": "Always", "kind": "allow_always"},
        {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
        {"optionId": "no", "name": "Reject", "kind": "reject_once"},
    ]
    tool = {"toolCallId": call_id, "title": "Edit file", "kind": kind, "status": "pending"}
    return ask(
        "session/request_permission", {"sessionId": session_id, "toolCall": tool, "options": options, **extra}
    )
