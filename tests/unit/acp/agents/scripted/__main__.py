"""An ACP agent in plain Python that behaves as its first argument says: well, oddly, or as badly as it can.

    python scripted BEHAVIOUR

Standard library only, so that it also runs inside a sandbox image.
"""

import json
import os
import sys
import threading
import time

import endings
import hostile
import polite
from peer import answer, say, send, update, waiting

behaviour = sys.argv[1] if len(sys.argv) > 1 else "echo"
deaf = threading.Event()
sessions = {}
CAPABILITIES = {"loadSession": True, "promptCapabilities": {"image": True}}


def find(name):
    """The function of this name, in whichever file it stands."""
    return next(getattr(module, name) for module in (polite, endings, hostile) if hasattr(module, name))


def run_prompt(message, params, state):
    session_id = params["sessionId"]
    blocks = params.get("prompt", params.get("content", []))
    text = "".join(block.get("text", block["type"]) for block in blocks)
    state["cancelled"].clear()
    state["prompt_id"] = message["id"]
    state["history"].append(text)
    try:
        reason = find(behaviour)(session_id, text, state)
    except RuntimeError as error:
        send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32603, "message": str(error)}})
        return
    answer(message, {"stopReason": reason} if reason else {})


def handle(message):
    method, params = message.get("method"), message.get("params") or {}
    if method == "initialize":
        initialize(message, params)
    elif method == "session/new":
        session_id = f"sess-{len(sessions) + 1}"
        sessions[session_id] = {"cancelled": threading.Event(), "history": [], "deaf": deaf}
        if behaviour == "early":
            update(session_id, sessionUpdate="available_commands_update", availableCommands=[
                {"name": "early", "description": "sent before the id"}])
            say("other-session", "never routed")
        names = [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]
        modes = {"currentModeId": "ask", "availableModes": names}
        result = {"sessionId": session_id, "modes": modes}
        if behaviour == "options":
            result["configOptions"] = option_list("m1")
        answer(message, result)
    elif method == "session/load":
        session_id = params["sessionId"]
        sessions[session_id] = {"cancelled": threading.Event(), "history": [], "deaf": deaf, "loaded": True}
        update(session_id, sessionUpdate="user_message_chunk", content={"type": "text", "text": "old question"})
        say(session_id, "old answer")
        update(session_id, sessionUpdate="tool_call", toolCallId="old", title="Old", kind="read", status="completed")
        answer(message, {})
    elif method == "session/prompt":
        state = sessions[params["sessionId"]]
        threading.Thread(target=run_prompt, args=(message, params, state), daemon=True).start()
    elif method == "session/cancel":
        sessions[params["sessionId"]]["cancelled"].set()
    elif method == "session/set_mode":
        mode = params.get("modeId", params.get("mode"))
        if mode not in ("ask", "code"):
            send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "no such mode"}})
            return
        answer(message, {})
        update(params["sessionId"], sessionUpdate="current_mode_update", currentModeId=mode)
    elif method == "session/set_model":
        answer(message, {})
    elif method == "session/set_config_option":
        answer(message, {"configOptions": option_list(params["value"])})
    elif method == "_kiro.dev/commands/execute":
        answer(message, {"output": "ran " + params["command"]})
    elif method == "_kiro.dev/commands/options":
        answer(message, {"options": ["list", "swap"]})
    elif method is not None and "id" in message:
        send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no " + method}})
    elif "id" in message and message["id"] in waiting:
        slot = waiting.pop(message["id"])
        slot["message"] = message
        slot["event"].set()


def option_list(model):
    return [
        {"id": "model", "name": "Model", "type": "select", "category": "model", "currentValue": model, "options": [
            {"value": "m1", "name": "One"}, {"value": "m2", "name": "Two"}]},
        {"id": "mode", "name": "Mode", "type": "select", "category": "mode", "currentValue": "ask", "options": [
            {"group": "g", "name": "G", "options": [{"value": "ask", "name": "Ask"}]}]},
    ]


def initialize(message, params):
    if behaviour == "mute":
        return
    if behaviour == "exit_at_once":
        os._exit(2)
    if behaviour == "version_9":
        answer(message, {"protocolVersion": 9})
    elif behaviour == "no_version":
        answer(message, {"agentInfo": {"name": "x", "version": "1"}})
    elif behaviour == "init_list":
        answer(message, [1])
    elif behaviour == "init_error":
        send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32000, "message": "sign in first"}})
    else:
        capabilities = {} if behaviour == "plain" else CAPABILITIES
        answer(message, {
            "protocolVersion": 1, "agentCapabilities": capabilities,
            "agentInfo": {"name": "scripted", "version": "1.2.3"}, "authMethods": []})


def main():
    if behaviour == "never_reads":
        time.sleep(3600)
    for line in sys.stdin.buffer:
        if deaf.is_set():
            time.sleep(3600)
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, dict):
            handle(message)
    if behaviour == "linger":
        time.sleep(3600)
    # At once: a thread of a prompt that still holds stdout would make the interpreter abort.
    os._exit(0)


if __name__ == "__main__":
    main()
