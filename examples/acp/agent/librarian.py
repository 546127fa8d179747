"""A small agent that speaks ACP over its standard streams: it looks a question up on its shelf, if it is allowed to.

Two modes: `curious` asks for leave to read the shelf and answers from it; `shy` answers from memory, which is short.
"""

import json
import sys

SHELF = {
    "Who wrote the first published program?": "Ada Lovelace",
    "Who wrote the first compiler?": "Grace Hopper",
    "Who gave us the shortest path?": "Edsger Dijkstra",
    "Who stated the substitution principle?": "Barbara Liskov",
    "Who typeset the art of programming?": "Donald Knuth",
    "Who proved that some questions have no program?": "Alan Turing",
    "Who measured information in bits?": "Claude Shannon",
    "Who wrote programs as lists?": "John McCarthy",
    "Who led the software that landed on the moon?": "Margaret Hamilton",
}
MEMORY = {"Who wrote the first compiler?": "Grace Hopper"}
MODES = [{"id": "curious", "name": "Curious"}, {"id": "shy", "name": "Shy"}]

state = {"mode": "curious", "asked": 0}


def send(**fields):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **fields}) + "\n")
    sys.stdout.flush()


def update(session_id, **fields):
    send(method="session/update", params={"sessionId": session_id, "update": fields})


def messages():
    for line in sys.stdin:
        yield json.loads(line)


def may_read(session_id, incoming):
    """Asks the client, waits for its answer, and says what came of the tool call."""
    state["asked"] += 1
    call = f"shelf-{state['asked']}"
    tool = {"toolCallId": call, "title": "Read the shelf", "kind": "read"}
    update(session_id, sessionUpdate="tool_call", status="pending", **tool)
    options = [
        {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
        {"optionId": "no", "name": "Reject", "kind": "reject_once"},
    ]
    asked = {"sessionId": session_id, "toolCall": tool, "options": options}
    send(id=call, method="session/request_permission", params=asked)
    for message in incoming:
        if message.get("id") == call:
            allowed = message.get("result", {}).get("outcome", {}).get("optionId") == "yes"
            update(
                session_id, sessionUpdate="tool_call_update", toolCallId=call,
                status="completed" if allowed else "failed",
            )
            return allowed
    return False


def answer(params, incoming):
    session_id = params["sessionId"]
    question = "".join(block.get("text", "") for block in params["prompt"])
    known = MEMORY
    if state["mode"] == "curious" and may_read(session_id, incoming):
        known = SHELF
    text = known.get(question, "Nobody yet" if known is SHELF else "I do not know")
    update(session_id, sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})
    return {"stopReason": "end_turn"}


def main():
    incoming = messages()
    for message in incoming:
        method, params = message.get("method"), message.get("params", {})
        if method == "initialize":
            info = {"name": "librarian", "version": "1.0.0"}
            result = {"protocolVersion": 1, "agentCapabilities": {}, "agentInfo": info, "authMethods": []}
        elif method == "session/new":
            result = {"sessionId": "desk", "modes": {"currentModeId": state["mode"], "availableModes": MODES}}
        elif method == "session/set_mode":
            state["mode"] = params["modeId"]
            result = {}
        elif method == "session/prompt":
            result = answer(params, incoming)
        elif "id" in message and method:
            send(id=message["id"], error={"code": -32601, "message": f"there is no {method}"})
            continue
        else:
            continue
        send(id=message["id"], result=result)


if __name__ == "__main__":
    main()
