"""Laws of hook streams: whatever a well-behaved harness does is valid and counted, and one broken rule is found."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from labaudit.evidence.control_history import control_write
from labaudit.evidence.harness_manifest import HarnessManifest
from labaudit.evidence.hook_collector import HookCollector, HookCounts, HookStream
from labaudit.evidence.hook_rules import ControlWrite

IDS = {"run_id": "r", "trial_id": "t", "variant_id": "v", "task_id": "k", "repl_idx": 0}
TS = "2026-11-18T09:30:00Z"
MANIFEST = HarnessManifest.from_bytes(
    json.dumps(
        {
            "schema_version": "harness_manifest_v1",
            "created_at": TS,
            "integration_level": "cli_events",
            "step": {"semantics": "a step"},
            "hooks": {"schema_version": "hook_events_v1", "events_path": "harness_events.jsonl"},
        }
    ).encode()
)


@dataclass
class Story:
    """What a harness did, and what the runner wrote meanwhile."""

    events: list[dict[str, Any]]
    history: list[ControlWrite]
    steps: int
    turns: int
    tools: int

    def judge(self) -> HookStream:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "e.jsonl")
            path.write_text("".join(json.dumps(event) + "\n" for event in self.events))
            return HookCollector().collect(path, MANIFEST, IDS, self.history)


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Steps with calls, gaps in seq and step_index, and a control file that changes at any step's end."""
    events: list[dict[str, Any]] = []
    history = [control_write(0, "continue")]
    seq, index, turns, tools = draw(st.integers(0, 9)), -1, 0, 0
    steps = draw(st.integers(1, 6))

    def add(event_type: str, **fields: Any) -> None:
        nonlocal seq
        events.append({"event_type": event_type, "ts": TS, "seq": seq, "ids": IDS, "step_index": index, **fields})
        seq += draw(st.integers(1, 3))

    for number in range(steps):
        index += draw(st.integers(1, 3))
        add("agent_step_start")
        for kind in draw(st.lists(st.sampled_from(["model", "tool", "error"]), max_size=4)):
            if kind == "model":
                turns += 1
                add("model_call_end", call_id=f"m{turns}", outcome={"status": "ok"})
            elif kind == "tool":
                tools += 1
                add("tool_call_end", call_id=f"t{tools}", tool={"name": "x"}, outcome={"status": "error"})
            else:
                add("error", message="went wrong")
        add("agent_step_end")
        last = number == steps - 1
        if draw(st.booleans()):
            action = draw(st.sampled_from(["continue", "checkpoint", "stop"] if last else ["continue", "checkpoint"]))
            history.append(control_write(len(history), action))
        add("control_ack", control_version=history[-1].control_version, action_observed=history[-1].action)
    return Story(events, history, steps, turns, tools)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(stories())
def test_what_keeps_the_contract_is_valid_and_counted(story: Story) -> None:
    # The specification: "Derives turn_count from model_call_end events."
    stream = story.judge()
    assert (stream.verdict, stream.findings) == ("valid", ())
    assert isinstance(stream.counts, HookCounts)
    seen = (stream.counts.step_count, stream.counts.turn_count, stream.counts.tool_calls, stream.counts.acks)
    assert seen == (story.steps, story.turns, story.tools, story.steps)
    assert stream.acks_missing == 0


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(stories(), st.data())
def test_every_missing_ack_is_found(story: Story, data: st.DataObject) -> None:
    # The specification: "control_ack must follow each agent_step_end ... before the next agent_step_start."
    acks = [place for place, event in enumerate(story.events) if event["event_type"] == "control_ack"]
    gone = set(data.draw(st.sets(st.sampled_from(acks), min_size=1)))
    story.events = [event for place, event in enumerate(story.events) if place not in gone]
    stream = story.judge()
    assert not stream.valid
    assert stream.findings_by_rule == {"H3": len(gone)}
    assert stream.acks_missing == len(gone)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(stories(), st.data())
def test_two_events_that_changed_places_are_found(story: Story, data: st.DataObject) -> None:
    # The specification: "seq must be monotonically increasing per trial."
    place = data.draw(st.integers(0, len(story.events) - 2))
    events = story.events
    events[place], events[place + 1] = events[place + 1], events[place]
    stream = story.judge()
    assert not stream.valid
    assert stream.findings_by_rule.get("H1", 0) >= 1


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(stories(), st.data())
def test_no_step_may_start_after_a_stop(story: Story, data: st.DataObject) -> None:
    # The specification: "If control action is stop, there must be no subsequent agent_step_start."
    acks = [event for event in story.events if event["event_type"] == "control_ack"]
    assume(len(acks) > 1)
    early = data.draw(st.integers(0, len(acks) - 2))
    acks[early]["action_taken"] = "stop"
    stream = story.judge()
    assert not stream.valid
    assert stream.findings_by_rule == {"H4": len(acks) - 1 - early}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(stories(), st.data())
def test_causal_events_without_a_step_degrade_and_are_counted(story: Story, data: st.DataObject) -> None:
    # The specification: "All causal events must include step_index; missing values degrade interpretability grades."
    causal = [e for e in story.events if e["event_type"] in ("model_call_end", "tool_call_end", "error")]
    assume(causal)
    chosen = data.draw(st.integers(1, len(causal)))
    for event in causal[:chosen]:
        del event["step_index"]
    stream = story.judge()
    assert stream.verdict == "degraded"
    assert isinstance(stream.counts, HookCounts)
    assert stream.counts.causal_without_step == chosen
    assert stream.counts.turn_count == story.turns
