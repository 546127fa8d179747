"""A small agent at integration level cli_events: it reads its input, works in steps, and says what it does.

It has no model. `mental` arithmetic slips in a fixed fraction of cases, drawn from a hash of the task, so that the
experiment has something to find and every run finds the same.
"""

import ast
import datetime
import hashlib
import json
import operator
import os

OPERATORS = {ast.Add: operator.add, ast.Mult: operator.mul}


class Hooks:
    """Writes harness_events.jsonl, and reads the control file after each step."""

    def __init__(self, given):
        self.ids = given["ids"]
        self.control = given["runtime"]["control_plane"]["path"]
        self.stream = open(os.path.join(given["runtime"]["paths"]["out"], "harness_events.jsonl"), "w")
        self.seq = 0
        self.step = 0

    def emit(self, event_type, **fields):
        now = datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
        event = {"event_type": event_type, "ts": now, "seq": self.seq, "ids": self.ids, **fields}
        self.stream.write(json.dumps(event) + "\n")
        self.stream.flush()
        self.seq += 1

    def begin(self):
        self.emit("agent_step_start", step_index=self.step)

    def end(self):
        """Ends the step and acknowledges what the control file says; True means stop."""
        self.emit("agent_step_end", step_index=self.step)
        with open(self.control, "rb") as stream:
            data = stream.read()
        asked = json.loads(data)["action"]
        version = "sha256:" + hashlib.sha256(data).hexdigest()
        self.emit("control_ack", step_index=self.step, control_version=version, action_observed=asked)
        self.step += 1
        return asked == "stop"


def evaluate(node):
    """Plus and times over integers."""
    if isinstance(node, ast.Expression):
        return evaluate(node.body)
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](evaluate(node.left), evaluate(node.right))
    raise ValueError("only + and * over integers")


def slips(given):
    """Whether mental arithmetic goes wrong here: about two times in five."""
    ids = given["ids"]
    return hashlib.sha256(f"{ids['task_id']}/{ids['repl_idx']}".encode()).digest()[0] < 102


def solve(given, hooks):
    """The answer and the tokens that a model would have used."""
    question, bindings = given["task"]["question"], given["bindings"]
    tokens = 0
    hooks.begin()
    tokens_in, tokens_out = 20 + len(question), 8
    tokens += tokens_in + tokens_out
    hooks.emit("model_call_end", step_index=hooks.step, call_id="plan", outcome={"status": "ok"},
               usage={"tokens_in": tokens_in, "tokens_out": tokens_out})
    if hooks.end():
        return None, tokens
    hooks.begin()
    answer = evaluate(ast.parse(question, mode="eval"))
    if bindings["strategy"] == "calculator":
        hooks.emit("tool_call_end", step_index=hooks.step, call_id="sum", tool={"name": "calculator"},
                   outcome={"status": "ok"})
    elif slips(given):
        answer += 1
    if hooks.end():
        return None, tokens
    if bindings["check"]:
        hooks.begin()
        tokens += 40
        hooks.emit("model_call_end", step_index=hooks.step, call_id="check", outcome={"status": "ok"},
                   usage={"tokens_in": 30, "tokens_out": 10})
        hooks.end()
    return answer, tokens


def main():
    with open(os.environ["LABAUDIT_TRIAL_INPUT"]) as stream:
        given = json.load(stream)
    out = given["runtime"]["paths"]["out"]
    manifest = {
        "schema_version": "harness_manifest_v1",
        "created_at": datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z"),
        "integration_level": "cli_events",
        "harness": {"name": "sums-agent", "version": "1.0"},
        "step": {"semantics": "one decision of the agent"},
        "hooks": {"schema_version": "hook_events_v1", "events_path": "/out/harness_events.jsonl"},
        "control_plane": {"mode": "file", "path": "/state/lab_control.json"},
    }
    with open(os.path.join(out, "harness_manifest.json"), "w") as stream:
        json.dump(manifest, stream)
    answer, tokens = solve(given, Hooks(given))
    result = {"schema_version": "trial_output_v1", "ids": given["ids"], "metrics": {"tokens": tokens}}
    # The agent says that it finished; whether the answer is right is for the evaluator.
    result["outcome"] = "success" if answer is not None else "failure"
    if answer is not None:
        result["answer"] = answer
    with open(os.path.join(out, "trial_output.json"), "w") as stream:
        json.dump(result, stream)
    print(f"{given['task']['question']} = {answer}")


main()
