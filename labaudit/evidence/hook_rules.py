"""The cross-event rules of a hook stream, numbered; each is one small function named as the rule reads.

A rule looks at the state before an event and at the event, and answers with a sentence when it is broken. What a
broken rule means (the stream is invalid, or its use is degraded) stands in the table and is decided nowhere else.

    F1  every line is one JSON value          (unreadable)
    F2  every line keeps to hook_events_v1    (invalidates)
    F3  a declared stream is there            (invalidates)
    H1 ... H12                                below
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from labaudit.evidence.harness_manifest import HarnessManifest

Event = Mapping[str, Any]
Weight = Literal["unreadable", "invalidates", "degrades"]

STEP_START = "agent_step_start"
STEP_END = "agent_step_end"
CONTROL_ACK = "control_ack"
MODEL_CALL = "model_call_end"
TOOL_CALL = "tool_call_end"
ERROR = "error"
HEADER = "hooks.header"
CAUSAL = (MODEL_CALL, TOOL_CALL, ERROR)


class ControlWrite(NamedTuple):
    """One content of the control file that the runner wrote."""

    control_seq: int
    control_version: str
    action: str
    label: str | None = None


@dataclass(frozen=True)
class Expected:
    """What a stream is held against. `control` None: nobody knows what the runner wrote, so H8 is not checked."""

    manifest: HarnessManifest | None
    ids: Mapping[str, object] | None
    control: Mapping[str, ControlWrite] | None
    cut_short: bool = False
    """The runner ended the harness (timeout, stop, kill): a step left open at the very end is no fault of it."""


@dataclass
class StreamState:
    """What the rules remember between events; its size does not grow with the stream."""

    events: int = 0
    last_seq: int | None = None
    last_step: int | None = None
    open_step: int | None = None
    unacked_step: int | None = None
    acks_missing: int = 0
    stopped: bool = False
    header_seen: bool = False
    last_control_seq: int = -1
    causal_without_step: list[int] = field(default_factory=list)
    causal_without_step_total: int = 0
    steps: int = 0
    line: int = 0
    first_ids: Mapping[str, object] | None = None
    """What the ids are held against when nobody says whose stream it should be."""


Check = Callable[[StreamState, Event, Expected], str | None]


class Rule(NamedTuple):
    """A numbered rule."""

    id: str
    name: str
    weight: Weight
    check: Check


def seq_strictly_increases(state: StreamState, event: Event, _: Expected) -> str | None:
    if state.last_seq is not None and event["seq"] <= state.last_seq:
        return f"seq {event['seq']} does not come after {state.last_seq}"
    return None


def step_starts_after_the_last_one_ended(state: StreamState, event: Event, _: Expected) -> str | None:
    step = event["step_index"]
    if state.open_step is not None:
        return f"step {step} starts while step {state.open_step} is open"
    if state.last_step is not None and step <= state.last_step:
        return f"step {step} starts after step {state.last_step}; step_index must grow"
    return None


def step_end_closes_the_open_step(state: StreamState, event: Event, _: Expected) -> str | None:
    step = event["step_index"]
    if state.open_step is None:
        return f"step {step} ends but no step is open"
    if step != state.open_step:
        return f"step {step} ends while step {state.open_step} is open"
    return None


def control_ack_comes_before_the_next_step(state: StreamState, event: Event, _: Expected) -> str | None:
    if state.unacked_step is not None:
        return f"step {event['step_index']} starts before step {state.unacked_step} got its control_ack"
    return None


def control_ack_names_the_step_that_ended(state: StreamState, event: Event, _: Expected) -> str | None:
    if state.unacked_step is not None and event["step_index"] != state.unacked_step:
        return f"control_ack names step {event['step_index']}, but step {state.unacked_step} has just ended"
    return None


def no_step_starts_after_stop(state: StreamState, event: Event, _: Expected) -> str | None:
    return f"step {event['step_index']} starts after a stop was acknowledged" if state.stopped else None


def header_equals_the_manifest(state: StreamState, event: Event, expected: Expected) -> str | None:
    manifest = expected.manifest
    if manifest is None:
        return "there is no manifest that the header could equal"
    said = {
        "hooks_schema_version": (event["hooks_schema_version"], _hooks_version(manifest)),
        "step_semantics": (event["step_semantics"], manifest.step_semantics),
        "integration_level": (event["integration_level"], manifest.level),
        "manifest_digest": (event.get("manifest_digest", manifest.digest), manifest.digest),
    }
    for key, (header, wanted) in said.items():
        if header != wanted:
            return f"the header says {key} {header!r}, the manifest {wanted!r}"
    return None


def header_comes_first_and_once(state: StreamState, event: Event, _: Expected) -> str | None:
    if state.header_seen:
        return "a second header"
    return "the header is not the first event" if state.events else None


def causal_event_names_its_step(state: StreamState, event: Event, _: Expected) -> str | None:
    # Whether this breaks the rule depends on whether step events exist at all, so it is judged at the end.
    if event.get("step_index") is None:
        state.causal_without_step_total += 1
        if len(state.causal_without_step) < 100:
            state.causal_without_step.append(state.line)
    return None


def causal_event_names_a_step_that_started(state: StreamState, event: Event, _: Expected) -> str | None:
    step = event.get("step_index")
    if step is not None and (state.last_step is None or step > state.last_step):
        return f"{event['event_type']} names step {step}, which has not started"
    return None


def ids_are_this_trials(state: StreamState, event: Event, expected: Expected) -> str | None:
    if expected.ids is None:
        state.first_ids = state.first_ids or event["ids"]
    wanted = expected.ids or state.first_ids or {}
    if event["ids"] == wanted:
        return None
    wrong = min(key for key in wanted if event["ids"].get(key) != wanted[key])
    whose = "this trial's" if expected.ids is not None else "the first event's"
    return f"{wrong} is {event['ids'].get(wrong)!r}, {whose} is {wanted[wrong]!r}"


def ack_equals_what_the_runner_wrote(state: StreamState, event: Event, expected: Expected) -> str | None:
    if expected.control is None:
        return None
    written = expected.control.get(event["control_version"])
    if written is None:
        return f"control_version {event['control_version'][:23]}... was never written by the runner"
    if event["action_observed"] != written.action:
        return f"action_observed is {event['action_observed']!r}; that version says {written.action!r}"
    if event.get("control_seq", written.control_seq) != written.control_seq:
        return f"control_seq is {event['control_seq']}; that version has {written.control_seq}"
    if written.control_seq < state.last_control_seq:
        return f"acknowledges control_seq {written.control_seq} after {state.last_control_seq}"
    return None


def control_ack_follows_a_step_end(state: StreamState, event: Event, _: Expected) -> str | None:
    return f"control_ack for step {event['step_index']} follows no step end" if state.unacked_step is None else None


H1 = Rule("H1", "seq_strictly_increases", "invalidates", seq_strictly_increases)
H2_START = Rule("H2", "steps_start_and_end_in_order", "invalidates", step_starts_after_the_last_one_ended)
H2_END = Rule("H2", "steps_start_and_end_in_order", "invalidates", step_end_closes_the_open_step)
H3_START = Rule("H3", "control_ack_follows_each_step_end", "invalidates", control_ack_comes_before_the_next_step)
H3_ACK = Rule("H3", "control_ack_follows_each_step_end", "invalidates", control_ack_names_the_step_that_ended)
H4 = Rule("H4", "no_step_starts_after_stop", "invalidates", no_step_starts_after_stop)
H5 = Rule("H5", "header_equals_the_manifest", "invalidates", header_equals_the_manifest)
H6 = Rule("H6", "causal_events_carry_step_index", "degrades", causal_event_names_its_step)
H7 = Rule("H7", "ids_are_this_trials", "invalidates", ids_are_this_trials)
H8 = Rule("H8", "ack_equals_what_the_runner_wrote", "invalidates", ack_equals_what_the_runner_wrote)
H9 = Rule("H9", "control_ack_follows_a_step_end", "invalidates", control_ack_follows_a_step_end)
H10 = Rule("H10", "header_comes_first_and_once", "invalidates", header_comes_first_and_once)
H11 = Rule("H11", "causal_events_name_a_started_step", "degrades", causal_event_names_a_step_that_started)
H12 = Rule("H12", "a_stream_has_a_manifest", "invalidates", lambda *_: None)

_ALWAYS = (H1, H7)
RULES: dict[str, tuple[Rule, ...]] = {
    HEADER: (*_ALWAYS, H10, H5),
    STEP_START: (*_ALWAYS, H4, H3_START, H2_START),
    STEP_END: (*_ALWAYS, H2_END),
    CONTROL_ACK: (*_ALWAYS, H9, H3_ACK, H8),
    MODEL_CALL: (*_ALWAYS, H6, H11),
    TOOL_CALL: (*_ALWAYS, H6, H11),
    ERROR: (*_ALWAYS, H6, H11),
}


def advance(state: StreamState, event: Event, expected: Expected) -> None:
    """Takes an event into the state, also one that broke a rule, so that one defect is not reported again and again."""
    kind = event["event_type"]
    state.events += 1
    state.last_seq = event["seq"]
    if kind == STEP_START:
        state.steps += 1
        state.open_step = state.last_step = event["step_index"]
        state.acks_missing += state.unacked_step is not None
        state.unacked_step = None
    elif kind == STEP_END:
        state.open_step = None
        state.acks_missing += state.unacked_step is not None
        state.unacked_step = event["step_index"]
    elif kind == CONTROL_ACK:
        state.acks_missing += state.unacked_step is not None and state.unacked_step != event["step_index"]
        state.unacked_step = None
        state.stopped = state.stopped or "stop" in (event["action_observed"], event.get("action_taken"))
        written = (expected.control or {}).get(event["control_version"])
        if written is not None:
            state.last_control_seq = max(state.last_control_seq, written.control_seq)
    elif kind == HEADER:
        state.header_seen = True


class EndFinding(NamedTuple):
    """A rule that only the end of the stream can break."""

    line: int
    rule: Rule
    weight: Weight
    sentence: str


def at_the_end(state: StreamState, expected: Expected) -> list[EndFinding]:
    """What is still open when the stream is over."""
    found: list[EndFinding] = []
    # A harness that the runner killed in mid-step did not break its contract; its last step is merely unfinished.
    weight: Weight = "degrades" if expected.cut_short else "invalidates"
    if state.open_step is not None:
        found.append(EndFinding(0, H2_END, weight, f"step {state.open_step} never ends"))
    if state.unacked_step is not None:
        found.append(EndFinding(0, H3_ACK, weight, f"step {state.unacked_step} ends without its control_ack"))
    manifest = expected.manifest
    if manifest is None:
        found.append(EndFinding(0, H12, H12.weight, "no valid manifest says what a step of this stream means"))
    if manifest is not None and manifest.header_promised and not state.header_seen:
        found.append(EndFinding(0, H5, "invalidates", "the manifest promises a header and the stream has none"))
    if manifest is not None and manifest.record.hooks is None and state.events:
        found.append(EndFinding(0, H5, "invalidates", "the manifest declares no hooks, yet there is a stream"))
    if state.steps and state.causal_without_step_total:
        sentence = "a causal event has no step_index although the stream has steps"
        found.extend(EndFinding(line, H6, H6.weight, sentence) for line in state.causal_without_step)
    return found


def _hooks_version(manifest: HarnessManifest) -> str | None:
    return manifest.record.hooks.schema_version if manifest.record.hooks is not None else None
