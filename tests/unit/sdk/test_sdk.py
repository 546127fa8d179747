"""A harness that uses the SDK is observed at the level it claims, obeys control, and replays or fails closed."""

from __future__ import annotations

import ast
import json
import math
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import labaudit.sdk
from labaudit.core.canonical import canonical_bytes
from labaudit.core.clock import SystemClock
from labaudit.evidence.boundaries import BoundaryRecord, judge_boundaries
from labaudit.evidence.control_history import read_control_history
from labaudit.evidence.harness_manifest import HarnessManifest
from labaudit.evidence.hook_collector import HookCollector, HookStream
from labaudit.harnesses.control_plane import ControlPlane
from labaudit.records import document_rules
from labaudit.records.schema_registry import validate
from labaudit.sdk.canonical import canonical_json

SDK = Path(labaudit.sdk.__file__).parent
IDS = {"run_id": "run-1", "trial_id": "t-1", "variant_id": "base", "task_id": "k", "repl_idx": 0}

AGENT = """
import os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from labaudit_sdk import BoundaryError, Session

def call_model(request):
    if os.environ.get("NO_MODEL"):
        raise SystemExit("the model was called in a replay")
    return {"text": request["prompt"].upper(), "usage": {"tokens_in": 3, "tokens_out": 2}}

def divide(request):
    return {"quotient": request["a"] / request["b"]}

def main():
    with Session.open("fixture", "1", level=sys.argv[1], step_semantics="a model call and a tool call") as lab:
        asked = lab.trial.task["prompt"] + os.environ.get("CHANGED", "")
        texts = []
        while lab.running and len(texts) < 3:
            with lab.step():
                texts.append(lab.model("upper", {"prompt": asked, "n": len(texts)}, call_model)["text"])
                try:
                    lab.tool("divide", {"a": 1, "b": len(texts) - 1}, divide)
                except BoundaryError as error:
                    assert error.kind == "ZeroDivisionError"
                if lab.value("coin", lambda: os.urandom(1)[0]) > 255:
                    break
        lab.finish("success", answer=" ".join(texts), metrics={"steps": len(texts)})

main()
"""


class World:
    """One trial's folders, and the SDK copied beside the harness as a container would have it."""

    def __init__(self, root: Path) -> None:
        self.root, self.out, self.state, self.harness = root, root / "out", root / "state", root / "harness"
        for folder in (self.out, self.state, self.harness):
            folder.mkdir(parents=True)
        shutil.copytree(SDK, self.harness / "labaudit_sdk", ignore=shutil.ignore_patterns("__pycache__"))
        self.control = ControlPlane(self.state / "lab_control.json", root / "control.jsonl", SystemClock())
        self.control.write("continue")
        self.budgets: dict[str, int] = {}

    def trial_input(self) -> Path:
        names = ("workspace", "state", "dataset", "out", "tmp")
        value = {
            "schema_version": "trial_input_v1",
            "ids": IDS,
            "task": {"id": "k", "prompt": "hi"},
            "bindings": {},
            "design": {"sanitization_profile": "hermetic_functional_v2", "integration_level": "sdk_full"},
            "runtime": {
                "paths": {name: str(self.root / name) for name in names},
                "network": {"mode_requested": "none"},
                "control_plane": {"mode": "file", "path": str(self.state / "lab_control.json")},
                "budgets": self.budgets,
            },
        }
        assert validate("trial_input_v1", value) == []
        path = self.root / "trial_input.json"
        path.write_text(json.dumps(value))
        return path

    def run(self, level: str, source: str = AGENT, check: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
        (self.harness / "agent.py").write_text(source)
        environment = {"PATH": os.environ["PATH"], "LABAUDIT_TRIAL_INPUT": str(self.trial_input()), **env}
        return subprocess.run(
            [sys.executable, "-I", str(self.harness / "agent.py"), level],
            env=environment, check=check, capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    def stream(self) -> HookStream:
        manifest = HarnessManifest.load(self.out / "harness_manifest.json")
        history = read_control_history(self.root / "control.jsonl")
        return HookCollector().collect(self.out / "harness_events.jsonl", manifest, IDS, history)

    def boundaries(self) -> BoundaryRecord:
        return judge_boundaries(self.out / "sdk_boundaries.jsonl", self.out / "harness_events.jsonl", IDS)

    def output(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self.out / "trial_output.json").read_bytes())
        assert validate("trial_output_v1", value) == []
        return value

    def lines(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.out / name).read_bytes().splitlines()]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize("level", ["cli_events", "sdk_control", "sdk_full"])
def test_a_harness_writes_what_its_level_needs(world: World, level: str) -> None:
    world.run(level)
    stream = world.stream()
    assert (stream.verdict, stream.findings) == ("valid", ())
    counts: Any = stream.counts
    assert (counts.step_count, counts.turn_count, counts.tool_calls, counts.acks) == (3, 3, 3, 3)
    assert (counts.tokens_in, counts.tokens_out) == (9, 6)
    assert counts.claimed_budgets == {"steps": 3, "tool_calls": 3, "tokens_in": 9, "tokens_out": 6}
    assert world.output()["answer"] == "HI HI HI"
    manifest = json.loads((world.out / "harness_manifest.json").read_bytes())
    assert validate("harness_manifest_v1", manifest) == []
    assert document_rules.check_harness_manifest(manifest) == []
    assert (world.out / "sdk_boundaries.jsonl").exists() is (level == "sdk_full")


def test_every_causal_event_has_its_recorded_boundary(world: World) -> None:
    world.run("sdk_full")
    assert world.boundaries() == BoundaryRecord(True, 9, True)
    tools = [line for line in world.lines("sdk_boundaries.jsonl") if line.get("kind") == "tool"]
    assert "ZeroDivisionError" in json.dumps(tools[0]["error"])
    assert tools[1]["response"] == {"quotient": 1.0}


def test_a_record_that_was_touched_or_cut_is_not_complete(world: World) -> None:
    world.run("sdk_full")
    path = world.out / "sdk_boundaries.jsonl"
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for data, word in [
        (whole.replace(b'"HI"', b'"HO"', 1), "chain"),
        (b"".join(lines[:-1]), "no end"),
        (b"".join(lines[:2] + lines[3:]), "chain"),
        (whole + lines[0], "after the end"),
        (whole[:-5], "torn"),
    ]:
        path.write_bytes(data)
        record = world.boundaries()
        assert not record.complete
        assert word in record.problem


def test_a_record_of_another_trial_or_of_other_calls_is_not_complete(world: World) -> None:
    world.run("sdk_full")
    path, events = world.out / "sdk_boundaries.jsonl", world.out / "harness_events.jsonl"
    assert "chain" in judge_boundaries(path, events, {**IDS, "trial_id": "t-2"}).problem
    kept = [line for line in events.read_bytes().splitlines(keepends=True) if b'"tool-1"' not in line]
    events.write_bytes(b"".join(kept))
    assert world.boundaries().problem.startswith("boundary tool-1 stands where")


def test_a_replay_gives_the_recorded_answers_without_calling(world: World, tmp_path: Path) -> None:
    world.run("sdk_full")
    again = World(tmp_path / "again")
    record = {"LABAUDIT_REPLAY_BOUNDARIES": str(world.out / "sdk_boundaries.jsonl")}
    again.run("sdk_full", NO_MODEL="1", **record)
    assert again.output() == world.output()
    assert again.stream().verdict == "valid"
    assert (again.out / "sdk_boundaries.jsonl").read_bytes() == (world.out / "sdk_boundaries.jsonl").read_bytes()


def test_a_replay_that_asks_something_else_fails_closed(world: World, tmp_path: Path) -> None:
    world.run("sdk_full")
    again = World(tmp_path / "again")
    record = {"LABAUDIT_REPLAY_BOUNDARIES": str(world.out / "sdk_boundaries.jsonl")}
    done = again.run("sdk_full", check=False, CHANGED="!", NO_MODEL="1", **record)
    assert done.returncode != 0
    assert "is asked something else" in again.output()["error"]["message"]
    assert again.output()["error"]["error_type"] == "replay_divergence"
    assert again.stream().verdict == "valid"


def test_a_replay_that_calls_less_or_has_half_a_record_fails_closed(world: World, tmp_path: Path) -> None:
    world.run("sdk_full")
    record = world.out / "sdk_boundaries.jsonl"
    shorter = World(tmp_path / "shorter")
    source = AGENT.replace("len(texts) < 3", "len(texts) < 2")
    done = shorter.run("sdk_full", source, check=False, LABAUDIT_REPLAY_BOUNDARIES=str(record))
    assert done.returncode != 0
    assert "3 recorded boundaries were not met" in shorter.output()["error"]["message"]
    record.write_bytes(b"".join(record.read_bytes().splitlines(keepends=True)[:-1]))
    half = World(tmp_path / "half")
    done = half.run("sdk_full", check=False, LABAUDIT_REPLAY_BOUNDARIES=str(record))
    assert done.returncode != 0
    assert "cut off" in done.stderr


BETWEEN = """
import os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from labaudit_sdk import Session

with Session.open("fixture", "1", level="sdk_full", step_semantics="a tick") as lab:
    seen = [lab.value("word", lambda: os.environ["WORD"])]
    for _ in range(3):
        with lab.step():
            seen.append(lab.model("m", 1, lambda _: os.environ["WORD"]))
        seen.append(lab.value("word", lambda: os.environ["WORD"]))
    lab.finish("success", answer=seen)
"""


def test_a_fork_answers_from_the_record_until_its_step_and_calls_from_then_on(world: World, tmp_path: Path) -> None:
    world.run("sdk_full", BETWEEN, WORD="old")
    again = World(tmp_path / "again")
    record = {"LABAUDIT_REPLAY_BOUNDARIES": str(world.out / "sdk_boundaries.jsonl"), "LABAUDIT_REPLAY_UNTIL_STEP": "1"}
    again.run("sdk_full", BETWEEN, WORD="new", **record)
    assert again.output()["answer"] == ["old"] * 3 + ["new"] * 4
    assert again.boundaries() == BoundaryRecord(True, 7, True)


def test_a_stop_ends_the_steps_and_is_acknowledged(world: World) -> None:
    version = world.control.write("stop")
    world.run("sdk_control")
    acks = [event for event in world.lines("harness_events.jsonl") if event["event_type"] == "control_ack"]
    assert [(ack["control_version"], ack["action_taken"], ack["control_seq"]) for ack in acks] == [(version, "stop", 1)]
    assert world.stream().verdict == "valid"
    assert world.output()["metrics"] == {"steps": 1}


def test_a_budget_of_steps_ends_the_loop(world: World) -> None:
    world.budgets = {"max_steps": 2}
    world.run("sdk_control")
    assert world.output()["metrics"] == {"steps": 2}


CHECKPOINTING = """
import os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from labaudit_sdk import Session

with Session.open("fixture", "1", level="sdk_control", step_semantics="a tick") as lab:
    seen = []
    lab.on_pause = lambda label: seen.append(["pause", label])
    def save(label):
        seen.append(["checkpoint", label])
        with open(os.path.join(lab.trial.paths["state"], "memory"), "w") as stream:
            stream.write(label)
    lab.on_checkpoint = save
    lab.on_stop = lambda: seen.append(["stop", None])
    while lab.running:
        with lab.step():
            pass
    lab.finish("success", answer=seen)
"""


def test_a_checkpoint_calls_back_before_the_ack_and_holds_until_the_runner_goes_on(world: World) -> None:
    version = world.control.write("checkpoint", "mid")
    events = world.out / "harness_events.jsonl"
    state: list[str] = []

    def runner() -> None:
        while not (events.exists() and version.encode() in events.read_bytes()):
            time.sleep(0.01)
        state.append((world.state / "memory").read_text())
        before = events.read_bytes().count(b"agent_step_start")
        time.sleep(0.15)
        state.append(str(events.read_bytes().count(b"agent_step_start") - before))
        world.control.write("stop")

    thread = threading.Thread(target=runner)
    thread.start()
    world.run("sdk_control", CHECKPOINTING)
    thread.join()
    assert state == ["mid", "0"]
    assert world.output()["answer"] == [["pause", "mid"], ["checkpoint", "mid"], ["stop", None]]
    assert world.stream().verdict == "valid"
    counts: Any = world.stream().counts
    assert (counts.checkpoints_acked, counts.stopped) == (1, True)


def test_a_callback_that_fails_is_told_in_the_ack(world: World) -> None:
    world.control.write("stop")
    source = CHECKPOINTING.replace('seen.append(["stop", None])', "1 / 0")
    world.run("sdk_control", source)
    ack = world.lines("harness_events.jsonl")[-1]
    assert ack["action_taken"] == "stop"
    assert "ZeroDivisionError" in ack["reason"]


def test_a_control_file_that_is_gone_means_stop(world: World) -> None:
    (world.state / "lab_control.json").unlink()
    world.run("sdk_control")
    assert world.output()["metrics"] == {"steps": 1}
    assert dict(world.stream().findings_by_rule) == {"H8": 1}


RAISING = """
import os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from labaudit_sdk import Session

with Session.open("fixture", "1", level="sdk_full", step_semantics="a tick") as lab:
    with lab.step():
        lab.model("m", {"prompt": object()} if sys.argv[1] == "request" else 1, lambda _: object())
"""


@pytest.mark.parametrize("where", ["request", "response"])
def test_what_has_no_json_form_is_not_recorded_and_not_returned(world: World, where: str) -> None:
    done = world.run(where, RAISING, check=False)
    assert done.returncode == 1
    assert world.output()["outcome"] == "error"
    assert world.output()["error"]["error_type"] == "not_recordable"
    assert world.stream().verdict == "valid"
    assert world.boundaries() == BoundaryRecord(True, int(where == "response"), True)


def test_a_second_session_in_one_trial_is_refused(world: World) -> None:
    world.run("sdk_control")
    done = world.run("sdk_control", check=False)
    assert done.returncode != 0
    assert "FileExistsError" in done.stderr


def test_the_sdk_keeps_to_the_syntax_of_python_3_8() -> None:
    for path in SDK.glob("*.py"):
        ast.parse(path.read_bytes(), filename=str(path), feature_version=(3, 8))


def test_both_sides_write_the_same_canonical_bytes() -> None:
    generator = random.Random(8785)
    values: list[Any] = [0.1, 1e21, 1e-7, 123456789.125, -0.0, 5e-324, 1.7976931348623157e308, 2**53 - 1, 1e16, 0.001]
    values += [generator.uniform(-1, 1) * 10 ** generator.randint(-300, 300) for _ in range(2000)]
    values += ['\u20ac\r\n\x0f"\\/\x7f', {"\ufb33": 1, "\U0001f600": 2, "a": [None, True]}, {"": ""}]
    for value in values:
        if not (isinstance(value, float) and math.isinf(value)):
            assert canonical_json(value) == canonical_bytes(value), value
    for bad in (math.nan, math.inf, 2**53, {1: 2}, object(), b"x", "\ud800"):
        with pytest.raises((TypeError, ValueError)):
            canonical_json(bad)
