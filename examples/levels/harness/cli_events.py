"""Level cli_events: the same agent, which also writes a manifest and one line per event, by hand, without the SDK.

At each step's end it looks at the control file and says what it found there; a stop ends its loop.
"""

from __future__ import annotations

import hashlib
import json
import os
import time

from arithmetic import calculate, choose, operation, parse, reduced

SEMANTICS = "one choice by the model and the operation that it chose"


def now():
    """RFC 3339 with microseconds."""
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{nanoseconds // 1000:06d}Z"


class Hooks:
    """Writes harness_events.jsonl."""

    def __init__(self, trial):
        self.ids = trial["ids"]
        self.control = trial["runtime"]["control_plane"]["path"]
        self.seq = 0
        path = os.path.join(trial["runtime"]["paths"]["out"], "harness_events.jsonl")
        self.stream = open(path, "wb", 0)  # noqa: SIM115 - open for as long as the trial lasts

    def write(self, event_type, **fields):
        """One event, one line, handed over at once, so that the runner can follow."""
        event = {"event_type": event_type, "ts": now(), "seq": self.seq, "ids": self.ids, **fields}
        self.stream.write(json.dumps(event).encode() + b"\n")
        self.seq += 1

    def end_step(self, step):
        """The step's end and its acknowledgement; True when the runner asks to stop."""
        self.write("agent_step_end", step_index=step)
        with open(self.control, "rb") as stream:
            content = stream.read()
        action = json.loads(content)["action"]
        version = "sha256:" + hashlib.sha256(content).hexdigest()
        self.write("control_ack", step_index=step, control_version=version, action_observed=action)
        return action == "stop"


def write_manifest(trial):
    """harness_manifest.json: what this harness is and what it will write."""
    with open(__file__, "rb") as stream:
        digest = "sha256:" + hashlib.sha256(stream.read()).hexdigest()
    manifest = {
        "schema_version": "harness_manifest_v1",
        "created_at": now(),
        "integration_level": "cli_events",
        "harness": {"name": "arithmetic", "version": "1", "exec_digest": digest, "entry_command": ["cli_events.py"]},
        "step": {"semantics": SEMANTICS},
        "hooks": {"schema_version": "hook_events_v1", "events_path": "/out/harness_events.jsonl"},
        "control_plane": {"mode": "file", "path": "/state/lab_control.json"},
        "tracing": {"mode": "none"},
    }
    with open(os.path.join(trial["runtime"]["paths"]["out"], "harness_manifest.json"), "w") as stream:
        json.dump(manifest, stream)


def solve(hooks, terms, precedence):
    """The answer as text, or None when the runner stopped the agent."""
    step = 0
    while True:
        hooks.write("agent_step_start", step_index=step)
        reply = choose({"terms": terms, "precedence": precedence})
        hooks.write(
            "model_call_end",
            step_index=step,
            call_id=f"m{step}",
            turn_index=step,
            model={"identity": "arithmetic"},
            usage=reply["usage"],
            outcome={"status": "ok"},
        )
        if "apply" in reply:
            value = calculate(operation(terms, reply["apply"]))["value"]
            tool = {"name": "calculate"}
            hooks.write("tool_call_end", step_index=step, call_id=f"t{step}", tool=tool, outcome={"status": "ok"})
            terms = reduced(terms, reply["apply"], value)
        stop = hooks.end_step(step)
        if "answer" in reply:
            return reply["answer"]
        if stop:
            return None
        step += 1


def main():
    with open(os.environ["LABAUDIT_TRIAL_INPUT"], encoding="utf-8") as stream:
        trial = json.load(stream)
    write_manifest(trial)
    answer = solve(Hooks(trial), parse(trial["task"]["expression"]), trial["bindings"].get("precedence", True))
    output = {
        "schema_version": "trial_output_v1",
        "ids": trial["ids"],
        "outcome": "missing" if answer is None else "success",
    }
    if answer is not None:
        output["answer"] = answer
    with open(os.path.join(trial["runtime"]["paths"]["out"], "trial_output.json"), "w", encoding="utf-8") as stream:
        json.dump(output, stream)


if __name__ == "__main__":
    main()
